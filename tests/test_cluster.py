"""Trainings as jobs of a real Slurm: submitted, warned, preempted, lost, cancelled, and gone on.

The jobs are in flight together, so the order of the tests matters little to the time they take.
Without Slurm they are skipped, unless ZHEN_NEEDS_SLURM says that there must be one.
"""

import contextlib
import io
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
import torch
import yaml
from tests.apart import environment_apart
from tests.checkout import commands, copy_checkout, run
from tests.slurm import NEEDED, Cluster, Job, missing

from zhen import submit as command
from zhen.runs import queue
from zhen.runs.directory import RunDirectory
from zhen.runs.resume import stored_configuration

ROOT, HOSTS = Path(__file__).parents[1], Path("/etc/hosts")
needs_slurm = pytest.mark.skipif(
    missing() is not None and not NEEDED, reason=f"no cluster: {missing()}"
)
pytestmark = [pytest.mark.slow, needs_slurm]


def test_there_is_a_slurm_where_there_must_be_one() -> None:
    assert missing() is None


class Place:
    """Where the toy trainings lie that are submitted here."""

    def __init__(self, folder: Path, tsv: dict[str, Path], cluster: Cluster) -> None:
        self.runs, self.cluster = folder / "runs", cluster
        self.settings = [
            "debug=fast",
            "trainer=cpu",
            "data=files",
            *(f"data.{name}={path}" for name, path in tsv.items()),
            "name=toy",
            "trainer.max_steps=8",
            "trainer.val_check_interval=3",
            "data.batch.tokens=300",
            "optimizer.lr=0.01",
            "scheduler=linear",
            "scheduler.warmup=2",
            f"paths.runs={self.runs}",
            f"paths.cache={folder / 'cache'}",
            "cluster.cpus=1",
            "cluster.time=10",
            "cluster.warning=60",
        ]

    def submit(self, *more: str) -> "Submitted":
        return Submitted(self.cluster, say(*self.settings, *more))


def say(*words: str) -> str:
    """What zhen.submit prints."""
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as out:
        patch.setattr(sys, "argv", ["zhen.submit", *words])
        command.main()
    return out.getvalue()


def refusal(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    with pytest.raises(SystemExit) as stop:
        say(*words)
    if isinstance(stop.value.code, str):
        return stop.value.code
    assert stop.value.code == 1
    return capsys.readouterr().err


class Submitted(Job):
    """What the command said of a job."""

    def __init__(self, cluster: Cluster, said: str) -> None:
        self.said = said
        number = re.search(r"Submitted job (\d+): ", said)
        assert number is not None, said
        super().__init__(cluster, number[1])
        self.run = Path(re.search(r"Run directory: (\S+?)(-N, .*)?\n", said)[1])

    def task(self, number: int) -> Job:
        return Job(self.cluster, f"{self.number}_{number}")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    made, hosts = Cluster(tmp_path_factory.mktemp("slurm") / "cluster"), HOSTS.read_text()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in made.variables.items():
            patch.setenv(name, value)
        try:
            made.start()
            yield made
        finally:
            made.stop()
    # As if it had never been there.
    assert not made.folder.exists() and HOSTS.read_text() == hosts


@pytest.fixture(scope="module")
def place(
    cluster: Cluster, tmp_path_factory: pytest.TempPathFactory, tsv: dict[str, Path]
) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("submitted")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment_apart(folder).items():
            patch.setenv(name, value)
        patch.setenv("PYTHONPATH", f"{ROOT / 'src'}:{ROOT}")
        yield Place(folder, tsv, cluster)


def wait_at(*updates: int) -> str:
    return f"+callbacks.wait={{_target_:tests.waiting.Wait,updates:{list(updates)}}}"


@pytest.fixture(scope="module")
def jobs(place: Place) -> dict[str, Submitted]:
    """All the trainings, in flight together."""
    ddp = ["trainer.num_nodes=2", "trainer.strategy=ddp"]
    spare = ["cluster.partition=spare", "cluster.time=3"]
    two = ["trainer.devices=2", "trainer.strategy=ddp"]  # ranks on one node
    cases = {  # in this order into the queue
        "requeued": [*two, *spare, "logger=default", wait_at(4, 6)],
        "whole": [],
        "lost": [*ddp, wait_at(4)],
        "two nodes": ddp,
        "cancelled": [wait_at(4)],
        "crash": ["optimizer.lr=1e30"],
        "sweep": ["seed=1,2", "trainer.max_steps=3", "cluster.at_once=1"],
    }
    one = "cluster.options=['--nodelist=n1']"
    found = {}
    for name, words in cases.items():
        found[name] = place.submit(*words, *([] if words[:2] == ddp else [one]))
        if name == "requeued":  # its time is short: it is to be where it waits before it is warned
            found[name].wait_for(found[name].run / "waiting-0")
    return found


def weights(run: Path) -> dict[str, torch.Tensor]:
    content = torch.load(run / "checkpoints" / "last.ckpt", weights_only=True)
    moments = content["optimizer_states"][0]["state"]
    return content["state_dict"] | {
        f"{i} {key}": each for i, state in moments.items() for key, each in state.items()
    }


def check_alike(run: Path, other: Path) -> None:
    """The same end, bit for bit."""
    ours, theirs = weights(run), weights(other)
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[key], theirs[key]) for key in ours)
    assert (run / "test.hyp").read_bytes() == (other / "test.hyp").read_bytes()


