"""What is asked of Slurm, and what is refused before anything is; no Slurm is needed here."""

import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from zhen import submit as command
from zhen.compose import compose
from zhen.config import build
from zhen.errors import UserError
from zhen.runs import queue
from zhen.runs.queue import check_cluster
from zhen.runs.slurm import Shape, Slurm, script, seconds, shape


def options(*words: str) -> Slurm:
    made: Slurm = build(compose("submit", [f"cluster.{word}" for word in words]).cluster, "cluster")
    return made


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        (90, 5400),
        ("90", 5400),
        ("90:30", 5430),
        ("1:30:15", 5415),
        ("2-3", 183_600),
        ("2-3:4", 183_840),
        ("2-03:04:05", 183_845),
    ],
)
def test_a_time_limit_is_read_as_slurm_reads_it(time: int | str, expected: int) -> None:
    assert seconds(time) == expected


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("time=soon", "`time` must be minutes, or [D-]HH:MM:SS, but is 'soon'"),
        ("time=1:2:3:4", "`time` must be minutes, or"),
        ("time=5", "`warning` is 300 seconds, and may come 60 seconds early, but `time`=5 is 300"),
        ("warning=0", "`warning` must be at least 1, but is 0"),
        ("warning=70000", "`warning` must be at most 65535, but is 70000"),
        ("cpus=0", "`cpus` must be at least 1, but is 0"),
        ("max_requeues=-1", "`max_requeues` must be at least 0, but is -1"),
        ("at_once=0", "`at_once` must be at least 1, but is 0"),
        ("gpus=a100", "`gpus` must be N or KIND:N, as a100:4, but is 'a100'"),
    ],
)
def test_a_value_out_of_range(words: str, message: str) -> None:
    with pytest.raises(UserError) as refused:
        options(words)
    assert str(refused.value).startswith(f"`cluster`: {message}")


def trainer(*words: str) -> Any:
    return compose("train", words).trainer


@pytest.mark.parametrize(
    ("training", "asked", "expected"),
    [
        ("trainer=cpu", "", Shape(1, 1, None)),
        ("trainer=auto", "", Shape(1, 1, None)),
        ("trainer=auto", "gpus=1", Shape(1, 1, 1)),
        ("trainer=ddp_cpu trainer.num_nodes=2", "nodes=2", Shape(2, 2, None)),
        ("trainer=gpu", "", Shape(1, 1, 1)),
        ("trainer=ddp", "gpus=4", Shape(1, 4, 4)),
        ("trainer=ddp trainer.num_nodes=2", "", Shape(2, 1, 1)),
        ("trainer=ddp trainer.devices=4 trainer.num_nodes=2", "gpus=a100:4", Shape(2, 4, 4)),
    ],
)
def test_processes_follow_from_the_trainer(training: str, asked: str, expected: Shape) -> None:
    assert shape(trainer(*training.split()), options(*asked.split())) == expected


@pytest.mark.parametrize(
    ("training", "asked", "message"),
    [
        ("trainer=cpu", "nodes=2", "cluster.nodes=2, but trainer.num_nodes=1: let both be alike"),
        ("trainer=cpu", "gpus=2", "cluster.gpus=2, but trainer.accelerator=cpu uses none: take"),
        ("trainer=gpu", "gpus=2", "cluster.gpus=2, but trainer.devices=1 starts 1 process on a"),
        ("trainer=ddp trainer.devices=[0,3]", "", "trainer.devices=[0, 3] names single devices"),
    ],
)
def test_tasks_that_do_not_fit_the_devices(training: str, asked: str, message: str) -> None:
    with pytest.raises(UserError) as refused:
        shape(trainer(*training.split()), options(*asked.split()))
    assert str(refused.value).startswith(message)


