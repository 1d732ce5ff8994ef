"""Several seeds of one setting: their mean, their spread, and what does not count as a repeat."""

import statistics
from pathlib import Path

import pytest
from tests.runs.made import make_run

from zhen.runs.comparison import Group, arranged, groups
from zhen.runs.record import read_run
from zhen.runs.repeats import Spread, repeats, setting_of
from zhen.runs.tables import of_repeats


def group_of(runs: Path) -> Group:
    read = [read_run(path, f"a/{path.name}") for path in sorted(runs.glob("a/*"))]
    (group,) = arranged(groups(read), "run")
    return group


def test_runs_that_differ_in_seed_alone_are_repeats(tmp_path: Path) -> None:
    for seed in (1, 2, 3):
        make_run(tmp_path, f"a/{seed}", f"seed={seed}")
    make_run(tmp_path, "a/4", "seed=4", "optimizer.lr=0.5")
    make_run(tmp_path, "a/5", "seed=5", about={"git": {"commit": "f" * 40, "dirty": False}})
    found = sorted(
        sorted(run.path.name for run in runs) for runs in repeats(group_of(tmp_path).runs).values()
    )
    assert found == [["1", "2", "3"], ["4"], ["5"]]  # other code is another setting


def test_the_same_seed_again_is_no_repeat(tmp_path: Path) -> None:
    make_run(tmp_path, "a/1", "seed=1", started="2026-11-30T15:00:00+00:00")
    make_run(tmp_path, "a/2", "seed=1", started="2026-11-30T16:00:00+00:00")
    make_run(tmp_path, "a/3", "seed=1", started="2026-11-30T17:00:00+00:00", state="crashed")
    make_run(tmp_path, "a/4", "seed=2", state="killed", val=())
    ((kept,),) = repeats(group_of(tmp_path).runs).values()
    assert kept.path.name == "2"  # the later one that was tested


def test_mean_deviation_and_difference() -> None:
    one, other = Spread((10.0, 12.0, 14.0)), Spread((20.0, 21.0))
    assert (one.mean, one.deviation) == (12.0, 2.0)
    delta, error = other.delta(one)
    assert delta == 8.5
    assert error == pytest.approx((4 / 3 + statistics.variance([20, 21]) / 2) ** 0.5)
    assert Spread((3.0,)).deviation is None
    assert Spread((3.0,)).delta(one) == (-9.0, None)


def test_the_table(tmp_path: Path) -> None:
    for seed, bleu in ((1, 20.0), (2, 22.0)):
        make_run(tmp_path, f"a/slow{seed}", f"seed={seed}", val=(1.0, bleu))
        make_run(tmp_path, f"a/fast{seed}", f"seed={seed}", "optimizer.lr=0.5", val=(1.0, bleu + 5))
    group = group_of(tmp_path)
    base = next(run for run in group.runs if run.path.name == "slow1")
    (table,) = of_repeats(group, base)
    keys = [head.key for head in table.heads]
    rows = {row[0]: dict(zip(keys, row, strict=True)) for row in table.rows}
    assert keys[0] == "optimizer.lr" and set(rows) == {"0.5", base.config["optimizer.lr"]}
    assert {key: value for key, value in rows["0.5"].items() if "val/bleu" in key} == {
        "val/bleu mean": "26.00",
        "val/bleu deviation": "1.41",
        "val/bleu difference": "5.00",
        "val/bleu error of difference": "1.41",
    }
    shown = next(row for row in table.shown if row[0] == "0.5")
    assert shown[2] == "26.00 ± 1.41" and shown[4] == "+5.00 ± 1.41"
    assert setting_of(base) in repeats(group.runs)


def test_no_table_without_repeats(tmp_path: Path) -> None:
    make_run(tmp_path, "a/1", "seed=1")
    make_run(tmp_path, "a/2", "seed=1", "optimizer.lr=0.5")
    assert of_repeats(group_of(tmp_path), None) == []
