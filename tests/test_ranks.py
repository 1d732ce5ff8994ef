"""Several ranks as real processes, however they are started: one run, and one end."""

import csv
import json
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.apart import environment_apart
from tests.seen import pairs_of

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
TROUBLE = str(ROOT / "tests" / "trouble.py")
NUMBERS = ("loss", "nll", "perplexity", "bleu", "chrf")


class Place:
    """Where some trainings of a toy model lie, and what they have in common."""

    def __init__(self, folder: Path, tsv: dict[str, Path]) -> None:
        self.folder, self.runs = folder, folder / "runs" / "ranks"
        self.settings = [
            "debug=fast",
            "trainer=ddp_cpu",
            "data=files",
            *(f"data.{name}={path}" for name, path in tsv.items()),
            "name=ranks",
            "trainer.max_steps=4",
            "trainer.val_check_interval=2",
            "trainer.limit_val_batches=1.0",
            "trainer.limit_test_batches=1.0",
            "data.batch.tokens=300",
            "optimizer.lr=1e-30",  # so that the scores are those of the same weights
            f"paths.runs={folder / 'runs'}",
            f"paths.cache={folder / 'cache'}",
        ]
        python = f"{ROOT / 'src'}:{ROOT}"
        self.environment = {**environment_apart(folder), "PYTHONPATH": python}

    def start(self, *command: str, **variables: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, *command],
            cwd=self.folder,
            env={**self.environment, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    @property
    def seconds_since_harm(self) -> float:
        """Since what `tests/trouble.py` did last."""
        return time.time() - (self.folder / "harm").stat().st_mtime

    def train(self, *command: str, **variables: str) -> Path:
        """The run directory of a training that succeeds."""
        process = self.start(*command, **variables)
        error = process.communicate(timeout=400)[1].decode()
        assert process.returncode == 0, error
        return max(self.runs.iterdir(), key=lambda path: path.stat().st_mtime_ns)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, tsv: dict[str, Path]) -> Place:
    return Place(tmp_path_factory.mktemp("ranks"), tsv)


@pytest.fixture(scope="module")
def alone(place: Place) -> Path:
    """The same training on one rank."""
    settings = [*place.settings, "trainer=cpu", "data.batch.eval_tokens=40"]
    return place.train("-m", "zhen.train", *settings, ZHEN_RUN_ID="alone")


def free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return str(server.getsockname()[1])


def scores(run: Path) -> dict[str, float]:
    """Of the test, and of each validation."""
    results = json.loads((run / "results.json").read_text(encoding="utf-8"))
    assert results["test"]["test"]["sentences"] == 10
    found = {f"test {name}": results["test"]["test"][name] for name in NUMBERS}
    with (run / "metrics.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["val/loss"]]
    assert len(rows) == 2
    for i, row in enumerate(rows):
        found |= {f"val {i} {name}": float(row[f"val/{name}"]) for name in NUMBERS}
    return found


def check_one_run(place: Place, run: Path, alone: Path, ranks: int) -> None:
    logs = [run / "log.txt", *(run / f"log.{rank}.txt" for rank in range(1, ranks))]
    assert sorted(run.glob("log*")) == sorted(logs)
    assert f", {ranks} ranks x cpu, 32-true, run directory {run}\n" in logs[0].read_text()
    assert all(log.read_text().count(" parameters, ") == 1 for log in logs)
    # Made once: by the run of one rank, or by whichever came first.
    kinds = (place.folder / "cache").iterdir()
    made = {kind.name: [each for each in kind.iterdir() if each.name[0] != "."] for kind in kinds}
    assert len(made["tokenizers"]) == 1
    assert scores(run) == pytest.approx(scores(alone), rel=1e-5)
    assert (run / "test.hyp").read_bytes() == (alone / "test.hyp").read_bytes()


def test_lightning_starts_the_ranks(place: Place, alone: Path) -> None:
    more = ["trainer.devices=3", "logger=default", "data.batch.eval_tokens=100"]
    run = place.train("-m", "zhen.train", *place.settings, *more, ZHEN_RUN_ID="lightning")
    assert run.name == "lightning"
    check_one_run(place, run, alone, ranks=3)
    assert len(list((run / "wandb").glob("offline-run-*"))) == 1


def test_torchrun_starts_the_ranks(place: Place, alone: Path) -> None:
    """As docs/training.md prints it; and rank 0 names the run, whose name nobody has given."""
    page = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"^    torchrun (.*)$", page, re.MULTILINE)
    before = set(place.runs.iterdir())
    run = place.train("-m", "torch.distributed.run", f"--master-port={free_port()}",
                      *line.split(), *place.settings)  # fmt: skip
    assert set(place.runs.iterdir()) - before == {run}
    check_one_run(place, run, alone, ranks=2)


