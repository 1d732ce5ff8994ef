"""A compiled training: as many compilations as are planned, the same numbers and checkpoints."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.conftest import Maker
from torch._dynamo.utils import counters
from torch.nn import functional as F

from zhen.data import Batch
from zhen.model import Transformer
from zhen.model.dropout import Dropout
from zhen.training.compiled import compiled
from zhen.training.devices import described, missing_for_compile
from zhen.training.loss import TokenLoss, token_loss
from zhen.translator import Translator

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        missing_for_compile("cpu") is not None, reason=f"there is no {missing_for_compile('cpu')}"
    ),
]
GRAPHS = 3  # of one form: the mask, the model, the loss
SEVERAL = [range(2), range(5), range(3, 30), range(40, 90, 7), range(100)]
SINGLE = [range(1), range(30, 31), range(99, 100)]


@pytest.fixture(autouse=True)
def nothing_is_compiled_yet() -> None:
    torch._dynamo.reset()
    counters.clear()


def pytorchs_dropout(self: Dropout, x: torch.Tensor) -> torch.Tensor:
    """What `Dropout` is where it is compiled; its own bits would drop other units."""
    return F.dropout(x, self.p, self.training)


def check_loss(compiled_loss: Callable[..., TokenLoss], model: Transformer, batch: Batch) -> None:
    """That it is the loss of what is not compiled, and its gradient that gradient."""
    found, gradients = [], []
    for loss in (compiled_loss, token_loss):
        model.zero_grad()
        torch.manual_seed(0)
        with pytest.MonkeyPatch.context() as patch:
            if loss is token_loss:
                patch.setattr(Dropout, "forward", pytorchs_dropout)
            found.append(loss(model, batch, 0.1))
        found[-1].smoothed.backward()
        gradients.append({name: p.grad for name, p in model.named_parameters()})
    assert found[0].tokens == found[1].tokens
    assert found[0].smoothed.item() == pytest.approx(found[1].smoothed.item(), rel=1e-5)
    torch.testing.assert_close(*gradients, rtol=1e-3, atol=1e-4)


def test_a_training_learns_and_keeps_the_same(
    make_data: Maker, make_module: Maker, make_trainer: Maker, tmp_path: Path
) -> None:
    """With dropout, and compiled once for batches of any shape."""

    def fit(compile: bool) -> Any:
        module = make_module(
            data := make_data(), compile=compile, label_smoothing=0.1,
            optimizer=lambda groups: torch.optim.SGD(groups, 0.1),
        )  # fmt: skip
        trainer = make_trainer(max_epochs=-1, max_steps=3, limit_val_batches=0)
        trainer.fit(module, datamodule=data)
        trainer.save_checkpoint(tmp_path / f"{compile}.ckpt")
        assert described(trainer, tf32=False, compile=compile) == (
            f"1 rank x cpu, 32-true{', compiled' if compile else ''}"
        )
        return module

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Dropout, "forward", pytorchs_dropout)
        fit(compile=False)
    # Else what is compiled draws its random numbers in a way of its own.
    with torch._inductor.config.patch(fallback_random=True):
        module = fit(compile=True)
        pairs = module.trainer.datamodule.split("train")
        for rows in SEVERAL:
            check_loss(module._training_loss, module.model, pairs[list(rows)])
    assert 0 < counters["stats"]["unique_graphs"] <= GRAPHS

    plain, ours = (
        torch.load(tmp_path / f"{name}.ckpt", weights_only=True) for name in (False, True)
    )
    assert list(ours["state_dict"]) == list(plain["state_dict"])
    torch.testing.assert_close(ours["state_dict"], plain["state_dict"], rtol=1e-4, atol=1e-5)
    translator = Translator.load(tmp_path / "True.ckpt")
    for name, weight in translator.model.state_dict().items():
        assert torch.equal(weight, ours["state_dict"][f"model.{name}"])


def test_a_single_row_is_compiled_once_more(
    make_data: Maker, make_module: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the C++, which takes most of the time, but none of these decisions."""
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))
    data = make_data()
    model, pairs, loss = make_module(data).model, data.split("train"), compiled(token_loss)
    # In the first, both sides are of one length, which must not become a rule.
    first = pairs[[0, 1]]
    more = first.target.size(1) - first.source.size(1)
    first = replace(first, source=F.pad(first.source, (0, more), value=model.pad_id))
    for batch in (first, *(pairs[list(rows)] for rows in (*SEVERAL, *SINGLE))):
        check_loss(loss, model, batch)
        forms = 1 if len(batch.indices) > 1 else 2
        assert counters["stats"]["unique_graphs"] <= forms * GRAPHS
