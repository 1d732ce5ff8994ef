"""Optuna drives jobs: what it may propose, what it prunes, and that a search can go on."""

import json
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.trial import TrialState

from zhen.config import UserError
from zhen.runs import jobs as jobs_module
from zhen.runs.jobs import Jobs
from zhen.runs.search import Search
from zhen.runs.sweeps import Goal, Sweep

STAND_IN = Path(__file__).parents[1] / "stand_in_training.py"
GOAL = Goal("val/bleu", "max")
Starter = Callable[..., Sweep]


def search(**changes: Any) -> Search:
    options = {"space": [], "n_trials": 4, "n_startup_trials": 2, "n_warmup_steps": 9, "seed": 0}
    return Search(**{**options, **changes})


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Starter:
    """Runs a sweep of the stand-in, or goes on with it; returns it."""

    def start(name: str, *words: str, goal: Goal = GOAL, **options: Any) -> Sweep:
        path = tmp_path / name
        path.mkdir(exist_ok=True)
        train = (sys.executable, str(STAND_IN), f"runs={tmp_path}")
        monkeypatch.setattr(jobs_module, "TRAIN", train)
        sweep = Sweep.read(path) if Sweep.file(path).exists() else Sweep(path, words=list(words))
        with Jobs(sweep, seconds=0.02) as jobs:
            search(**options).run(sweep, jobs, goal)
        return sweep

    return start


def trials(sweep: Sweep) -> list[optuna.trial.FrozenTrial]:
    study = optuna.load_study(study_name=sweep.id, storage=f"sqlite:///{sweep.path}/study.db")
    return study.get_trials()


def test_what_is_checked_first_has_each_value_and_both_ends() -> None:
    space = ["a=tag(log,interval(0.1,1))", "b=x,y", "c=range(1,4)"]
    found = search(space=space).samples(["b=z", "d=1"])  # the command line replaces the space's b
    assert found == [
        ["a=0.1", "c=1", "b=z", "d=1"],
        ["a=1.0", "c=1", "b=z", "d=1"],
        ["a=0.1", "c=2", "b=z", "d=1"],
        ["a=0.1", "c=3", "b=z", "d=1"],
    ]


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("a=1", "sweep=optuna: no word has several values, so nothing is searched"),
        ("a=interval(2,1)", "`a=interval(2,1)`: "),
        ("a=tag(log,interval(0,1))", "`a=tag(log,interval(0,1))`: "),
        ("a=range(3,1)", "`a=range(3,1)`"),
        ("a={b", "`a={b` cannot be read ("),
    ],
)
def test_what_cannot_be_searched_is_said_before_any_job(word: str, message: str) -> None:
    with pytest.raises(UserError) as refused:
        search(space=[word]).samples([])
    assert str(refused.value).startswith(message) and "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["n_trials", "n_startup_trials", "n_warmup_steps", "seed"])
def test_numbers_out_of_range(name: str) -> None:
    with pytest.raises(ValueError, match=f"`{name}` must be at least"):
        search(**{name: -1})


def test_values_are_of_their_kind(start: Starter) -> None:
    sweep = start(
        "s", "x=interval(1,2)", "a=p,q", "b=range(2,9,3)", "c=int(interval(1,3))",
        "d=tag(log,interval(1e-5,1e-3))", "e=7",
    )  # fmt: skip
    assert len(sweep.jobs) == 4
    for job in sweep.jobs:
        values = dict(word.split("=") for word in job)
        assert list(values) == ["x", "a", "b", "c", "d", "e"] and values["e"] == "7"
        assert 1 <= float(values["x"]) <= 2 and 1e-5 <= float(values["d"]) <= 1e-3
        assert values["a"] in "pq" and values["b"] in "258" and values["c"] in "123"
    assert len({tuple(job) for job in sweep.jobs}) == 4


