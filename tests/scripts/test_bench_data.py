"""The benchmark of the data runs as a whole, and its numbers mean what they say."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scripts import bench_data
from scripts.synthetic import write_tsv

from zhen.data.batching import plan_epoch


@pytest.fixture
def rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> dict[str, tuple[str, str]]:
    """What it prints for a small corpus, each step in this process."""
    monkeypatch.setattr(bench_data, "alone", lambda step, *arguments: step(*arguments))
    write_tsv(tmp_path / "own.tsv", 300, seed=5)
    words = f"--pairs 500 --vocab-size 3000 --updates 2 --corpus {tmp_path}/own.tsv"
    bench_data.main([*words.split(), "--folder", str(tmp_path)])
    assert [path.name for path in tmp_path.iterdir()] == ["own.tsv"]  # it leaves nothing
    about, table = capsys.readouterr().out.split("\n\n")
    assert "500 generated pairs" in about and "torch" in about
    header, rule, *lines = table.splitlines()
    assert header == "| what | measured | wanted |" and rule == "|---|---|---|"
    found = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines]
    return {what: (measured, wanted) for what, measured, wanted in found}


@pytest.mark.slow
def test_every_step_has_its_rows(rows: dict[str, tuple[str, str]]) -> None:
    assert [re.sub(r"\d(?:[\d,]*\d)?", "N", what) for what in rows] == [
        "preparation",
        "most memory",
        "memory added, bytes a pair",
        "pairs kept",
        "second start",
        "plan of N pairs, N batches for each of N ranks",
        "plan of N pairs, N batches for each of N ranks",
        "real pieces in N",
        "work of N ranks, most / mean",
        "training, target pieces",
        "loader alone, target pieces",
        "loader / training",
        "own.tsv with N pairs: real pieces in N",
        "own.tsv with N pairs: work of N ranks, most / mean",
    ]
    kept, _ = rows["pairs kept"]
    assert kept.endswith(" of 500") and 400 < int(kept.split()[0]) <= 500  # cleaned, too
    seconds, *steps, microseconds = (
        float(number.replace(",", ""))
        for number in re.findall(r"\d[\d.,]*", rows["preparation"][0])
    )
    assert len(steps) == 5 and seconds == pytest.approx(sum(steps), abs=0.3)
    assert microseconds == pytest.approx(1e6 * seconds / 500, rel=0.1, abs=200)
    added, *steps = (
        int(number.replace(",", ""))
        for number in re.findall(r"\d[\d,]*", rows["memory added, bytes a pair"][0])
    )
    assert len(steps) == 5 and added == pytest.approx(sum(steps), abs=3)
    training, updates, loader, ratio = (
        float(number.replace(",", ""))
        for what in ("training, target pieces", "loader alone, target pieces", "loader / training")
        for number in re.findall(r"\d[\d,]*", rows[what][0])
    )
    assert updates == 2 and ratio == pytest.approx(loader / training, rel=0.01)


def test_share_and_work_are_those_of_the_batches() -> None:
    lengths = np.random.default_rng(0).integers(1, 20, (300, 2))
    plan = plan_epoch(lengths, tokens=200, seed=0, epoch=0, world_size=8)
    by_hand = np.array(
        [
            [len(pairs := plan.batch(rank, i).indices) * lengths[pairs].max(axis=0).sum()
             for rank in range(8)]
            for i in range(len(plan))
        ]
    )  # fmt: skip
    assert np.array_equal(bench_data.padded(plan, lengths), by_hand)
    _, found, wanted = bench_data.work_row(lengths, 200, 8)
    ratio = by_hand.max(axis=1) / by_hand.mean(axis=1)
    assert found == f"{ratio.mean():.3f}, at most {ratio.max():.3f} in {len(plan)} updates"
    assert wanted == "at most 1.05"
    alone = plan_epoch(lengths, tokens=200, seed=0, epoch=0)
    share = lengths.sum() / bench_data.padded(alone, lengths).sum()
    assert bench_data.real_row(lengths, 200, "")[1] == f"{share:.3f}"


def test_steps_run_in_processes_of_their_own() -> None:
    assert bench_data.alone(divmod, 7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        bench_data.alone(divmod, 7, 0)


@pytest.mark.parametrize("words", [["--pairs", "0"], ["--updates", "x"], ["--unknown"]])
def test_a_wrong_argument_is_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        bench_data.parse(words)
    assert words[0] in capsys.readouterr().err


def test_made_up_pairs_are_the_same_each_time_and_like_real_ones(tmp_path: Path) -> None:
    contents = []
    for name, pairs, seed in (("a", 2000, 0), ("b", 2000, 0), ("c", 2000, 1)):
        write_tsv(tmp_path / name, pairs, seed)
        contents.append((tmp_path / name).read_text(encoding="utf-8"))
    assert contents[0] == contents[1] != contents[2]
    lines = contents[0].removesuffix("\n").split("\n")
    sides: Any = [line.split("\t") for line in lines]
    assert len(sides) == 2000 and {len(pair) for pair in sides} == {2}
    assert all(re.fullmatch("[一-鿿]+。", source) for source, _ in sides)
    assert all(re.fullmatch(r"[a-z ]+\.", target) for _, target in sides)
    words = np.array([len(target.split()) for _, target in sides])
    characters = np.array([len(source) - 1 for source, _ in sides])
    assert 10 < np.median(words) < 14 and 80 >= words.max() > 40
    ratio = np.log(characters / words)
    assert 0.15 < ratio.std() < 0.45