def updates(run: Path) -> int:
    return json.loads((run / "results.json").read_text(encoding="utf-8"))["updates"]


@pytest.fixture(scope="module")
def whole(jobs: dict[str, Submitted]) -> Path:
    """A run that nobody touched."""
    job = jobs["whole"]
    assert job.end()["JobState"] == "COMPLETED", job.log()
    return job.run


def test_a_training_on_one_node(jobs: dict[str, Submitted], whole: Path) -> None:
    job = jobs["whole"]
    assert updates(whole) == 8
    assert job.said.startswith(
        f"Submitted job {job.number}: 1 node x 1 process, no GPU\nRun directory: {whole}\n\nNext:\n"
        f"  follow:  squeue -j {job.number}\n           tail -F {whole}/slurm-{job.number}.txt\n"
        f"  cancel:  scancel {job.number}\n  resume:  make submit resume={whole} cluster."
    )
    assert "Test scores" in (whole / f"slurm-{job.number}.txt").read_text()
    assert (whole / "submit.sh").read_text().startswith("#!/bin/bash\n")


def test_a_sweep_is_one_job_array(jobs: dict[str, Submitted], place: Place) -> None:
    job = jobs["sweep"]
    assert ", 2 times\n" in job.said
    assert [job.task(n).end()["JobState"] for n in (1, 2)] == ["COMPLETED"] * 2
    runs = [RunDirectory(job.run.with_name(f"{job.run.name}-{n}")) for n in (1, 2)]
    assert [stored_configuration(run).seed for run in runs] == [1, 2]
    assert [updates(run.path) for run in runs] == [3, 3]
    assert sorted(path.name for path in job.run.iterdir()) == [
        "slurm-1.txt", "slurm-2.txt", "submit.sh", "sweep.yaml",
    ]  # fmt: skip
    sweep = yaml.safe_load((job.run / "sweep.yaml").read_text())
    assert "seed=1,2" in sweep["words"] and "seed=2" in sweep["jobs"][1]
    began, ended = (job.task(n).show()[k] for n, k in ((2, "StartTime"), (1, "EndTime")))
    assert began >= ended  # cluster.at_once=1


def test_a_crash_is_not_requeued(jobs: dict[str, Submitted]) -> None:
    ended = jobs["crash"].end()
    assert (ended["JobState"], ended["ExitCode"]) == ("FAILED", "1:0")
    assert ended["Restarts"] == "0" and "error: " in jobs["crash"].log()


