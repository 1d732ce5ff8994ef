"""docs/experiments.md: its commands run as printed, one after the other, with real trainings."""

import json
from pathlib import Path

import pytest
import yaml
from omegaconf import OmegaConf
from tests.checkout import commands, copy_checkout, run

PAGE = "docs/experiments.md"
SAID = {
    "make compare RUNS=idea": "val/bleu mean",
    "make compare RUNS=idea BASE=idea/base OUT=runs/idea.html": "bleu significant",
    "make reproduce RUN=last": "The same scores and translations as",
}


@pytest.mark.slow
def test_every_command_runs_as_printed(tmp_path: Path) -> None:
    checkout, found = copy_checkout(tmp_path), commands(PAGE)
    assert set(SAID) <= set(found)
    for command in found:
        done = run(command, checkout)
        assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        assert SAID.get(command, "") in done.stdout, command
        if command.startswith("make sweep"):
            assert "\nThe sweep " in done.stdout and " finished " in done.stdout, command
    assert (checkout / "runs/idea.html").stat().st_size > 1_000_000
    check_sweeps(checkout)
    check_repeats_in_a_sweep(checkout)


def check_repeats_in_a_sweep(checkout: Path) -> None:
    """Its own runs are seeds of one setting, also as the baseline."""
    (sweep,) = (path.parent for path in checkout.glob("runs/idea/*/sweep.yaml"))
    done = run(f"make compare RUNS=idea BASE={sweep.name}-2", checkout)
    assert done.returncode == 0, done.stderr
    head, *rows = (line.split("\t") for line in done.stdout.split("\n\n")[1].splitlines())
    found = [dict(zip(head, row, strict=True)) for row in rows]
    others, ours = sorted(found, key=lambda row: row["optimizer.lr"])
    assert (ours["optimizer.lr"], ours["seeds"], others["seeds"]) == ("0.01", "2", "2")
    gap = float(others["val/loss mean"]) - float(ours["val/loss mean"])
    assert float(others["val/loss difference"]) == pytest.approx(gap, abs=0.0011)
    assert ours["val/loss difference"] == ""


def check_sweeps(checkout: Path) -> None:
    grid, search = sorted(path.parent for path in checkout.glob("runs/debug/*/sweep.yaml"))
    assert len(yaml.safe_load((grid / "sweep.yaml").read_text())["jobs"]) == 2
    jobs = yaml.safe_load((search / "sweep.yaml").read_text())["jobs"]
    assert len(jobs) == 3  # two, and one more
    for number, words in enumerate(jobs, start=1):
        config = OmegaConf.load(search.with_name(f"{search.name}-{number}") / "config.yaml")
        assert f"model.d_model={config.model.d_model}" in words
        assert f"optimizer.lr={config.optimizer.lr}" in words
        assert f"model.dropout={config.model.dropout}" in words
    shares = json.loads((search / "importances.json").read_text())
    assert shares.keys() == {"model.d_model", "optimizer.lr", "model.dropout"}
