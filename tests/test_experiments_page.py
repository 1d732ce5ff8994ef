"""docs/experiments.md: its commands run as printed, but for the name of a run."""

from pathlib import Path

import pytest
from tests.checkout import commands, copy_checkout, run

SAID = {
    "make compare RUNS=idea": "val/bleu mean",
    "make compare RUNS=idea BASE=RUN OUT=runs/idea.html": "bleu significant",
}


@pytest.mark.slow
def test_every_command_runs_as_printed(tmp_path: Path) -> None:
    checkout = copy_checkout(tmp_path)
    for command in commands("docs/experiments.md"):
        runs = sorted((checkout / "runs" / "idea").glob("*")) or [Path("none")]
        done = run(command.replace("RUN ", f"{runs[0].name} "), checkout)
        assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        assert SAID.get(command, "") in done.stdout, command
    assert (checkout / "runs/idea.html").stat().st_size > 1_000_000
