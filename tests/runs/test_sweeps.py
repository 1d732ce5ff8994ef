"""From one command line to the words of many jobs, and the directory that says which."""

import os
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from zhen.config import UserError
from zhen.runs.directory import RunDirectory
from zhen.runs.sweeps import Goal, Plan, Sweep, grid

GOAL = Goal("val/bleu", "max")


@pytest.fixture(autouse=True)
def name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZHEN_RUN_ID", "s")


def test_a_grid_has_every_combination_and_the_last_word_changes_fastest() -> None:
    assert grid(["model=tiny,small", "debug=fast", "seed=range(1,3)"]) == [
        ["model=tiny", "debug=fast", "seed=1"],
        ["model=tiny", "debug=fast", "seed=2"],
        ["model=small", "debug=fast", "seed=1"],
        ["model=small", "debug=fast", "seed=2"],
    ]
    assert grid([]) == [[]]


@pytest.mark.parametrize(
    ("word", "jobs"),
    [
        ("optimizer.lr=1e-3,2e-3", ["optimizer.lr=0.001", "optimizer.lr=0.002"]),
        ("+a=choice(1,x)", ["+a=1", "+a=x"]),
        ("a=[1,2],[3]", ["a=[1,2]", "a=[3]"]),
        ("a='x, y',z", ["a='x, y'", "a=z"]),
        ("a='x, y'", ["a='x, y'"]),
        ("a=[1,2]", ["a=[1,2]"]),
        ("a=range(0,1,0.5)", ["a=0.0", "a=0.5"]),
        ("~callbacks.samples", ["~callbacks.samples"]),
        ("model=glob(*,exclude=b*)", ["model=small", "model=tiny"]),
        ("a=null,true", ["a=null", "a=True"]),
    ],
)
def test_values_of_a_word(word: str, jobs: list[str]) -> None:
    assert grid([word]) == [[job] for job in jobs]


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("a=interval(0,1)", "`a=interval(0,1)` is an interval, which only sweep=optuna can search"),
        ("model=glob(x*)", "`model=glob(x*)` matches no value"),
        ("a=range(3,1)", "`a=range(3,1)` matches no value"),
        ("max_epochs", "`max_epochs` is not a setting: write key=value"),
        ("a={b", "`a={b` cannot be read ("),
    ],
)
def test_words_that_give_no_jobs(word: str, message: str) -> None:
    with pytest.raises(UserError) as refused:
        grid(["seed=1", word])
    assert str(refused.value).startswith(message) and "\n" not in str(refused.value)


def test_a_plan_is_checked_to_its_last_job(tmp_path: Path) -> None:
    words = ["debug=fast", "seed=1,2", f"paths.runs={tmp_path}"]
    plan = Plan.check(grid(words))
    assert plan.folder == tmp_path / "debug" and plan.cfgs[0].seed == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["seed=1,2,x"], "`seed` must be an int from 0 to 4294967295, but is 'x'"),
        (["model=tiny,smal"], "`model=smal`: no such model; did you mean `small`?"),
        (["seed=1,2", "modle=tiny"], "`modle` is not a key; did you mean `model`?"),
        (["optimizer.lr=1e-3,0.001"], "`optimizer.lr=0.001` and `optimizer.lr=0.001` are the same"),
        (["seed=1,2", "seed=3"], "`seed=1 seed=3` and `seed=2 seed=3` are the same run"),
        (["name=a,b"], "the runs of a sweep lie side by side in one folder, but those of `name=b`"),
        (["seed=1,2", "paths.run_dir=/x/y"], "the runs of a sweep lie side by side in one folder"),
        (
            ["seed=1,2", "ckpt=last"],
            "`ckpt` or `resume`: each job of a sweep begins a run of its own",
        ),
    ],
)
def test_no_job_begins_if_one_would_be_refused(words: list[str], message: str) -> None:
    with pytest.raises(UserError) as refused:
        Plan.check(grid(words))
    assert str(refused.value).startswith(message) and "\n" not in str(refused.value)


