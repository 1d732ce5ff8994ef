"""docs/experiments.md: its commands run as printed."""

from pathlib import Path

import pytest
from tests.checkout import commands, copy_checkout, run


@pytest.mark.slow
def test_every_command_runs_as_printed(tmp_path: Path) -> None:
    checkout = copy_checkout(tmp_path)
    for command in commands("docs/experiments.md"):
        done = run(command, checkout)
        assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        if command.startswith("make reproduce"):
            assert "The same scores and translations as" in done.stdout
