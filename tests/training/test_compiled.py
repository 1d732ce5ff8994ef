"""A compiled training step: as many compilations as are planned, and the same checkpoints."""

import pytest
import torch
from tests.conftest import Maker
from torch._dynamo.utils import counters

from zhen.training.compiled import compiled
from zhen.training.devices import missing_for_compile
from zhen.training.loss import token_loss

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        missing_for_compile("cpu") is not None, reason=f"there is no {missing_for_compile('cpu')}"
    ),
]
GRAPHS = 3  # of one form: the mask, the model, the loss


def test_any_shape_is_compiled_once(make_data: Maker, make_module: Maker) -> None:
    data = make_data()
    module = make_module(data, compile=True)
    model, names = module.model.eval(), list(module.state_dict())  # no dropout
    torch._dynamo.reset()
    counters.clear()
    pairs, fused = data.split("train"), compiled(token_loss)
    # The first has sides of equal length, or not; rows and lengths of all kinds come after it.
    for rows in (range(2), range(5), range(3, 30), range(40, 90, 7), range(100)):
        batch = pairs[list(rows)]
        wanted = token_loss(model, batch, 0.1)
        wanted.smoothed.backward()
        gradients = {name: p.grad.clone() for name, p in model.named_parameters()}
        model.zero_grad()
        found = fused(model, batch, 0.1)
        found.smoothed.backward()
        assert found.tokens == wanted.tokens
        assert found.smoothed.item() == pytest.approx(wanted.smoothed.item(), rel=1e-5)
        for name, p in model.named_parameters():
            torch.testing.assert_close(p.grad, gradients[name], rtol=1e-3, atol=1e-4)
        model.zero_grad()
        assert counters["stats"]["unique_graphs"] <= GRAPHS
    assert not any("_orig_mod" in name for name in names)
    assert names == list(make_module(data).state_dict())
    assert list(module.state_dict()) == names
