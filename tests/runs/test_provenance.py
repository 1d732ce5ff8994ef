"""Where a run came from, as plain data."""

import json
import shlex
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from zhen.runs.provenance import code, command, git, packages, provenance, uncommitted


def test_everything_is_plain_json() -> None:
    choices = {"model": "tiny", "debug": None}
    found = provenance(OmegaConf.create({"seed": 0}), choices, {"train": "ab12"}, device="cpu")
    assert json.loads(json.dumps(found)) == found
    assert found["seed"] == 0 and found["corpus"] == {"train": "ab12"} and found["device"] == "cpu"
    assert found["choices"] == choices
    assert found["packages"]["hydra-core"] == "1.3.8"
    assert found["python"] == sys.version.split()[0]
    assert datetime.fromisoformat(found["started"]).tzinfo is not None
    assert found["host"] and found["cpu"]["name"] and found["cpu"]["cores"] >= 1
    assert found["threads"] >= 1 and found["code"] == code() and Path(found["root"]).is_dir()


def test_a_job_names_its_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    cfg = OmegaConf.create({"seed": 0})
    monkeypatch.delenv("ZHEN_SWEEP", raising=False)
    assert provenance(cfg, {}, corpus={}, device="cpu")["sweep"] is None
    monkeypatch.setenv("ZHEN_SWEEP", "mine")
    assert provenance(cfg, {}, corpus={}, device="cpu")["sweep"] == "mine"


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


def test_what_is_not_committed_can_be_applied_to_the_commit(
    repository: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert uncommitted(repository) == b""
    (repository / "src").mkdir()
    changed = {"file": b"y\r\n", "src/new.py": "真 = 1\n".encode(), "src/binary": bytes(range(256))}
    for name, content in changed.items():
        (repository / name).write_bytes(content)
    (repository / "corpus.tsv").write_text("not part of it")
    subprocess.run(
        ["git", "-C", str(repository), "config", "diff.noprefix", "true"], check=True
    )  # a user's own settings must not matter
    patch = uncommitted(repository)

    clone = tmp_path_factory.mktemp("clone")
    subprocess.run(["git", "clone", "-q", str(repository), str(clone)], check=True)
    subprocess.run(["git", "-C", str(clone), "apply", "-"], input=patch, check=True)
    assert {name: (clone / name).read_bytes() for name in changed} == changed
    assert not (clone / "corpus.tsv").exists()


def test_no_repository_has_nothing_uncommitted(tmp_path: Path) -> None:
    assert uncommitted(tmp_path) == b""


def test_the_code_is_known_by_its_content_alone(tmp_path: Path) -> None:
    for copy in ("one", "other"):
        (tmp_path / copy / "src" / "zhen" / "__pycache__").mkdir(parents=True)
        (tmp_path / copy / "src" / "zhen" / "a.py").write_text("x = 1\n")
    (tmp_path / "one" / "src" / "zhen" / "__pycache__" / "a.pyc").write_text("compiled")
    first = code(tmp_path / "one")
    assert first == code(tmp_path / "other")
    (tmp_path / "other" / "src" / "zhen" / "a.py").write_text("x = 2\n")
    assert first != code(tmp_path / "other")
    (tmp_path / "one" / "src" / "zhen" / "a.py").rename(tmp_path / "one" / "src" / "zhen" / "b.py")
    assert first != code(tmp_path / "one")
