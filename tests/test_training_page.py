"""docs/training.md: its commands run as printed, but for the name of a run.

That of torchrun does in test_ranks.py.
"""

import re
from pathlib import Path

import pytest
from tests.checkout import ROOT, commands, copy_checkout, run

from zhen.compose import compose

SAID = {
    "make train ckpt=last trainer.max_steps=30": "30 updates",
    "make train resume=last": "is finished",
    "make evaluate weights=raw": "raw weights",
    "make train debug=profile": "Run directory",
}


@pytest.mark.slow
def test_every_command_runs_as_printed(tmp_path: Path) -> None:
    checkout = copy_checkout(tmp_path)
    for command in commands("docs/training.md"):
        runs = sorted((checkout / "runs" / "debug").glob("*")) or [Path("none")]
        done = run(command.replace("RUN", runs[0].name), checkout)
        assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        assert SAID.get(command, "BLEU") in done.stdout, command


def test_srun_starts_as_many_processes_as_there_are_ranks() -> None:
    page = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"^    srun (.*)$", page, re.MULTILINE)
    options, words = line.split(" python -m zhen.train ")
    started = dict(re.findall(r"--(\S+)=(\d+)", options))
    trainer = compose("train", words.split()).trainer
    assert started == {"nodes": str(trainer.num_nodes), "ntasks-per-node": str(trainer.devices)}
