"""docs/experiments.md, "Comparing runs": its commands run as printed."""

from pathlib import Path

import pytest
from tests.checkout import ROOT, commands, copy_checkout, run

PAGE = "docs/experiments.md"
SAID = {
    "make compare RUNS=idea": "val/bleu mean",
    "make compare RUNS=idea BASE=idea/base OUT=runs/idea.html": "bleu significant",
}


def section(title: str) -> str:
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    return text.partition(f"## {title}\n")[2].partition("\n## ")[0]


@pytest.mark.slow
def test_every_command_runs_as_printed(tmp_path: Path) -> None:
    checkout, text = copy_checkout(tmp_path), section("Comparing runs")
    found = [command for command in commands(PAGE) if f"\n{command}\n" in text]
    assert set(SAID) <= set(found)
    for command in found:
        done = run(command, checkout)
        assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        assert SAID.get(command, "") in done.stdout, command
    assert (checkout / "runs/idea.html").stat().st_size > 1_000_000
