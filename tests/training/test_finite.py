"""A loss that is no number: which pairs it came from, and what becomes of the update."""

import logging
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.conftest import Maker

from zhen.data import CleanOptions
from zhen.errors import UserError
from zhen.training import module as training
from zhen.training.finite import FiniteLoss
from zhen.training.loss import TokenLoss, token_loss

NAN, ONE = torch.tensor(float("nan")), torch.tensor(1.0)


def finite(action: Any) -> FiniteLoss:
    return FiniteLoss(action, lambda pairs: f"pairs {pairs}")


def test_an_update_is_made_again_once_its_losses_are_finite() -> None:
    losses = finite("skip")
    losses.note(1, ONE, [0])
    losses.note(1, NAN, [1])
    assert not losses.good()
    losses.note(2, ONE, [2])
    assert losses.good()


def test_stop_names_the_first_pairs() -> None:
    losses = finite("stop")
    losses.note(7, ONE, [0])
    losses.note(8, NAN, [1, 2])
    with pytest.raises(UserError, match=r"loss of update 8 is nan for pairs \[1, 2\]; the last"):
        losses.good()


def test_a_checkpoint_in_the_middle_of_an_update() -> None:
    """A validation between two micro-batches writes one."""
    stopping, skipping = finite("stop"), finite("skip")
    for each in (stopping, skipping):
        each.note(1, NAN, [1])
    with pytest.raises(UserError):
        stopping.check()
    skipping.check()
    skipping.note(1, ONE, [2])
    assert not skipping.good()  # not forgotten


def poison(monkeypatch: pytest.MonkeyPatch, number: int) -> list[list[int]]:
    """Makes the loss of the n-th batch NaN; gives the pairs of that batch."""
    calls, pairs = 0, []

    def call(model: Any, batch: Any, smoothing: float) -> TokenLoss:
        nonlocal calls
        found = token_loss(model, batch, smoothing)
        calls += 1
        if calls != number:
            return found
        pairs.append(batch.indices)
        return TokenLoss(found.smoothed * float("nan"), found.nll, found.tokens)

    monkeypatch.setattr(training, "token_loss", call)
    return pairs


@pytest.mark.parametrize("accumulate", [1, 2])
def test_a_skipped_update_leaves_the_weights(
    make_data: Maker,
    make_module: Maker,
    make_trainer: Maker,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    accumulate: int,
) -> None:
    poison(monkeypatch, 1)
    data = make_data()
    module = make_module(data, nonfinite_loss="skip")
    before = {name: p.detach().clone() for name, p in module.named_parameters()}
    with caplog.at_level(logging.WARNING, "zhen"):
        for batches in (accumulate, 2 * accumulate):
            trainer = make_trainer(
                limit_val_batches=0, limit_train_batches=batches, accumulate_grad_batches=accumulate
            )
            trainer.fit(module, datamodule=data)
            same = all(torch.equal(p, before[name]) for name, p in module.named_parameters())
            assert same is (batches == accumulate)
            assert all(p.isfinite().all() for p in module.parameters())
    assert caplog.text.count("the update is skipped") == 1


def test_pairs_have_their_numbers_in_the_corpus(
    make_data: Maker,
    make_module: Maker,
    make_trainer: Maker,
    monkeypatch: pytest.MonkeyPatch,
    tsv: dict[str, Path],
    tmp_path: Path,
) -> None:
    """Which are others than those of the pairs that cleaning leaves."""
    lines = tsv["train"].read_text(encoding="utf-8").splitlines(keepends=True)
    doubled = tmp_path / "doubled.tsv"
    doubled.write_text("".join([lines[0]] * 3 + lines[1:]), encoding="utf-8")
    data = make_data(train=str(doubled), clean=CleanOptions(duplicates=True))
    poisoned = poison(monkeypatch, 2)
    with pytest.raises(UserError) as refused:
        make_trainer(limit_val_batches=0).fit(make_module(data), datamodule=data)
    numbers = [i + 2 if i else 0 for i in poisoned[0]]
    first = f"{doubled}:{numbers[0] + 1}"
    wanted = f"pairs {', '.join(map(str, numbers))} of data.train (counted from 0; {first} first);"
    assert wanted in str(refused.value)