def test_the_batch_script_of_a_training() -> None:
    asked = options(
        "partition='a,b'", "account=me", "qos=high", "constraint='a100|h100'", "memory=64G",
        "gpus=a100:4", "mail=me@here", "setup=[module load cuda]", "options=[--exclusive]",
        "time=2-0", "max_requeues=3",
    )  # fmt: skip
    text = script(
        asked, Shape(2, 4, 4), jobs=[["model=base", "name=a b"]], run_dir=Path("/my runs/base/x1"),
        again="resume=auto",
    )  # fmt: skip
    head = [line.removeprefix("#SBATCH ") for line in text.splitlines() if "#SBATCH" in line]
    assert [shlex.split(line)[0] for line in head] == [
        "--job-name=zhen-base",
        "--output=/my runs/base/x1/slurm-%j.txt",
        "--open-mode=append",
        f"--chdir={Path.cwd()}",
        "--partition=a,b",
        "--account=me",
        "--qos=high",
        "--constraint=a100|h100",
        "--time=2-0",
        "--nodes=2",
        "--ntasks-per-node=4",
        "--gpus-per-node=a100:4",
        "--cpus-per-task=4",
        "--mem=64G",
        "--mail-user=me@here",
        "--mail-type=END,FAIL",
        "--signal=USR1@300",
        "--requeue",
        "--exclusive",
    ]
    assert "\nmodule load cuda\n" in text
    assert 'export ZHEN_RUN_ID="x1"\n' in text
    ran = run(text, SLURM_JOB_ID="7")
    assert ran == [["-m", "zhen.train", "model=base", "name=a b", "resume=auto"], "x1", "-"]


def test_the_batch_script_of_a_sweep() -> None:
    jobs = [["seed=1"], ["seed=2", "name='it is'"]]
    text = script(
        options("at_once=1"), Shape(1, 1, None), jobs=jobs, run_dir=Path("/runs/base/s"),
        again="resume=auto",
    )  # fmt: skip
    assert "#SBATCH --array=1-2%1\n" in text and "/runs/base/s/slurm-%a.txt\n" in text
    ran = run(text, SLURM_ARRAY_TASK_ID="2", SLURM_ARRAY_JOB_ID="7")
    assert ran == [["-m", "zhen.train", "seed=2", "name='it is'", "resume=auto"], "s-2", "s"]


@pytest.mark.parametrize("status", [138, 143])
def test_a_run_that_has_its_results_is_not_started_again(tmp_path: Path, status: int) -> None:
    """The signal came while it said goodbye."""
    text = script(
        options(), Shape(1, 1, None), jobs=[["seed=1"]], run_dir=tmp_path, again="resume=auto"
    )
    stub = f"srun() {{ return {status}; }}; scontrol() {{ echo $1; }}; exec() {{ $@; exit 9; }}; "
    for ends in (9, 0):
        done = subprocess.run(["bash", "-c", stub + text], env={"SLURM_JOB_ID": "7"})
        assert done.returncode == ends
        (tmp_path / "results.json").touch()


def run(text: str, **variables: str) -> list[Any]:
    """What the script starts: the words after the interpreter, and the names that it gives."""
    show = 'shift 3; shift; printf "%s\\0" "$@" "$ZHEN_RUN_ID" "${ZHEN_SWEEP:--}"'
    stub = f"module() {{ :; }}; srun() {{ {show}; }}; "
    done = subprocess.run(
        ["bash", "-c", stub + text], env=variables, capture_output=True, text=True, check=True
    )
    *words, run_id, sweep = done.stdout.split("\0")[:-1]
    return [words, run_id, sweep]


SINFO = """\
cpu*|1-00:00:00|64|(null)
cpu*|1-00:00:00|64|(null)
gpu|infinite|128|gpu:a100:4(S:0-1),lscratch:1
gpu|infinite|128|gpu:a100:8(S:0-1)
"""