def test_the_directory_keeps_what_was_asked(tmp_path: Path) -> None:
    words = ["seed=1,2", "name='${x}'"]
    sweep = Sweep.begin(tmp_path / "toy", ["sweep=grid"], words)
    assert sweep.path == tmp_path / "toy" / "s" and sweep.path.is_dir()
    sweep.jobs, sweep.ended = grid(words), {2: "failed"}
    sweep.write()
    assert Sweep.read(sweep.path) == sweep == Sweep.find(str(sweep.path), tmp_path)
    assert sweep.run(2).path == tmp_path / "toy" / "s-2"
    assert sweep.environment(2) == {"ZHEN_RUN_ID": "s-2", "ZHEN_SWEEP": "s"}


def test_two_sweeps_of_one_second_get_two_directories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for _ in range(2):
        monkeypatch.delenv("ZHEN_RUN_ID", raising=False)
        found.append(Sweep.begin(tmp_path, [], []).path)
        monkeypatch.setenv("ZHEN_RUN_ID", found[-1].name)  # for monkeypatch to know of it
    assert found[1].name == f"{found[0].name}-2" and all(path.is_dir() for path in found)


def test_the_same_id_goes_on_with_the_same_words_alone(tmp_path: Path) -> None:
    first = Sweep.begin(tmp_path, [], ["seed=1,2"])
    first.jobs = [["seed=1"], ["seed=2"]]
    first.write()
    assert Sweep.begin(tmp_path, ["sweep=grid"], ["seed=1,2"]).jobs == first.jobs
    with pytest.raises(UserError, match="is a sweep of other words"):
        Sweep.begin(tmp_path, [], ["seed=1,3"])


def test_last_is_the_newest_and_what_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="resume=last: there is no sweep below"):
        Sweep.find("last", tmp_path)
    for name in ("a", "b"):
        Sweep(tmp_path / "toy" / name).path.mkdir(parents=True)
        Sweep(tmp_path / "toy" / name).write()
        os.utime(tmp_path / "toy" / name / "sweep.yaml", (ord(name), ord(name)))
    assert Sweep.find("last", tmp_path).id == "b"
    with pytest.raises(UserError, match="is no directory of a sweep; give one, or last"):
        Sweep.find(str(tmp_path), tmp_path)
    (tmp_path / "toy" / "b" / "sweep.yaml").write_text("jobs: [")
    with pytest.raises(UserError, match="is damaged: restore it"):
        Sweep.find("last", tmp_path)


def test_the_state_of_a_job(tmp_path: Path) -> None:
    sweep = Sweep(tmp_path / "s", jobs=[[]] * 4, ended={3: "pruned"})
    for number in (1, 2, 3):
        sweep.run(number).path.mkdir()
        sweep.run(number).config.touch()
    sweep.run(1).results.touch()
    assert [sweep.state(n) for n in (1, 2, 3, 4)] == ["finished", "stopped", "pruned", "waiting"]


def test_scores_of_a_run_that_is_being_written(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    assert GOAL.scores(run) == [] and GOAL.best(run) is None
    text = "step,train/loss,val/bleu\n9,1.5,\n9,,12.5\n19,,nan\n29,,14.0\n39,,1"
    (tmp_path / "metrics.csv").write_text(text)  # its last line is not finished
    assert GOAL.scores(run)[::2] == [12.5, 14.0]
    assert GOAL.best(run) == 14.0 and Goal("val/bleu", "min").best(run) == 12.5
    assert Goal("val/loss", "min").best(run) is None


def test_the_goal_is_that_of_the_checkpoints() -> None:
    keeper = {"monitor": "val/nll", "mode": "min"}
    cfg = OmegaConf.create({"callbacks": {"checkpoint": keeper}, "logger": {"csv": {"a": 1}}})
    assert Goal.of(cfg) == Goal("val/nll", "min")
    for change in ("callbacks.checkpoint.monitor", "callbacks.checkpoint", "logger.csv"):
        without = cfg.copy()
        OmegaConf.update(without, change, None)
        assert Goal.of(without) is None