def test_warned_of_the_time_limit_then_preempted(jobs: dict[str, Submitted], place: Place) -> None:
    """Two ranks, requeued twice: by their script, and by Slurm, which wants the node for others."""
    job = jobs["requeued"]
    assert ": 1 node x 2 processes, no GPU\n" in job.said
    job.wait_for(job.run / "waiting-1")
    assert job.show()["Restarts"] == "1"
    assert "requeued, start 2" in job.log()
    assert "SIGUSR1: stopped after update 4" in (job.run / "log.txt").read_text()
    for name in ("whole", "crash", "two nodes"):  # so that it is known who has which CPUs
        jobs[name].end()
    # Of the node's 16, two more trainings have one each.
    urgent = ["--partition=main", "--nodelist=n1", "--cpus-per-task=14", "--output=/dev/null"]
    place.cluster.run("sbatch", "--job-name=urgent", *urgent, "--wrap=sleep 1")
    ended = job.end()
    assert (ended["JobState"], ended["Restarts"]) == ("COMPLETED", "2"), job.log()
    assert "SIGTERM: stopped after update 6" in (job.run / "log.txt").read_text()
    check_alike(job.run, jobs["two nodes"].run)  # which nobody touched
    provenance = json.loads((job.run / "provenance.json").read_text(encoding="utf-8"))
    assert [each["update"] for each in provenance["resumed"]] == [4, 6]
    tracked = {path.name.rpartition("-")[2] for path in (job.run / "wandb").glob("offline-run-*")}
    assert tracked == {(job.run / "wandb" / "id.txt").read_text()}


def test_cancelled_keeps_its_state_and_is_resumed(
    jobs: dict[str, Submitted], place: Place, whole: Path
) -> None:
    job = jobs["cancelled"]
    job.wait_for(job.run / "waiting-0")
    place.cluster.run("scancel", job.number)
    ended = job.end()
    assert (ended["JobState"], ended["Restarts"]) == ("CANCELLED", "0")
    assert "SIGTERM: stopped after update 4" in (job.run / "log.txt").read_text()
    again = Submitted(place.cluster, say(f"resume={job.run}", *place.settings[-5:]))
    assert again.run == job.run
    assert again.end()["JobState"] == "COMPLETED", again.log()
    check_alike(job.run, whole)


def test_a_training_on_two_nodes_of_which_one_is_lost(
    jobs: dict[str, Submitted], place: Place
) -> None:
    both, job = jobs["two nodes"], jobs["lost"]
    assert ": 2 nodes x 1 process, no GPU\n" in both.said
    assert both.end()["JobState"] == "COMPLETED", both.log()
    assert "2 ranks on 2 machines x cpu" in (both.run / "log.txt").read_text()
    assert (both.run / "log.1.txt").exists()
    job.wait_for(job.run / "waiting-0")
    place.cluster.lose("n2")
    job.until(lambda shown: shown["Restarts"] == "1")
    place.cluster.restore("n2")
    assert job.end()["JobState"] == "COMPLETED", job.log()
    check_alike(job.run, both.run)


@pytest.fixture
def instead(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], None]:
    """Lets a shell command run instead of a training."""

    def instead(line: str) -> None:
        stub = tmp_path / "python"
        stub.write_text(f"#!/bin/sh\n{line}\n")
        stub.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(stub))

    return instead


@pytest.mark.parametrize(("array", "line"), [(False, "kill -USR1 $$"), (True, "exit 143")])
def test_a_limit_on_requeues(
    place: Place, instead: Callable[[str], None], array: bool, line: str
) -> None:
    """And a signal that comes before the training has begun requeues it, too."""
    instead(line)
    job = place.submit("cluster.max_requeues=1", *(["seed=1,2"] if array else []))
    tasks: Sequence[Job] = [job.task(1), job.task(2)] if array else [job]
    for task in tasks:
        ended = task.end()
        assert (ended["JobState"], ended["Restarts"]) == ("FAILED", "1"), task.log()
        assert task.log().count("requeued, start 2") == 1
        assert "not requeued: cluster.max_requeues=1; to go on: make submit resume=" in task.log()


