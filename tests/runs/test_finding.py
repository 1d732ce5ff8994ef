"""Which runs are found, which directories are passed over, and which runs meet a condition."""

from pathlib import Path

import pytest
from tests.runs.made import make_run

from zhen.errors import UserError
from zhen.runs.finding import find_one, find_runs, where


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two experiments, a sweep of three jobs, and what is no run."""
    folder = tmp_path_factory.mktemp("runs")
    make_run(folder, "phrasebook/20261130-151234")
    make_run(folder, "phrasebook/20261130-151235", "model=small", state="crashed")
    make_run(folder, "cosine/one", "scheduler=cosine", "optimizer.lr=0.003")
    for number in (0, 2, 10):
        sweep = {"sweep": "first"}
        make_run(folder, f"phrasebook/first-{number}", f"seed={number}", about=sweep)
    (folder / "phrasebook/first").mkdir()
    (folder / "phrasebook/first/sweep.yaml").write_text("jobs: 3\n")
    (folder / "phrasebook/begun").mkdir()
    (folder / "data-check").mkdir()
    (folder / "data-check/report.html").touch()
    (folder / ".hidden/x").mkdir(parents=True)
    (folder / "other/model").mkdir(parents=True)
    (folder / "other/model/config.yaml").write_text("lr: 1\n")
    return folder


def names(folder: Path, given: str | None) -> list[str]:
    return [run.name for run in find_runs(folder, given)[0]]


def test_all_runs_and_why_others_are_none(runs: Path) -> None:
    found, skipped = find_runs(runs, None)
    assert [run.name for run in found] == [
        "cosine/one",
        "phrasebook/20261130-151234",
        "phrasebook/20261130-151235",
        "phrasebook/first-0",
        "phrasebook/first-2",
        "phrasebook/first-10",
    ]
    assert {str(path.relative_to(runs)): why for path, why in skipped.items()} == {
        "other/model": "config.yaml is not of a zhen run",
        "phrasebook/begun": "no config.yaml",
    }


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("cosine", ["cosine/one"]),
        ("cosine/one", ["cosine/one"]),
        ("'cos*' phrasebook/2*34", ["cosine/one", "phrasebook/20261130-151234"]),
        ("phrasebook/first", ["phrasebook/first-0", "phrasebook/first-2", "phrasebook/first-10"]),
        ("cosine cosine/one", ["cosine/one"]),
    ],
)
def test_runs_that_are_asked_for(runs: Path, given: str, expected: list[str]) -> None:
    assert names(runs, given) == expected


def test_paths_from_here_and_from_elsewhere(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(runs.parent)
    assert names(runs, f"{runs.name}/cosine") == ["cosine/one"]
    assert names(runs, f"'{runs}/cosine/*'") == ["cosine/one"]
    # Those of another place keep their whole path as their name.
    assert names(runs / "cosine", f"'{runs}/phrasebook/2*34'") == [
        str(runs / "phrasebook/20261130-151234")
    ]


def test_nothing_there_is_an_error(runs: Path) -> None:
    with pytest.raises(UserError, match=r"^runs=nothing\*: no such directory, neither below "):
        find_runs(runs, "'nothing*'")
    with pytest.raises(UserError, match="does not exist; `make train` makes one"):
        find_runs(runs / "none", None)
    with pytest.raises(UserError, match="cannot be read: no closing quotation"):
        find_runs(runs, "'open")


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ("model=small", ["phrasebook/20261130-151235"]),
        ("model=tiny scheduler=cosine", ["cosine/one"]),
        ("optimizer.lr=3e-3", ["cosine/one"]),
        ("seed=2,10", ["phrasebook/first-2", "phrasebook/first-10"]),
        ("seed!=0", ["phrasebook/first-2", "phrasebook/first-10"]),
        ("state=crashed", ["phrasebook/20261130-151235"]),
        ("sweep=first seed=0", ["phrasebook/first-0"]),
        ("run=cosine/one", ["cosine/one"]),
        ("optimizer.betas='[0.9, 0.5]'", []),
        ("scheduler=nothing", []),
    ],
)
def test_conditions(runs: Path, conditions: str, expected: list[str]) -> None:
    assert [run.name for run in where(find_runs(runs, None)[0], conditions)] == expected


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ("model", "where: `model` is no condition; write key=value, as model=tiny"),
        ("modle=tiny", "where: no run has `modle`; did you mean `model`?"),
        ("optimiser.lr=1", "where: no run has `optimiser.lr`; did you mean `optimizer.lr`?"),
        ("name='x", 'where="name=\'x" cannot be read: no closing quotation'),
    ],
)
def test_conditions_that_cannot_be_met(runs: Path, conditions: str, message: str) -> None:
    with pytest.raises(UserError) as refused:
        where(find_runs(runs, None)[0], conditions)
    assert str(refused.value) == message


def test_one_run_by_name_part_or_path(runs: Path) -> None:
    every, _ = find_runs(runs, None)
    for wanted in ("cosine/one", "one", "cosine", str(runs / "cosine/one")):
        assert find_one(every, wanted, key="base").name == "cosine/one"
    with pytest.raises(UserError, match=r"^base=phrasebook may be .* give the whole name$"):
        find_one(every, "phrasebook", key="base")
    with pytest.raises(UserError, match=r"^base=cosine/on is none .*; did you mean `cosine/one`\?"):
        find_one(every, "cosine/on", key="base")
