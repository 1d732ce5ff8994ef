"""`make bench` finds the bench that is asked for, and says in one line what there is."""

import subprocess
import sys
from pathlib import Path

import pytest
from scripts import bench

from zhen.errors import UserError

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("what", bench.BENCHES)
def test_each_bench_has_its_own_help(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        bench.main([what, "--help"])
    assert capsys.readouterr().out.startswith(f"usage: bench {what}")


def test_help_names_them_all(capsys: pytest.CaptureFixture[str]) -> None:
    bench.main(["--help"])
    out = capsys.readouterr().out
    assert all(f"ARGS='{what} " in out for what in bench.BENCHES)


@pytest.mark.parametrize("words", [[], ["runs/best.ckpt"]])
def test_anything_else_is_refused_in_one_line(words: list[str]) -> None:
    with pytest.raises(
        UserError, match=r"^bench: say what to measure, decode or data or train, .*: make"
    ):
        bench.main(words)


@pytest.mark.slow
def test_as_a_command_it_prints_the_line_alone() -> None:
    command = [sys.executable, "scripts/bench.py", "decode", "nowhere.ckpt"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr == "error: ckpt: nowhere.ckpt does not exist; give a checkpoint's path\n"
