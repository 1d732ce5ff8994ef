"""Where a run came from, as plain data."""

import json
import shlex
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from zhen.runs.provenance import command, git, packages, provenance


def test_everything_is_plain_json() -> None:
    found = provenance(OmegaConf.create({"seed": 0}), corpus={"train": "ab12"}, device="cpu")
    assert json.loads(json.dumps(found)) == found
    assert found["seed"] == 0 and found["corpus"] == {"train": "ab12"} and found["device"] == "cpu"
    assert found["packages"]["hydra-core"] == "1.3.8"
    assert found["python"] == sys.version.split()[0]
    assert datetime.fromisoformat(found["started"]).tzinfo is not None
    assert found["host"] and found["cpu"]["name"] and found["cpu"]["cores"] >= 1


def test_a_job_names_its_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    cfg = OmegaConf.create({"seed": 0})
    monkeypatch.delenv("ZHEN_SWEEP", raising=False)
    assert provenance(cfg, corpus={}, device="cpu")["sweep"] is None
    monkeypatch.setenv("ZHEN_SWEEP", "mine")
    assert provenance(cfg, corpus={}, device="cpu")["sweep"] == "mine"


def test_the_command_can_be_pasted(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ["data.train='a b.tsv'", "name=$x", "tags=[a,b]", "n=真"]
    monkeypatch.setattr(sys, "argv", ["train.py", *arguments])
    assert shlex.split(command())[-4:] == arguments
    assert shlex.split(command())[0] == "python"


def test_packages_are_sorted_and_complete() -> None:
    found = packages()
    assert list(found) == sorted(found, key=str.lower)
    assert {"torch", "lightning", "omegaconf", "pydantic"} <= set(found)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    def run(*arguments: str) -> None:
        subprocess.run(["git", "-C", str(tmp_path), *arguments], check=True, capture_output=True)

    run("init")
    (tmp_path / "file").write_text("x")
    run("add", "file")
    run("-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "-m", "first")
    return tmp_path


def test_the_commit_and_whether_files_differ(repository: Path) -> None:
    clean = git(repository)
    assert clean is not None and len(clean["commit"]) == 40 and clean["dirty"] is False
    (repository / "file").write_text("y")
    assert git(repository) == {"commit": clean["commit"], "dirty": True}


def test_no_commit_of_its_own(repository: Path, tmp_path: Path) -> None:
    inner = repository / "copy"
    inner.mkdir()
    assert git(inner) is None  # someone else's repository
    assert git(tmp_path / "nowhere") is None


def test_no_repository_and_no_git(
    tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    assert git(repository) is None
