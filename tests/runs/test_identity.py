"""One name for a run: on all ranks, and after a requeue."""

import os
import re
from pathlib import Path

import pytest

from zhen.errors import UserError
from zhen.runs.identity import VARIABLE, claim, fixed, run_id, slurm_id

OUTSIDE = (VARIABLE, "SLURM_JOB_ID", "SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID", "SLURM_JOB_NAME")


@pytest.fixture(autouse=True)
def no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in (*OUTSIDE, "LOCAL_RANK", "NODE_RANK", "WORLD_SIZE"):
        monkeypatch.delenv(variable, raising=False)


def test_the_start_time_by_default() -> None:
    assert re.fullmatch(r"\d{8}-\d{6}", run_id())
    assert run_id() == run_id()


def test_the_variable_comes_before_slurm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "4711")
    assert run_id() == "4711"
    monkeypatch.setenv(VARIABLE, "mine")
    assert run_id() == "mine"


@pytest.mark.parametrize("name", ["../x", "a/b", ".hidden", "a b", "-x"])
def test_a_name_that_is_no_directory(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, name)
    with pytest.raises(UserError, match="ZHEN_RUN_ID must be letters, digits"):
        run_id()


def test_slurm_arrays_and_interactive_jobs() -> None:
    array = {"SLURM_JOB_ID": "12", "SLURM_ARRAY_JOB_ID": "11", "SLURM_ARRAY_TASK_ID": "3"}
    assert slurm_id(array) == "11_3"
    assert slurm_id({"SLURM_JOB_ID": "12", "SLURM_JOB_NAME": "interactive"}) is None
    assert slurm_id({}) is None


@pytest.mark.parametrize("variable", [VARIABLE, "SLURM_JOB_ID"])
def test_a_name_holds_for_a_while(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "mine")
    with fixed():
        assert run_id() == os.environ[VARIABLE] == "mine"
    assert (VARIABLE in os.environ) == (variable == VARIABLE)


def test_two_runs_of_one_second_get_two_directories(tmp_path: Path) -> None:
    made = []
    for _ in range(3):
        with fixed():
            made.append(claim(lambda: tmp_path / run_id()))
            assert made[-1] == tmp_path / os.environ[VARIABLE]
    names = [path.name for path in made if path is not None]
    assert names == [run_id(), f"{run_id()}-2", f"{run_id()}-3"]


def test_a_run_with_a_name_goes_on_in_its_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "4711")
    (tmp_path / "4711").mkdir()
    with fixed():
        assert claim(lambda: tmp_path / run_id()) is None
        assert os.environ[VARIABLE] == "4711"


def test_a_fixed_directory_that_exists_is_taken(tmp_path: Path) -> None:
    with fixed():
        assert claim(lambda: tmp_path) is None


def test_ranks_without_a_common_name_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fixed(), pytest.raises(UserError, match="need a common run name"):
        claim(lambda: tmp_path / run_id(), nodes=2)
    for variable in ("NODE_RANK", "LOCAL_RANK"):
        monkeypatch.setenv(variable, "0")
        with fixed(), pytest.raises(UserError, match="need a common run name"):
            claim(lambda: tmp_path / run_id())
        monkeypatch.delenv(variable)
