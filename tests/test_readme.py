"""Every command in the README runs as printed, and the default run learns what it claims.

The commands run in a copy of the checkout, so that no run of the developer's is touched, with the
interpreter that runs the tests: setting up a `.venv` is test_makefile's business.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# Run by what runs this test.
NOT_HERE = {"make test"}


def commands(page: str) -> list[str]:
    """The lines of the page's bash blocks, in order."""
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = re.findall(r"```bash\n(.*?)```", text, flags=re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = tmp_path_factory.mktemp("clone") / "zhen"
    copy.mkdir()
    for folder in ("configs", "data", "scripts", "src"):
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("Makefile", "pyproject.toml", "requirements.lock", "README.md"):
        shutil.copy(ROOT / name, copy / name)
    python = copy / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{copy}/src" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    (copy / ".venv" / "pyvenv.cfg").write_text("")
    (copy / ".venv" / ".zhen-installed").write_text(str(copy.resolve()))
    return copy


def run(command: str, checkout: Path) -> subprocess.CompletedProcess[str]:
    home = checkout.parent / "home"
    home.mkdir(exist_ok=True)
    made_by_make = ("MAKE", "ZHEN_", "WANDB_")
    env = {k: v for k, v in os.environ.items() if not k.startswith(made_by_make)}
    return subprocess.run(
        ["bash", "-c", command],
        cwd=checkout,
        env=env | {"HOME": str(home)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=900,
    )


def test_the_two_first_commands_come_first() -> None:
    assert commands("README.md")[:2] == ["make train", "make test"]


def test_both_languages_print_the_same_commands() -> None:
    assert commands("README.md") == commands("README.zh-CN.md")


@pytest.mark.slow
def test_every_command_runs_as_printed(checkout: Path) -> None:
    for command in commands("README.md"):
        if command in NOT_HERE:
            continue
        done = run(command, checkout)
        assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        assert "Traceback" not in done.stderr, command
        if command == "make train":
            check_default_run(checkout, done.stdout)


def check_default_run(checkout: Path, printed: str) -> None:
    (path,) = (checkout / "runs" / "phrasebook").iterdir()
    results = json.loads((path / "results.json").read_text(encoding="utf-8"))
    assert results["test"]["seen"]["bleu"] >= 60
    assert results["peak_memory_gib"] <= 2
    assert printed.count("    -> ") == 10
    assert str(path) in printed
    assert printed.count("\n  make ") == 3
