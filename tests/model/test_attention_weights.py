"""The weights that can be looked at are the ones that the fused kernel used."""

import copy

import pytest
import torch
from tests.model.reference import assert_close, scatter
from torch import Tensor, nn

from zhen.model import MultiHeadAttention, Transformer, attention_weights

L, H, D = 2, 3, 12
SOURCE = torch.tensor([[4, 5, 6, 2], [7, 2, 0, 0]])
TARGET = torch.tensor([[1, 8, 9], [1, 3, 0]])


def make(norm: str = "post") -> Transformer:
    torch.manual_seed(0)
    model = Transformer(
        vocab_size=10, d_model=D, num_heads=H, d_ff=16, num_encoder_layers=L,
        num_decoder_layers=L + 1, norm=norm, dropout=0.3,
    ).double().eval()  # fmt: skip
    scatter(model)
    return model


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_the_weights_times_the_values_are_what_each_module_put_out(norm: str) -> None:
    model = make(norm)
    inputs: dict[nn.Module, tuple[Tensor, Tensor]] = {}

    def keep(module: nn.Module, args: tuple, output: Tensor) -> None:
        inputs[module] = args[1], output

    modules = [module for module in model.modules() if isinstance(module, MultiHeadAttention)]
    hooks = [module.register_forward_hook(keep) for module in modules]
    found = attention_weights(model, SOURCE, TARGET)
    for hook in hooks:
        hook.remove()

    def check(module: nn.Module, weights: Tensor) -> None:
        source, output = inputs[module]
        values = module.keys_values(source)[1]
        heads = (weights @ values).transpose(1, 2).flatten(2)
        assert_close(module.output_proj(heads), output, 1e-10)

    for layer, weights in zip(model.encoder, found.encoder, strict=True):
        check(layer.self_attention, weights)
    for layer, own, cross in zip(model.decoder, found.decoder, found.cross, strict=True):
        check(layer.self_attention, own)
        check(layer.cross_attention, cross)


def test_shapes_and_masks() -> None:
    found = attention_weights(make(), SOURCE, TARGET)
    assert found.encoder.shape == (L, 2, H, 4, 4)
    assert found.decoder.shape == (L + 1, 2, H, 3, 3)
    assert found.cross.shape == (L + 1, 2, H, 3, 4)
    for weights in (found.encoder, found.decoder, found.cross):
        assert_close(weights.sum(-1), torch.ones_like(weights.sum(-1)), 1e-12)
    assert (found.decoder.triu(1) == 0).all()
    assert (found.encoder[:, 1, :, :, 2:] == 0).all()
    assert (found.cross[:, 1, :, :, 2:] == 0).all()


def test_looking_changes_nothing() -> None:
    model = make().train()
    state, random = copy.deepcopy(model.state_dict()), torch.get_rng_state()
    torch.manual_seed(1)
    before = model(SOURCE, TARGET)
    torch.manual_seed(1)
    attention_weights(model, SOURCE, TARGET)
    torch.manual_seed(1)
    assert torch.equal(model(SOURCE, TARGET), before)
    torch.set_rng_state(random)
    assert model.training
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    assert not any(module._forward_pre_hooks for module in model.modules())
    with pytest.raises(ValueError, match="longer than `max_positions`"):
        attention_weights(model, torch.ones(1, 2000, dtype=torch.long), TARGET[:1])
    assert not any(module._forward_pre_hooks for module in model.modules())
