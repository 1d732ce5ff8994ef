"""Learning-rate schedules against their formulas, and in a real training."""

import math

import pytest
import torch
from tests.conftest import Maker

from zhen.data import BatchOptions
from zhen.errors import UserError
from zhen.training.schedule import Constant, Cosine, InverseSqrt, Linear


@pytest.mark.parametrize(("d_model", "warmup"), [(512, 4000), (1024, 4000), (128, 1)])
def test_inverse_sqrt_is_the_papers_equation_3(d_model: int, warmup: int) -> None:
    schedule, peak = InverseSqrt(warmup), (d_model * warmup) ** -0.5
    for update in (1, 2, warmup - 1, warmup, warmup + 1, 100_000):
        if update < 1:
            continue
        paper = d_model**-0.5 * min(update**-0.5, update * warmup**-1.5)
        assert peak * schedule(update, None) == pytest.approx(paper, rel=1e-12)


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
    found = {update: schedule(update, 14) for update in wanted}
    assert found == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Constant(-1), "`warmup_updates` must be at least 0, but is -1"),
        (lambda: Linear(4, 4, 0.0), "`total_updates` must be above `warmup_updates` (4), but is 4"),
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
        schedule(1, None)


class Recorder(torch.optim.SGD):
    """Notes the learning rate of each update that is made."""

    def step(self, closure=None):  # type: ignore[no-untyped-def]
        self.used = [*getattr(self, "used", []), self.param_groups[0]["lr"]]
        return super().step(closure)


@pytest.mark.parametrize("accumulate", [1, 3])
@pytest.mark.parametrize("schedule", [InverseSqrt(2), Cosine(2, None, 0.1)], ids=["sqrt", "cosine"])
def test_learning_rate_follows_updates_in_a_real_training(
    make_data: Maker, make_module: Maker, make_trainer: Maker, schedule: Constant, accumulate: int
) -> None:
    data = make_data(batch=BatchOptions(tokens=66, eval_tokens=64))
    module = make_module(data, optimizer=lambda groups: Recorder(groups, lr=0.5), schedule=schedule)
    trainer = make_trainer(
        max_epochs=2, accumulate_grad_batches=accumulate, limit_val_batches=0, limit_train_batches=6
    )
    trainer.fit(module, datamodule=data)
    updates = trainer.global_step
    wanted = [0.5 * schedule(update, updates) for update in range(1, updates + 1)]
    assert updates == 12 / accumulate
    assert trainer.optimizers[0].used == pytest.approx(wanted)
