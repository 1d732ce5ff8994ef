"""A copy of the checkout, to run the commands of a page in, so that no run of the developer's is
touched. The interpreter is that of the tests: setting up a `.venv` is test_makefile's business.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def commands(page: str) -> list[str]:
    """The lines of the page's bash blocks, in order."""
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = re.findall(r"```bash\n(.*?)```", text, flags=re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line]


def copy_checkout(folder: Path) -> Path:
    """A checkout below `folder`, ready for make."""
    copy = folder / "zhen"
    copy.mkdir()
    for name in ("configs", "data", "scripts", "src"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
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
    """Run one line of a page."""
    home = checkout.parent / "home"
    home.mkdir(exist_ok=True)
    not_a_users = ("MAKE", "ZHEN_", "WANDB_", "OMP_")
    env = {k: v for k, v in os.environ.items() if not k.startswith(not_a_users)}
    return subprocess.run(
        ["bash", "-c", command],
        cwd=checkout,
        env=env | {"HOME": str(home)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=900,
    )