def test_torchrun_starts_the_ranks_on_two_machines(place: Place, alone: Path) -> None:
    """As docs/cluster.md prints it, but with one process each, and both on the loopback."""
    page = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"^    torchrun (.*) -m zhen.train trainer=ddp .*$", page, re.MULTILINE)
    port, before = free_port(), set(place.runs.iterdir())
    line = line.replace("=HOST", "=127.0.0.1").replace("=29500", f"={port}").replace("=4", "=1")
    settings = [*place.settings, "trainer.num_nodes=2", "trainer.devices=1"]
    both = [
        place.start("-m", "torch.distributed.run", *line.replace("=N", f"={n}").split(),
                    "-m", "zhen.train", *settings)
        for n in range(2)
    ]  # fmt: skip
    errors = [process.communicate(timeout=400)[1].decode() for process in both]
    assert [process.returncode for process in both] == [0, 0], errors
    (run,) = set(place.runs.iterdir()) - before
    assert scores(run) == pytest.approx(scores(alone), rel=1e-5)
    assert "2 ranks on 2 machines x cpu" in (run / "log.txt").read_text()
    assert (run / "log.1.txt").exists()


def slurm(rank: int, port: str, job: str) -> dict[str, str]:
    """What Slurm says to each of two tasks, on a node each."""
    names = {"JOB_ID": job, "JOB_NAME": "zhen", "NTASKS": "2", "NTASKS_PER_NODE": "1"}
    names |= {"NNODES": "2", "PROCID": str(rank), "NODEID": str(rank), "LOCALID": "0"}
    variables = {f"SLURM_{name}": value for name, value in names.items()}
    return {**variables, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}


@pytest.mark.parametrize(("harmed", "harm"), [(1, "user"), (0, "bug")])
def test_slurm_starts_the_ranks_and_one_fails(place: Place, harmed: int, harm: str) -> None:
    """On two machines, and nothing outside would end the other rank; both end within a minute."""
    port, job = free_port(), f"47{harmed}"
    settings = [*place.settings, "trainer.devices=1", "trainer.num_nodes=2"]
    both = [
        place.start(TROUBLE, *settings, HARM=f"{harmed}:{harm}", **slurm(rank, port, job))
        for rank in range(2)
    ]
    errors = [process.communicate(timeout=400)[1].decode() for process in both]
    assert [process.returncode for process in both] == [1, 1], errors
    assert place.seconds_since_harm < 60
    logs = [(place.runs / job / name).read_text() for name in ("log.txt", "log.1.txt")]
    assert "2 ranks on 2 machines x cpu" in logs[0]
    said = "no more of this" if harm == "user" else "ZeroDivisionError: too small"
    assert all(said in log for log in logs)
    assert f"error: rank {harmed}: {said}" in logs[1 - harmed]
    if harm == "user":
        assert [error.count(said) for error in errors] == [1, 0]
        assert "Traceback" not in errors[0] + errors[1]


def test_a_rank_that_is_killed_ends_the_others(place: Place) -> None:
    process = place.start(TROUBLE, *place.settings, HARM="1:kill", ZHEN_RUN_ID="killed")
    error = process.communicate(timeout=400)[1].decode()
    assert place.seconds_since_harm < 60
    assert process.returncode == 1, error
    assert error.count("error: rank 1: its process was killed, or its machine is lost") == 1


def test_a_rank_does_not_outlive_the_one_that_started_it(place: Place) -> None:
    process = place.start(TROUBLE, *place.settings, HARM="0:kill", ZHEN_RUN_ID="orphan")
    error = process.communicate(timeout=400)[1].decode()  # the other one has closed its end, too
    assert process.returncode == -signal.SIGKILL
    assert "error: rank 0: its process was killed, or its machine is lost" in error


