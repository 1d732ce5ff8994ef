"""bf16-mixed learns as 32-true does, and keeps in float32 what needs it."""

from typing import Any

import pytest
import torch
from tests.conftest import Maker
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from zhen.data import BatchOptions
from zhen.training.devices import described
from zhen.training.loss import token_loss

TOLERANCE = 0.002  # of the loss after 100 updates: the relative difference


class Seen(TorchDispatchMode):
    """Which types each operator of a training step gives."""

    def __init__(self) -> None:
        super().__init__()
        self.types: dict[str, set[torch.dtype]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        first = found[0] if isinstance(found, tuple) else found
        if isinstance(first, torch.Tensor) and first.is_floating_point():
            name = func.overloadpacket.__name__
            self.types.setdefault(name, set()).add(first.dtype)
        return found


def test_losses_agree_after_100_updates(
    make_data: Maker, make_module: Maker, make_trainer: Maker
) -> None:
    losses = {}
    for precision in ("32-true", "bf16-mixed"):
        data = make_data(batch=BatchOptions(tokens=900, eval_tokens=1024))
        module = make_module(data, optimizer=lambda groups: torch.optim.Adam(groups, lr=3e-3))
        trainer = make_trainer(
            precision=precision, max_epochs=-1, max_steps=100, check_val_every_n_epoch=None,
            val_check_interval=100,
        )  # fmt: skip
        trainer.fit(module, datamodule=data)
        losses[precision] = module.validation.loss
        assert all(p.dtype == torch.float32 for p in module.parameters())
        assert described(trainer, tf32=False, compile=False) == f"1 rank x cpu, {precision}"
    assert losses["32-true"] < 4.5  # from 6: it has learned
    assert losses["bf16-mixed"] == pytest.approx(losses["32-true"], rel=TOLERANCE)
    assert losses["bf16-mixed"] != losses["32-true"]


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_norms_softmax_and_loss_are_float32(
    make_data: Maker, make_module: Maker, norm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = make_data()
    module = make_module(data)
    model = type(module.model)(**{**module.model.config, "norm": norm})
    batch = next(iter(data.train_dataloader()))
    attended, real = set(), F.scaled_dot_product_attention

    def attend(query: torch.Tensor, *arguments: Any, **named: Any) -> torch.Tensor:
        attended.add(query.dtype)
        return real(query, *arguments, **named)

    monkeypatch.setattr(F, "scaled_dot_product_attention", attend)
    with Seen() as seen, torch.autocast("cpu", torch.bfloat16):
        loss = token_loss(model, batch, 0.1)
        loss.smoothed.backward()
    assert attended == {torch.float32}  # whose softmax is inside
    assert torch.bfloat16 in seen.types["mm"] | seen.types.get("addmm", set())  # it is mixed
    for name in (
        "native_layer_norm",
        "_log_softmax",
        "nll_loss_forward",
        "exp_",  # of the log-probabilities, for the loss's gradient
    ):
        assert seen.types[name] == {torch.float32}, name
    assert loss.smoothed.dtype == torch.float32
    assert all(p.grad.dtype == torch.float32 for p in model.parameters() if p.grad is not None)