def test_requeues_by_others_count(place: Place, instead: Callable[[str], None]) -> None:
    instead("sleep 60")
    job = place.submit("cluster.max_requeues=0")
    job.until(lambda shown: shown["JobState"] == "RUNNING")
    place.cluster.run("scontrol", "requeue", job.number)
    ended = job.end()
    assert (ended["JobState"], ended["Restarts"]) == ("FAILED", "1")
    assert "error: started again 1 times, more than cluster.max_requeues=0" in job.log()


def test_every_command_of_the_page_runs_as_printed(place: Place, tmp_path: Path) -> None:
    checkout = copy_checkout(tmp_path)
    for line in commands("docs/cluster.md"):
        done = run(line, checkout)
        assert done.returncode == 0, f"{line}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        if "make submit" in line and "DRY" not in line:
            job = Submitted(place.cluster, done.stdout)
            tasks = [job.task(1), job.task(2)] if "seed=1,2" in line else [job]
            assert [task.end()["JobState"] for task in tasks] == ["COMPLETED"] * len(tasks)
    assert len(list((checkout / "runs").glob("*/*/results.json"))) == 3


def test_the_cluster_file_and_the_quotations_of_the_page(tmp_path: Path) -> None:
    checkout = copy_checkout(tmp_path)
    page = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")
    (ours,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    (checkout / "configs" / "cluster" / "mine.yaml").write_text(ours)
    quoted = re.findall(r"`('cluster\.setup=.*?|cluster\.partition='.*?)`", page)
    done = run(f"make submit cluster=mine trainer=gpu {' '.join(quoted)} DRY=1", checkout)
    assert done.returncode == 0, done.stderr
    assert {
        "#SBATCH --account=translation",
        "#SBATCH --partition=a,b",
        "export HF_HUB_OFFLINE=1",
    } <= set(done.stdout.splitlines())


REFUSED = [
    ("cluster.partition=mian", "cluster.partition=mian: there is no such partition; did you mean"),
    ("cluster.time=2-0", "cluster.time=2-0 is more than partition main allows, 24 hours: take"),
    ("trainer.num_nodes=3", "partition main has 2 nodes with the 1 CPUs and 0 GPUs that the run"),
    (
        "cluster.cpus=17",
        "partition main has 0 nodes with the 17 CPUs and 0 GPUs that the run needs",
    ),
    ("cluster.gpus=1 trainer.accelerator=gpu", "partition main has 0 nodes with the 1 CPUs and 1"),
    ("cluster.options=[--account]", "sbatch: "),
]


@pytest.mark.parametrize(("words", "message"), REFUSED)
def test_what_could_never_run_is_refused(
    place: Place, words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = set(place.runs.glob("*/*"))
    assert refusal(capsys, *place.settings, *words.split()).startswith(f"error: {message}")
    assert set(place.runs.glob("*/*")) == before


def test_a_queue_that_takes_no_more(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(queue, "PATIENCE", 3)
    before = set(place.runs.glob("*/*"))
    held = ["sbatch", "--hold", "--job-name=filling", "--output=/dev/null", "--wrap=true"]
    try:
        with pytest.raises(subprocess.TimeoutExpired):  # it tries again for two minutes
            for _ in range(100):
                subprocess.run(held, check=True, timeout=2, capture_output=True)
        error = refusal(capsys, *place.settings)
    finally:
        place.cluster.run("scancel", "--name=filling")
    assert error.startswith("error: sbatch has no answer after 3 seconds (")
    assert error.endswith("the queue is full, or Slurm is down; try again later\n")
    assert set(place.runs.glob("*/*")) == before