def test_another_number_of_processes_than_ranks(place: Place) -> None:
    variables: dict[str, Any] = {"WORLD_SIZE": "2", "RANK": "1", "LOCAL_RANK": "1"}
    process = place.start("-m", "zhen.train", *place.settings, "trainer=cpu", **variables,
                          ZHEN_RUN_ID="alone-again")  # fmt: skip
    error = process.communicate(timeout=200)[1].decode()
    assert process.returncode == 1
    assert error == (
        "error: rank 1: 2 processes were started, but trainer.num_nodes=1 and trainer.devices=1"
        " make 1 ranks: let both be as they were started, as trainer=ddp trainer.devices=2\n"
    )
    assert not (place.runs / "alone-again").exists()


@pytest.mark.parametrize("action", ["stop", "skip"])
def test_a_loss_that_is_no_number_on_one_rank(place: Place, action: str) -> None:
    """All ranks stop, or leave the update out: its gradient is that of all of them."""
    settings = [*place.settings, "optimizer.lr=1e-3", f"nonfinite_loss={action}"]
    process = place.start(TROUBLE, *settings, HARM="1:nan", ZHEN_RUN_ID=f"nan-{action}")
    error = process.communicate(timeout=400)[1].decode()
    run = place.runs / f"nan-{action}"
    logs = [(run / name).read_text() for name in ("log.txt", "log.1.txt")]
    assert "Traceback" not in error
    said = "the training loss of update 3 is nan for pairs "
    state = torch.load(run / "checkpoints" / "last.ckpt", weights_only=True)
    assert all(weight.isfinite().all() for weight in state["state_dict"].values())
    if action == "stop":
        assert process.returncode == 1 and state["global_step"] == 2
        assert error.count(f"error: {said}") == 1
        assert all(said in log for log in logs)
    else:
        assert process.returncode == 0 and state["global_step"] == 4, error
        assert all(log.count(said) == log.count(": the update is skipped") == 1 for log in logs)


def test_ranks_go_on_where_they_were(place: Place) -> None:
    """Weights and the random numbers of each rank, which are its own; a signal reaches one."""
    settings = [
        *place.settings,
        "optimizer.lr=1e-3",
        "model.dropout=0.1",
        "data.max_length=32",
        "data.batch.tokens=110",
        "+callbacks.seen={_target_:tests.seen.Seen}",
    ]
    paths = place.settings[-2:]
    whole = place.train("-m", "zhen.train", *settings, ZHEN_RUN_ID="uncut")
    process = place.start(TROUBLE, *settings, HARM="1:end", ZHEN_RUN_ID="cut")
    error = process.communicate(timeout=400)[1].decode()
    assert process.returncode == 128 + signal.SIGTERM, error
    cut = place.runs / "cut"
    for name in ("log.txt", "log.1.txt"):
        assert "SIGTERM: stopped after update 3; to go on: " in (cut / name).read_text()

    place.train("-m", "zhen.train", f"resume={cut}", *paths)
    one, two = (
        torch.load(run / "checkpoints" / "last.ckpt", weights_only=True) for run in (whole, cut)
    )
    assert all(torch.equal(two["state_dict"][name], it) for name, it in one["state_dict"].items())
    ranks = [[each["torch"] for each in run["resume"]["random"]] for run in (one, two)]
    assert all(map(torch.equal, *ranks)) and not torch.equal(*ranks[0])

    # Then on one rank, and on two again, both amid an epoch, whose pairs come once all the same.
    for updates, ranks, strategy in ((9, 1, "auto"), (14, 2, "ddp")):
        place.train(
            *("-m", "zhen.train", f"resume={cut}", f"trainer.max_steps={updates}"),
            *(f"trainer.devices={ranks}", f"trainer.strategy={strategy}", *paths),
        )
        results = json.loads((cut / "results.json").read_text(encoding="utf-8"))
        state = torch.load(cut / "checkpoints" / "last.ckpt", weights_only=True)
        assert results["updates"] == state["global_step"] == updates
        assert state["resume"]["world_size"] == ranks == len(state["resume"]["random"])
    assert [pairs_of(cut, epoch) for epoch in range(2)] == [list(range(100))] * 2
