"""Learning-rate schedules against their formulas, and in a real training."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightning as L
import pytest
import torch
from tests.conftest import Maker

from zhen.data import BatchOptions
from zhen.errors import UserError
from zhen.training.schedule import Constant, Cosine, InverseSqrt, Linear, Pace, Span, in_updates


def pace(updates: int | None = None) -> Pace:
    return Pace(updates, updates_per_epoch=50, tokens_per_update=2000.0)


@pytest.mark.parametrize(("d_model", "warmup"), [(512, 4000), (1024, 4000), (128, 1)])
def test_inverse_sqrt_is_the_papers_equation_3(d_model: int, warmup: int) -> None:
    schedule, peak = InverseSqrt(warmup), (d_model * warmup) ** -0.5
    for update in (1, 2, warmup - 1, warmup, warmup + 1, 100_000):
        if update < 1:
            continue
        paper = d_model**-0.5 * min(update**-0.5, update * warmup**-1.5)
        assert peak * schedule(update, pace()) == pytest.approx(paper, rel=1e-12)


def test_peak_of_the_papers_base_model() -> None:
    # What configs/scheduler/inverse_sqrt.yaml says.
    assert pytest.approx(6.99e-4, rel=1e-3) == (512 * 4000) ** -0.5


@pytest.mark.parametrize(
    ("schedule", "wanted"),
    [
        (Constant(4), {1: 0.25, 3: 0.75, 4: 1.0, 5: 1.0, 999: 1.0}),
        (Constant(0), {1: 1.0, 2: 1.0}),
        (InverseSqrt(4), {1: 0.25, 4: 1.0, 16: 0.5, 64: 0.25}),
        (InverseSqrt(0), {1: 1.0, 4: 0.5}),
        (Linear(4, None, 0.0), {1: 0.25, 4: 1.0, 9: 0.5, 14: 0.0, 20: 0.0}),
        (Linear(4, 8, 0.5), {2: 0.5, 4: 1.0, 6: 0.75, 8: 0.5, 14: 0.5}),
        (Linear(0, None, 0.0), {7: 0.5, 14: 0.0}),
        (Cosine(4, None, 0.0), {2: 0.5, 4: 1.0, 9: 0.5, 14: 0.0, 20: 0.0}),
        (Cosine(4, 8, 0.2), {4: 1.0, 5: 0.2 + 0.8 * (1 + math.sqrt(0.5)) / 2, 8: 0.2, 9: 0.2}),
    ],
    ids=str,
)
def test_curve(schedule: Constant, wanted: dict[int, float]) -> None:
    found = {update: schedule(update, pace(14)) for update in wanted}
    assert found == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Constant(-1),
            "`warmup` must be a number of updates, at least 0, or a text as",
        ),
        (lambda: Constant("2 weeks"), "or 400updates, but is 2 weeks"),
        (lambda: Constant("epochs"), "but is epochs"),
        (lambda: InverseSqrt("-1 epoch"), "but is -1 epoch"),
        (lambda: Linear(4, "1..5epochs", 0.0), "`length` must be a number of updates"),
        (lambda: Cosine(4, None, 1.5), "`min_ratio` must be from 0 to 1, but is 1.5"),
    ],
)
def test_refuses(make: type[Constant], message: str) -> None:
    with pytest.raises(ValueError) as refused:
        make()
    assert message in str(refused.value)


@pytest.mark.parametrize("schedule", [Linear(400, None, 0.0), Cosine(400, None, 0.0)])
def test_decay_without_an_end_is_refused_at_the_first_update(schedule: Linear) -> None:
    with pytest.raises(UserError, match="needs scheduler"):
        schedule(1, pace())


def test_a_decay_that_ends_before_it_begins() -> None:
    message = r"scheduler.length=1epoch is 50 updates, .* the 50 of scheduler.warmup=50"
    with pytest.raises(UserError, match=message):
        Linear(50, "1epoch", 0.0)(1, pace(100))
    # A run that ends within the warm-up is a trial.
    assert Linear(50, None, 0.0)(20, pace(20)) == 0.4


@pytest.mark.parametrize(
    ("span", "wanted"),
    [
        (0, 0),
        (400, 400),
        ("400", None),
        ("400 updates", 400),
        ("1update", 1),
        ("2 epochs", 100),
        ("0.5epoch", 25),
        ("1e6 tokens", 500),
        ("1000000tokens", 500),
        ("2.5e5 tokens", 125),
    ],
)
def test_spans_of_every_unit_in_updates(span: Span, wanted: int | None) -> None:
    if wanted is None:
        with pytest.raises(ValueError, match="must be a number of updates"):
            in_updates(span, pace())
    else:
        assert in_updates(span, pace()) == wanted


class Recorder(torch.optim.SGD):
    """Notes the learning rate of each update that is made."""

    def step(self, closure=None):  # type: ignore[no-untyped-def]
        self.used = [*getattr(self, "used", []), self.param_groups[0]["lr"]]
        return super().step(closure)


PEAK = 0.5
# The share at update u, where the warm-up ends at n and the decay at 2n.
FORMULAS: dict[str, tuple[Callable[..., Constant], Callable[[int, int], float]]] = {
    "sqrt": (lambda n, _: InverseSqrt(n), lambda u, n: min(u / n, math.sqrt(n / u))),
    "constant": (lambda n, _: Constant(n), lambda u, n: min(u / n, 1)),
    "linear": (lambda n, m: Linear(n, m, 0.1), lambda u, n: max(0.1, 1 - 0.9 * (u - n) / n)),
    "cosine": (
        lambda n, m: Cosine(n, m, 0.1),
        lambda u, n: 0.1 + 0.45 * (1 + math.cos(math.pi * min(1, (u - n) / n))),
    ),
}


@pytest.mark.parametrize("accumulate", [1, 4])
@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("sqrt", "updates"),
        ("sqrt", "tokens"),
        ("constant", "epochs"),
        ("linear", "updates"),
        ("cosine", "epochs"),
        ("cosine", "tokens"),
    ],
)
def test_learning_rate_follows_updates_in_a_real_training(
    make_data: Maker, make_module: Maker, make_trainer: Maker, name: str, unit: str, accumulate: int
) -> None:
    """Warm-up for one epoch and decay until the end of the second, of three."""
    data = make_data(max_length=16, batch=BatchOptions(tokens=210 // accumulate, eval_tokens=64))
    make, formula = FORMULAS[name]
    trainer = make_trainer(max_epochs=3, accumulate_grad_batches=accumulate, limit_val_batches=0)
    updates = 5  # of an epoch
    spans = {
        "updates": (updates, f"{2 * updates} updates"),
        "epochs": ("1 epoch", "2epochs"),
        "tokens": (f"{data.target_tokens}tokens", f"{2 * data.target_tokens} tokens"),
    }
    schedule = make(*spans[unit])
    module = make_module(
        data, optimizer=lambda groups: Recorder(groups, lr=PEAK), schedule=schedule
    )
    trainer.fit(module, datamodule=data)
    assert trainer.num_training_batches == updates * accumulate
    found = [rate / PEAK for rate in trainer.optimizers[0].used]
    assert found == pytest.approx(
        [min(u / updates, 1) if u < updates else formula(u, updates) for u in range(1, 16)]
    )


def test_a_run_that_is_made_longer_follows_the_longer_curve(
    make_data: Maker, make_module: Maker, make_trainer: Maker, tmp_path: Path
) -> None:
    """From its first update on."""
    used, ckpt = [], None
    for epochs in (1, 2):
        data = make_data(batch=BatchOptions(tokens=210, eval_tokens=64), max_length=16)
        module = make_module(
            data,
            optimizer=lambda groups: Recorder(groups, lr=PEAK),
            schedule=Linear(0, None, 0.0),
        )
        trainer = make_trainer(max_epochs=epochs, limit_val_batches=0)
        trainer.fit(module, datamodule=data, ckpt_path=ckpt)
        used += [rate / PEAK for rate in trainer.optimizers[0].used]
        ckpt = tmp_path / "x.ckpt"
        trainer.save_checkpoint(ckpt)
    first, then = [1 - u / 5 for u in range(1, 6)], [1 - u / 10 for u in range(6, 11)]
    assert used == pytest.approx([*first, *then])


def test_the_tokens_of_an_epoch_are_those_that_are_learned(
    make_data: Maker, make_module: Maker, make_trainer: Maker
) -> None:
    class Tokens(L.Callback):
        seen = 0

        def on_train_batch_end(self, *arguments: Any) -> None:
            self.seen += arguments[3].tokens

    data, tokens = make_data(), Tokens()
    trainer = make_trainer(limit_val_batches=0, callbacks=[tokens])
    trainer.fit(make_module(data), datamodule=data)
    assert data.target_tokens == tokens.seen


@pytest.mark.parametrize("length", [{"max_epochs": 1}, {"max_epochs": -1, "max_steps": 4}], ids=str)
def test_an_epoch_is_what_is_trained_of_it(
    make_data: Maker, make_module: Maker, make_trainer: Maker, length: dict[str, int]
) -> None:
    data = make_data(batch=BatchOptions(tokens=100, eval_tokens=64))
    module = make_module(data)
    trainer = make_trainer(
        limit_train_batches=7, accumulate_grad_batches=2, limit_val_batches=0, **length
    )
    trainer.fit(module, datamodule=data)
    found = module._pace()
    assert (found.updates, found.updates_per_epoch) == (4, 4)
    assert found.tokens_per_update * len(trainer.train_dataloader) / 2 == data.target_tokens
