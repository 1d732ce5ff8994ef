"""Every command in the README runs as printed, and the default run learns what it claims."""

import json
from pathlib import Path

import pytest
from tests.checkout import commands, copy_checkout, run

# Run by what runs this test.
NOT_HERE = {"make test"}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_checkout(tmp_path_factory.mktemp("clone"))


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
