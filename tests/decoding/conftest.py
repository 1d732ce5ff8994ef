import pytest
import torch
from tests.decoding.table import EOS, V

from zhen.model import Transformer


@pytest.fixture(scope="module", params=["pre", "post"])
def model(request: pytest.FixtureRequest) -> Transformer:
    """Small and untrained, but with opinions: its matrices are enlarged."""
    torch.manual_seed(3)
    model = Transformer(
        vocab_size=V, d_model=16, num_heads=2, d_ff=32, num_encoder_layers=1,
        num_decoder_layers=2, norm=request.param, max_positions=40, tie_embeddings=False,
    ).eval()  # fmt: skip
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim > 1 and "embedding" not in name:
                parameter *= 1.5
        model.output.weight[EOS] *= 2
    return model
