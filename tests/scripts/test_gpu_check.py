"""The check for a GPU is tried on the CPU, where it does all that it will do there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[2]


def run(*words: str) -> "subprocess.CompletedProcess[str]":
    paths = [str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    # Compiling at a tiny size takes longer than all the rest.
    env = os.environ | {
        "COMPILED": "",
        "PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(paths),
    }
    command = ["scripts/gpu_check.sh", *words]
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=600)


@pytest.mark.slow
def test_the_whole_script_on_the_cpu() -> None:
    done = run("--smoke")
    assert done.returncode == 0, done.stdout + done.stderr
    tests, bench = done.stdout.split("## model=tiny")
    assert "passed" in tests and "skipped" not in tests and "failed" not in tests
    rows = [line for line in bench.splitlines() if line.startswith("| ")]
    assert [row.split("|")[1].strip() for row in rows] == [
        "contestant", "zhen", "zhen compiled", "MarianMT by length",
    ]  # fmt: skip
    assert "bf16-mixed" in bench and "billion operations a second" in bench
    assert ["%" in row for row in rows[1:]] == [True, False, True], bench


@pytest.mark.parametrize("words", [["--fast"], []])
def test_what_it_cannot_do_is_one_line(words: list[str]) -> None:
    if not words and torch.cuda.is_available():
        pytest.skip("it would run")
    done = run(*words)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1
    assert "--smoke" in done.stderr
