"""A run's files: whole or not there, one directory for all ranks, a plain log."""

import json
import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from omegaconf import DictConfig, OmegaConf

from zhen.errors import UserError
from zhen.runs.directory import (
    RunDirectory,
    home_of,
    is_main,
    newest_checkpoint,
    rank,
)

RANKS = ("RANK", "SLURM_PROCID", "NODE_RANK", "LOCAL_RANK", "ZHEN_DEVICES")


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in RANKS:
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture
def cfg() -> DictConfig:
    return OmegaConf.create({"seed": 0, "name": "测试", "paths": {"run_dir": "${name}/1"}})


@pytest.fixture
def run(tmp_path: Path, cfg: DictConfig) -> Iterator[RunDirectory]:
    run = RunDirectory.create(tmp_path / "runs" / "a" / "1")
    run.write_settings(cfg, ["seed=0", "name=测试"], {"run": "1"})
    yield run


def test_what_is_written_at_the_start(run: RunDirectory) -> None:
    stored = yaml.safe_load(run.config.read_text(encoding="utf-8"))
    assert stored == {"seed": 0, "name": "测试", "paths": {"run_dir": "测试/1"}}
    assert yaml.safe_load(run.overrides.read_text(encoding="utf-8")) == ["seed=0", "name=测试"]
    assert json.loads(run.provenance.read_text(encoding="utf-8")) == {"run": "1"}
    assert run.checkpoints.is_dir()
    assert run.best.name == "best.ckpt" and run.last.parent == run.checkpoints


def test_a_run_may_go_on_in_its_directory(run: RunDirectory, cfg: DictConfig) -> None:
    run.last.write_bytes(b"state")
    again = RunDirectory.create(run.path)
    assert again == run and again.last.read_bytes() == b"state"


def test_other_ranks_write_no_shared_file(
    tmp_path: Path, cfg: DictConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCAL_RANK", "1")
    run = RunDirectory.create(tmp_path / "run")
    with run.logging():
        logging.getLogger("zhen.x").info("from rank 1")
    assert sorted(each.name for each in run.path.iterdir()) == ["checkpoints", "log.1.txt"]


def test_a_place_that_cannot_be_made(tmp_path: Path, cfg: DictConfig) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"cannot make .*file/run/checkpoints: Not a directory"):
        RunDirectory.create(tmp_path / "file" / "run")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_place_that_cannot_be_written(tmp_path: Path, cfg: DictConfig) -> None:
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    with pytest.raises(UserError, match="Permission denied; choose another place"):
        RunDirectory.create(tmp_path / "run")


def checkpoint(runs: Path, name: str, age: int, file: str = "best.ckpt") -> Path:
    path = runs / name / "checkpoints" / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    os.utime(path, (1_000_000 - age, 1_000_000 - age))
    return path


def test_the_newest_checkpoint_is_that_of_the_newest_run_that_has_one(tmp_path: Path) -> None:
    checkpoint(tmp_path, "a/20261129-1", age=30)
    newest = checkpoint(tmp_path, "b/4711", age=20)
    checkpoint(tmp_path, "b/4711", age=10, file="last.ckpt")
    (tmp_path / "a" / "empty" / "checkpoints" / "best.ckpt").mkdir(parents=True)
    assert newest_checkpoint(tmp_path) == newest


def test_a_run_that_never_validated_has_its_last_checkpoint(tmp_path: Path) -> None:
    checkpoint(tmp_path, "a/1", age=30)
    last = checkpoint(tmp_path, "a/2", age=20, file="last.ckpt")
    assert newest_checkpoint(tmp_path) == last


def test_debug_runs_count_only_where_there_are_no_others(tmp_path: Path) -> None:
    debug = checkpoint(tmp_path, "debug/1", age=10)
    assert newest_checkpoint(tmp_path) == debug
    real = checkpoint(tmp_path, "a/1", age=20)
    assert newest_checkpoint(tmp_path) == real


@pytest.mark.parametrize("runs", ["empty", "nowhere"])
def test_no_checkpoint_says_what_to_do(tmp_path: Path, runs: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=r"no trained model below .*: train one with `make train`"):
        newest_checkpoint(tmp_path / runs)


def test_the_home_of_a_checkpoint(
    run: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert home_of(run.best) == run.path
    assert home_of(run.path / "copy.ckpt") == run.path
    assert home_of(checkpoint(tmp_path, "no/config", age=0)) == tmp_path / "no/config/checkpoints"
    monkeypatch.chdir(run.checkpoints)
    assert home_of(Path("best.ckpt")) == run.path


def test_the_log_formats_as_logging_does(
    run: RunDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    log = logging.getLogger("zhen.data")
    with run.logging():
        log.info("Loaded %d pairs", 3)
        log.debug("not this")
        logging.getLogger("lightning.pytorch").warning("from Lightning")
        logging.getLogger("other").info("nor this")
    log.info("nor what comes after")
    text = run.log.read_text(encoding="utf-8")
    assert " INFO zhen.data: Loaded 3 pairs\n" in text
    assert " WARNING lightning.pytorch: from Lightning\n" in text
    assert "this" not in text and "after" not in text
    assert capsys.readouterr().err.startswith("Loaded 3 pairs\n")


def test_a_second_log_goes_on_after_the_first(run: RunDirectory) -> None:
    before = list(logging.getLogger().handlers)
    for word in ("one", "two"):
        with run.logging():
            logging.getLogger("zhen").info(word)
    assert [line[-3:] for line in run.log.read_text().splitlines()] == ["one", "two"]
    assert logging.getLogger().handlers == before


def test_an_exception_is_in_the_log_with_its_traceback(
    run: RunDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ZeroDivisionError), run.logging():
        _ = 1 / 0
    text = run.log.read_text()
    assert "ERROR zhen: ZeroDivisionError: division by zero" in text and "Traceback" in text
    assert capsys.readouterr().err == ""  # the command prints it once


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, 0),
        ({"RANK": "5", "LOCAL_RANK": "1"}, 5),  # torchrun
        ({"SLURM_PROCID": "2", "LOCAL_RANK": "0"}, 2),
        ({"LOCAL_RANK": "3", "NODE_RANK": "0"}, 3),  # Lightning's own launcher
        ({"LOCAL_RANK": "0", "NODE_RANK": "0"}, 0),
        ({"LOCAL_RANK": "3", "NODE_RANK": "2", "ZHEN_DEVICES": "4"}, 11),
    ],
)
def test_the_rank(
    environment: dict[str, str], expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, value in environment.items():
        monkeypatch.setenv(variable, value)
    assert rank() == expected and is_main() is (expected == 0)