@pytest.mark.parametrize(
    ("asked", "needs", "message"),
    [
        ("", Shape(2, 16, None), None),
        ("partition=gpu time=30-0", Shape(2, 4, 4), None),
        ("partition='gpu,cpu' time=2-0", Shape(1, 1, None), None),
        ("partition=gup", Shape(1, 1, 1), "cluster.partition=gup: there is no such partition; did"),
        ("time=1-1", Shape(1, 1, None), "cluster.time=1-1 is more than partition cpu allows, 24 h"),
        ("", Shape(1, 1, 1), "partition cpu has 0 nodes with the 4 CPUs and 1 GPU that the run"),
        ("partition=gpu", Shape(2, 8, 8), "partition gpu has 1 nodes with the 32 CPUs and 8 GPUs"),
        ("cpus=8", Shape(1, 9, None), "partition cpu has 0 nodes with the 72 CPUs and 0 GPUs"),
    ],
)
def test_a_cluster_that_cannot_do_it(
    asked: str, needs: Shape, message: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "_ask", lambda *words: SINFO)
    if message is None:
        check_cluster(options(*asked.split()), needs)
        return
    with pytest.raises(UserError) as refused:
        check_cluster(options(*asked.split()), needs)
    assert str(refused.value).startswith(message)


def submit(monkeypatch: pytest.MonkeyPatch, folder: Path, *words: str) -> None:
    paths = [f"paths.runs={folder}/runs", f"paths.cache={folder}/cache"]
    monkeypatch.setattr(sys, "argv", ["zhen.submit", *paths, *words])
    command.main()


def test_dry_prints_the_script_and_makes_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On two machines, of which this is none: no Slurm is asked, and no GPU either."""
    monkeypatch.setenv("PATH", "")
    words = ["trainer=ddp", "trainer.devices=4", "trainer.num_nodes=2", "dry=true"]
    submit(monkeypatch, tmp_path, *words)
    printed = capsys.readouterr().out
    assert printed.startswith("#!/bin/bash\n") and "#SBATCH --gpus-per-node=4\n" in printed
    assert "    trainer.devices=4\n" in printed and "dry=" not in printed
    assert not list(tmp_path.glob("*/*"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("modle=base", "`modle` is not a key; did you mean `model`?"),
        ("cluster.partiton=x", "`cluster.partiton` is not a key; did you mean `cluster.partition`"),
        ("cluster=slrum", "`cluster=slrum`: no such cluster; did you mean `slurm`?"),
        ("model=tiny,smal", "`model=smal`: no such model; did you mean `small`?"),
        ("seed=1,x", "`seed` must be an int from 0"),
        ("seed=1,1", "`"),
        ("optimizer.lr=interval(0,1)", "`optimizer.lr=interval(0,1)` is an interval, which"),
        ("model.d_model=7", "`model`: "),
        ("data=files data.train=gone.tsv data.val=b data.test=c", "data.train: "),
        ("trainer.max_time=soon", "`trainer`: "),
        ("trainer.devices=1,2 trainer=ddp_cpu", "the jobs of a sweep have as many nodes and"),
        ("resume=gone", "resume=gone is neither a run directory nor a checkpoint in one"),
        ("cluster.time=5", "`cluster`: `warning` is 300 seconds, and may come 60 seconds early"),
        ("", "sinfo is not here: submit from a login node of a Slurm cluster (DRY=1 prints the"),
    ],
)
def test_what_is_refused_before_anything_is_asked(
    words: str,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SystemExit) as stop:
        submit(monkeypatch, tmp_path, *words.split())
    said = stop.value.code if isinstance(stop.value.code, str) else capsys.readouterr().err
    assert str(said).startswith(f"error: {message}")
    assert not list(tmp_path.glob("*/*"))


def test_a_sweep_is_never_written_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "runs/phrasebook/S/sweep.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("jobs: []\n")
    monkeypatch.setenv("ZHEN_RUN_ID", "S")
    with pytest.raises(SystemExit):
        submit(monkeypatch, tmp_path, "seed=1,2")
    assert f"error: {file.parent} holds a sweep already" in capsys.readouterr().err
    assert file.read_text() == "jobs: []\n"
