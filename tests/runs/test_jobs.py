"""Jobs are processes of their own, and what would stop the sweep reaches them (H1, S4)."""

import os
import signal
import sys
from pathlib import Path

import pytest

from zhen.errors import STOPPING
from zhen.runs import jobs as jobs_module
from zhen.runs import relay as relay_module
from zhen.runs.jobs import Jobs
from zhen.runs.sweeps import Sweep

STAND_IN = Path(__file__).parents[1] / "stand_in_training.py"


@pytest.fixture
def sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sweep:
    monkeypatch.setattr(jobs_module, "TRAIN", (sys.executable, str(STAND_IN), f"runs={tmp_path}"))
    sweep = Sweep(tmp_path / "s")
    sweep.path.mkdir()
    return sweep


def begun(sweep: Sweep, number: int) -> list[str]:
    """The command lines with which a job was started."""
    return (sweep.run(number).path / "begun.txt").read_text().splitlines()


def test_a_failed_job_does_not_stop_the_others(sweep: Sweep) -> None:
    sweep.jobs = [["x=1"], ["x=1", "status=1"], ["x=1", "status=-1"], ["x=2"]]
    with Jobs(sweep) as jobs:
        outcomes = [jobs.run(number) for number in (1, 2, 3, 4)]
    assert outcomes == ["finished", "failed", "failed", "finished"]
    assert Sweep.read(sweep.path).ended == {2: "failed", 3: "failed"}
    assert [sweep.state(n) for n in (1, 2, 3, 4)] == outcomes
    assert begun(sweep, 4) == [f"s runs={sweep.path.parent} x=2"]


def test_what_is_finished_is_not_run_again_and_the_rest_goes_on(sweep: Sweep) -> None:
    sweep.jobs = [["x=1"], ["x=1", "status=1"]]
    for _ in range(2):
        with Jobs(sweep) as jobs:
            assert [jobs.run(1), jobs.run(2)] == ["finished", "failed"]
    assert len(begun(sweep, 1)) == 1
    assert [line.endswith("resume=auto") for line in begun(sweep, 2)] == [False, True]


@pytest.mark.parametrize("number", [*STOPPING, signal.SIGHUP], ids=lambda number: number.name)
def test_a_signal_stops_the_job_and_begins_no_other(sweep: Sweep, number: signal.Signals) -> None:
    sweep.jobs = [["x=1", f"signal={number.value}"], ["x=1"]]
    before = signal.signal(number, signal.SIG_DFL)
    try:
        with Jobs(sweep) as jobs:
            assert [jobs.run(1), jobs.run(2)] == ["stopped", "stopped"]
        assert jobs.stopped == number and signal.getsignal(number) is signal.SIG_DFL
    finally:
        signal.signal(number, before)
    assert [sweep.state(n) for n in (1, 2)] == ["stopped", "waiting"]
    with Jobs(sweep) as jobs:  # it goes on after its second validation, where the signal came
        assert [jobs.run(1), jobs.run(2)] == ["finished", "finished"]


def test_a_signal_that_comes_before_the_process_is_there_is_not_lost(
    sweep: Sweep, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep.jobs = [["x=1", "slow=60"]]
    real = relay_module.subprocess.Popen

    def start(*arguments: object, **named: object) -> object:
        process = real(*arguments, **named)  # type: ignore[call-overload]
        while not (sweep.run(1).path / "state.txt").exists():
            pass
        os.kill(os.getpid(), signal.SIGTERM)
        return process

    monkeypatch.setattr(relay_module.subprocess, "Popen", start)
    with Jobs(sweep) as jobs:
        assert jobs.run(1) == "stopped"


def test_a_watched_job_is_pruned(sweep: Sweep) -> None:
    sweep.jobs = [["x=1", "slow=60"], ["x=1", "slow=60"]]

    def is_bad() -> bool:
        return (sweep.run(1).path / "state.txt").exists()

    with Jobs(sweep, seconds=0.01) as jobs:
        assert jobs.run(1, watch=is_bad) == "pruned"
        assert jobs.run(1) == "pruned"  # and stays so
    assert Sweep.read(sweep.path).ended == {1: "pruned"} and len(begun(sweep, 1)) == 1


def test_a_bug_while_a_job_runs_leaves_no_process(sweep: Sweep) -> None:
    sweep.jobs = [["x=1", "slow=60"]]
    with pytest.raises(ZeroDivisionError), Jobs(sweep, seconds=0.01) as jobs:
        jobs.run(1, watch=lambda: (sweep.run(1).path / "pid.txt").exists() and 1 // 0 > 0)
    with pytest.raises(ProcessLookupError):
        os.kill(int((sweep.run(1).path / "pid.txt").read_text()), 0)
