"""clock.csv: how far the training had come at what time, also where a run went on."""

import csv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from zhen.training.clock import COLUMNS, Clock

Maker = Callable[..., Any]


def rows(folder: Path) -> list[dict[str, float]]:
    with (folder / "clock.csv").open(encoding="utf-8", newline="") as file:
        return [{key: float(value) for key, value in row.items()} for row in csv.DictReader(file)]


def tokens_of_updates(data: Any, accumulation: int) -> list[int]:
    """Of the first epoch's plan."""
    batches = list(data.train_dataloader())
    return [batches[i].update_tokens for i in range(0, len(batches), accumulation)]


@pytest.mark.parametrize("accumulation", [1, 2])
def test_a_row_where_numbers_are_logged(
    make_data: Maker, make_module: Maker, make_trainer: Maker, tmp_path: Path, accumulation: int
) -> None:
    data = make_data()
    trainer = make_trainer(
        callbacks=[Clock(str(tmp_path))],
        accumulate_grad_batches=accumulation,
        log_every_n_steps=2,
        max_epochs=1,
    )
    trainer.fit(make_module(data), datamodule=data)
    found = rows(tmp_path)
    assert tuple(found[0]) == COLUMNS
    tokens = tokens_of_updates(data, accumulation)
    assert len(tokens) == trainer.global_step
    last = found[-1]
    assert last["update"] == trainer.global_step and last["target_tokens"] == sum(tokens)
    assert {row["update"] for row in found} >= set(range(2, trainer.global_step + 1, 2))
    for row in found:
        assert row["target_tokens"] == sum(tokens[: int(row["update"])])
    for key in COLUMNS:
        values = [row[key] for row in found]
        assert values == sorted(values)
    # The validation at the end took some of the time.
    assert 0 < last["seconds_validating"] < last["seconds"]


@dataclass
class At:
    """As much of a trainer as a clock looks at."""

    global_step: int
    is_global_zero: bool = True
    log_every_n_steps: int = 1


def test_a_run_that_goes_on_counts_on_and_forgets_what_came_after_the_checkpoint(
    tmp_path: Path,
) -> None:
    (tmp_path / "clock.csv").write_text(
        ",".join(COLUMNS) + "\n2,150,40.0,1.0\n3,200,60.0,1.5\n4,999,80.0,2.0\n5,9"
    )
    clock: Any = Clock(str(tmp_path))
    clock.on_train_start(At(3), None)
    for update, batch_idx in ((3, 6), (4, 7)):  # two micro-batches of an update
        clock.on_train_batch_end(
            At(update), None, None, SimpleNamespace(update_tokens=70), batch_idx
        )
    kept, going_on, new = rows(tmp_path)
    assert (kept["update"], kept["target_tokens"]) == (2, 150)
    assert (going_on["update"], going_on["target_tokens"], going_on["seconds"]) == (3, 200, 60)
    assert (new["update"], new["target_tokens"], new["seconds_validating"]) == (4, 270, 1.5)
    assert 60 <= new["seconds"] < 70


def test_a_checkpoint_between_two_rows_gets_a_row_of_its_own(tmp_path: Path) -> None:
    clock: Any = Clock(str(tmp_path))
    clock.on_train_start(At(0, log_every_n_steps=10), None)
    clock.on_train_batch_end(
        At(1, log_every_n_steps=10), None, None, SimpleNamespace(update_tokens=70), 0
    )
    assert rows(tmp_path) == []
    for _ in range(2):
        clock.on_save_checkpoint(At(1), None, {})
    assert [(row["update"], row["target_tokens"]) for row in rows(tmp_path)] == [(1, 70)]


def test_only_rank_0_writes(tmp_path: Path) -> None:
    clock: Any = Clock(str(tmp_path))
    clock.on_train_start(At(0, is_global_zero=False), None)
    clock.on_save_checkpoint(At(0, is_global_zero=False), None, {})
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_was_begun_without_a_clock_has_none(tmp_path: Path) -> None:
    clock: Any = Clock(str(tmp_path))
    clock.on_train_start(At(7), None)
    clock.on_validation_start(At(7), None)
    clock.on_validation_end(At(7), None)
    clock.on_save_checkpoint(At(7), None, {})
    assert list(tmp_path.iterdir()) == []