def test_scores_and_failures_are_told_and_importances_written(start: Starter) -> None:
    sweep = start("s", "x=1,2,3,4", "status=0,1", "e=1,2", n_trials=12, n_startup_trials=12)
    told = trials(sweep)
    assert {each.state for each in told} == {TrialState.COMPLETE, TrialState.FAIL}
    for number, trial in enumerate(told, start=1):
        assert [*trial.intermediate_values] == [0, 1, 2, 3]
        if trial.state == TrialState.COMPLETE:
            assert trial.value == float(trial.params["x"]) and sweep.state(number) == "finished"
        else:
            assert trial.params["status"] == "1" and sweep.state(number) == "failed"
    shares = json.loads((sweep.path / "importances.json").read_text())
    assert shares.keys() == {"x", "status", "e"} and sum(shares.values()) == pytest.approx(1)
    assert max(shares, key=lambda key: shares[key]) == "x"


def test_less_may_be_better(start: Starter) -> None:
    sweep = start("s", "x=1,2", goal=Goal("val/bleu", "min"), n_trials=1)
    (trial,) = trials(sweep)
    assert trial.value == float(trial.params["x"]) / 4  # the first of four validations


def test_a_job_that_falls_behind_is_pruned(start: Starter) -> None:
    sweep = start("s", "x=8", "a=1,2", n_trials=2)
    sweep.words = ["x=2", "a=1,2", "slow=60"]  # worse, and waiting for its end
    sweep.write()
    sweep = start("s", n_trials=3, n_warmup_steps=1)
    assert [each.state.name for each in trials(sweep)] == ["COMPLETE", "COMPLETE", "PRUNED"]
    assert trials(sweep)[2].intermediate_values == {0: 0.5, 1: 1.0}
    assert sweep.state(3) == "pruned" and not sweep.run(3).results.exists()
    assert start("s", n_trials=3).jobs == sweep.jobs  # which does not try it again


@pytest.mark.parametrize("change", [{"n_startup_trials": 3}, {"n_warmup_steps": 4}])
def test_a_job_may_not_be_pruned_yet(start: Starter, change: dict[str, int]) -> None:
    sweep = start("s", "x=8", "a=1,2", n_trials=2)
    sweep.words = ["x=2", "a=1,2", "slow=1"]
    sweep.write()
    sweep = start("s", **{"n_trials": 3, "n_warmup_steps": 1, **change})
    assert sweep.state(3) == "finished"


def test_a_search_that_was_stopped_ends_as_one_that_was_not(start: Starter) -> None:
    words = ["x=interval(0,9)", "a=1,2,3"]
    whole = start("whole", *words, n_trials=6)
    # A job of this one stops the sweep: each time that it is begun, in a new process.
    stopped = start("stopped", *words, f"signal={signal.SIGTERM.value}", n_trials=6)
    assert len(stopped.jobs) == 1 and not (stopped.path / "importances.json").exists()
    rounds = 1
    while not (stopped.path / "importances.json").exists():
        stopped = start("stopped", n_trials=6)
        rounds += 1
    assert rounds == 7
    assert [job[:2] for job in stopped.jobs] == [job[:2] for job in whole.jobs]
    assert [each.value for each in trials(stopped)] == [each.value for each in trials(whole)]
    assert all(each.state == TrialState.COMPLETE for each in trials(stopped))


def test_a_trial_that_was_killed_while_it_was_made_is_the_next_job(start: Starter) -> None:
    sweep = start("s", "x=interval(0,9)", "a=1,2", n_trials=1)
    study = optuna.load_study(study_name="s", storage=f"sqlite:///{sweep.path}/study.db")
    study.ask().suggest_float("x", 0, 9)
    sweep = start("s", n_trials=3)
    told = trials(sweep)
    assert [each.state for each in told] == [TrialState.COMPLETE] * 3
    for job, trial in zip(sweep.jobs, told, strict=True):
        assert job == [f"{key}={value}" for key, value in trial.params.items()]


def test_more_trials_of_a_search_that_has_ended(start: Starter) -> None:
    assert len(start("s", "x=interval(0,9)", n_trials=2).jobs) == 2
    sweep = start("s", n_trials=3)
    assert len(sweep.jobs) == len(trials(sweep)) == 3
    assert len({tuple(job) for job in sweep.jobs}) == 3


def test_other_choices_in_the_same_study_are_refused(start: Starter) -> None:
    start("s", "a=1,2", space=["x=1,2"], n_trials=1)
    with pytest.raises(UserError, match=r"sweep\.space: .*begin a new sweep"):
        start("s", space=["x=1,2,3"], n_trials=2)
