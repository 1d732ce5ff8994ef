"""A training as Weights & Biases and TensorBoard see it, and made again by `zhen.reproduce`."""

import csv
import fcntl
import json
import os
import pty
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from tests.test_resume import KILLED, Place
from tests.training.tensorboard_file import events
from tests.training.wandb_file import parts

from zhen.config import run_command
from zhen.errors import STOPPING, UserError
from zhen.reproduce import reproduce
from zhen.reproduce import train as begin_again
from zhen.runs.directory import RunDirectory
from zhen.runs.reproduction import prepare, provenance_of
from zhen.train import train

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, tsv: dict[str, Path]) -> Place:
    return Place(tmp_path_factory.mktemp("place"), tsv)


def here(place: Place, command: Callable[..., Any], *arguments: str, run_id: str = "") -> int:
    """The exit status of a command in this process, which spares it the imports."""
    threads = torch.get_num_threads()
    with pytest.MonkeyPatch.context() as patch:
        for name in os.environ.keys() - place.environment.keys():
            patch.delenv(name)
        patch.setenv("HOME", place.environment["HOME"])
        if run_id:
            patch.setenv("ZHEN_RUN_ID", run_id)
        patch.chdir(place.folder)
        patch.setattr(sys, "argv", [f"zhen.{command.__name__}", *arguments, *place.paths])
        torch.set_num_threads(1)
        try:
            run_command(command, config_name=command.__name__)
        except SystemExit as stop:
            assert isinstance(stop.code, int)
            return stop.code
        finally:
            torch.set_num_threads(threads)
    return 0


@pytest.fixture(scope="module")
def run(place: Place) -> Path:
    """Six updates, with a validation after the third and the sixth: runs/tiny/done."""
    about = ["tags=[short,greedy]", "notes=trial", "job_type=baseline"]
    words = ["logger=default", *(f"logger.wandb.{each}" for each in about)]
    assert here(place, train, *place.new, *words, run_id="done") == 0
    return place.runs / "tiny" / "done"


def logged(run_dir: Path) -> dict[str, dict[int, float]]:
    """metrics.csv, by name and step."""
    found: dict[str, dict[int, float]] = {}
    with (run_dir / "metrics.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            step = int(row.pop("step"))
            for name, value in row.items():
                if value:
                    found.setdefault(name, {})[step] = float(value)
    return found


def weights(run_dir: Path) -> dict[str, torch.Tensor]:
    content = torch.load(run_dir / "checkpoints" / "last.ckpt", weights_only=True)
    state: dict[str, torch.Tensor] = content["state_dict"]
    return state


def test_wandb_has_what_metrics_csv_has_on_one_axis(run: Path) -> None:
    (found,) = parts(run)
    numbers = logged(run)
    assert list(numbers["train/loss"]) == [0, 1, 2, 3, 4, 5]
    assert list(numbers["val/bleu"]) == [2, 5] and list(numbers["test/bleu"]) == [6]
    for name, values in numbers.items():
        assert found.column(name) == pytest.approx(values, nan_ok=True), name
    steps = [row["_step"] for row in found.rows]
    assert steps == sorted(set(steps))
    assert list(found.column("samples._type")) == [2, 5]
    assert found.config == yaml.safe_load((run / "config.yaml").read_text(encoding="utf-8"))
    run_there = found.run
    assert (found.status, run_there.display_name, run_there.run_group) == (0, "tiny/done", "tiny")
    about = list(run_there.tags), run_there.notes, run_there.job_type
    assert about == (["short", "greedy"], "trial", "baseline")


def test_a_killed_run_goes_on_as_the_same_one(place: Place, run: Path) -> None:
    killed = place.start(KILLED, "paused", "5", *place.new, "logger=default", run_id="killed")
    place.wait(killed)
    time.sleep(3)  # wandb writes each second
    killed.kill()
    killed.communicate(timeout=60)
    path = place.runs / "tiny" / "killed"
    assert here(place, train, f"resume={path}") == 0
    first, second = parts(path)
    assert first.run.run_id == second.run.run_id
    assert (first.status, second.status) == (None, 0)
    assert list(second.column("train/loss")) == [4, 5]  # last.ckpt is from update 4
    both = {**first.column("train/loss"), **second.column("train/loss")}
    whole = parts(run)[0].column("train/loss")
    assert both == {step: whole[step] for step in both}
    assert set(both) >= set(whole) - {3}  # a row is written when the next one begins


def test_a_failed_run_is_marked_so(place: Place) -> None:
    arguments = [*place.new, "logger=default", "callbacks.checkpoint.monitor=val/none"]
    assert here(place, train, *arguments, run_id="failed") == 1
    (found,) = parts(place.runs / "tiny" / "failed")
    assert found.status == 1 and list(found.column("train/loss")) == [0, 1, 2]


def test_tensorboard_shows_the_same(place: Place, run: Path) -> None:
    assert here(place, train, *place.new, "logger=tensorboard", run_id="board") == 0
    path = place.runs / "tiny" / "board"
    assert len(list((path / "tensorboard").iterdir())) == 1  # of the test, too
    found: dict[str, dict[int, Any]] = {}
    for event in events(path):
        for value in event.summary.value:
            found.setdefault(value.tag, {})[event.step] = value
    numbers = logged(path)
    assert numbers == logged(run)
    for name, values in numbers.items():
        assert {step: v.simple_value for step, v in found[name].items()} == pytest.approx(values)
    assert list(found["samples/text_summary"]) == [2, 5]
    (text,) = found["config/text_summary"][0].tensor.string_val
    stored = yaml.safe_load((path / "config.yaml").read_text(encoding="utf-8"))
    assert yaml.safe_load(text.decode().removeprefix("```yaml").removesuffix("```")) == stored


def test_leet_draws_the_curves_of_an_offline_run(place: Place, run: Path) -> None:
    (offline,) = (run / "wandb").glob("offline-run-*")
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(place.environment, TERM="xterm-256color")
        os.execv(sys.executable, [sys.executable, "-m", "wandb", "leet", str(offline)])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 180, 0, 0))
    shown, until = "", time.monotonic() + 60
    wanted = ("train/loss", "val/bleu", "⢀")  # the last: a piece of a curve
    while not all(each in shown for each in wanted) and time.monotonic() < until:
        if select.select([terminal], [], [], 1)[0]:
            shown += os.read(terminal, 65536).decode(errors="ignore")
    os.kill(child, signal.SIGTERM)
    os.waitpid(child, 0)
    os.close(terminal)
    assert all(each in shown for each in wanted)


def test_a_run_made_again_ends_the_same(place: Place, run: Path) -> None:
    environment = {**place.environment, "OMP_NUM_THREADS": "2", "ZHEN_RUN_ID": "again"}
    done = subprocess.run(
        [sys.executable, "-m", "zhen.reproduce", f"run={run}", *place.paths],
        cwd=place.folder, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(f"\nThe same scores and translations as {run}\n")
    again = place.runs / "tiny" / "again"
    ours, theirs = weights(run), weights(again)
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    about = provenance_of(RunDirectory(again))
    assert about["reproduces"]["run"] == str(run) and about["threads"] == 1
    assert parts(again)[0].run.run_id != parts(run)[0].run.run_id
    assert parts(again)[0].run.display_name == "tiny/again"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1], ids=lambda each: each.name)
def test_what_would_stop_it_reaches_the_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    program = tmp_path / "python"  # signals whoever started it until it is signalled itself
    program.write_text(
        f"#!/bin/bash\ntrap 'exit {128 + number}' {number.name}\n"
        f"for i in {{1..50}}; do kill -{number.name} $PPID; sleep 0.1; done\n"
    )
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    before = {each: signal.signal(each, lambda *_: None) for each in STOPPING}
    try:
        assert begin_again(RunDirectory(tmp_path), None) == 128 + number
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


@pytest.fixture
def copy(place: Place, run: Path) -> Path:
    """Of the run, whose provenance a test may change."""
    path = place.runs / "tiny" / "copy"
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(run, path)
    return path


OTHERS = {
    "code": (
        {"code": "0" * 64, "git": {"commit": "1234567890abcdef", "dirty": False}},
        "the code is not that of commit 1234567890 (",
        "git checkout 1234567890",
    ),
    "no commit": ({"code": "0" * 64, "git": None}, "the run, which knows of no commit", "root"),
    "packages": (
        {"packages": {"torch": "1.0", "gone": "2.0"}},  # nothing of ours needs the second
        "torch was 1.0 and is",
        "(pip install torch==1.0)",
    ),
    "settings": (
        {"resumed": [{"update": 3, "changed": {"trainer.max_steps": "3 -> 6"}}]},
        "after update 3 it went on with other settings (trainer.max_steps: 3 -> 6)",
        "",
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_not_as_it_was_is_refused(
    place: Place, copy: Path, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    changes, says, help_ = OTHERS[name]
    about = provenance_of(RunDirectory(copy))
    if "resumed" in changes:
        changes["resumed"][0]["code"] = about["code"]
    (copy / "provenance.json").write_text(json.dumps({**about, **changes}))
    before = sorted(place.runs.glob("*/*"))
    assert here(place, reproduce, f"run={copy}") == 1
    line = capfd.readouterr().err.replace(about["root"], "root")
    assert line.startswith(f"error: {copy} cannot be made again here: ") and line.count("\n") == 1
    assert (
        says in line
        and help_ in line
        and line.endswith("; or go on all the same with force=true\n")
    )
    assert "gone" not in line
    assert sorted(place.runs.glob("*/*")) == before


def test_other_pairs_are_refused(
    place: Place, copy: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    change(copy / "provenance.json", "corpus", {"val": "0" * 64})
    before = sorted(place.runs.glob("*/*"))
    assert here(place, reproduce, f"run={copy}") == 1
    assert "error: data.val: the pairs are not those that" in capfd.readouterr().err
    assert sorted(place.runs.glob("*/*")) == before


def change(file: Path, name: str, value: Any) -> None:
    """Change a value of a JSON file, or some of one that is a mapping."""
    content = json.loads(file.read_text(encoding="utf-8"))
    content[name] = {**content[name], **value} if isinstance(value, dict) else value
    file.write_text(json.dumps(content), encoding="utf-8")


@pytest.fixture
def trained(run: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Lets a run that is made again be `run` in a moment; what each was told to be."""
    told: list[dict[str, Any]] = []

    def train(new: RunDirectory, threads: int | None) -> int:
        told.append(json.loads(new.provenance.read_text(encoding="utf-8"))["reproduces"])
        shutil.copytree(run, new.path, dirs_exist_ok=True)
        return 0

    monkeypatch.setattr("zhen.reproduce.train", train)
    return told


@pytest.mark.usefixtures("trained")
def test_other_scores_are_shown_with_what_else_is_different(
    place: Place, run: Path, copy: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    scores = json.loads((run / "results.json").read_text(encoding="utf-8"))["test"]["test"]
    others = {**scores, "bleu": 12.5, "chrf": 25.5}
    change(copy / "results.json", "test", {"test": others})
    change(copy / "provenance.json", "threads", 99)
    assert here(place, reproduce, f"run={copy}", run_id="other") == 1
    new = place.runs / "tiny" / "other"
    said = capfd.readouterr()
    assert said.out.splitlines()[-2:] == [
        f"test {name}: {others[name]} in {copy}, {scores[name]} in {new}"
        for name in ("bleu", "chrf")
    ]
    machine = "(so do threads: 99 and 1)"
    assert said.err == f"error: 2 scores differ between {copy} and {new} {machine}\n"


def test_force_goes_on_with_a_warning_of_whatever_is_different(
    place: Place, copy: Path, trained: list[dict[str, Any]], capfd: pytest.CaptureFixture[str]
) -> None:
    change(copy / "provenance.json", "code", "0" * 64)
    change(copy / "provenance.json", "corpus", {"val": "0" * 64})
    assert here(place, reproduce, f"run={copy}", "force=true", run_id="forced") == 0
    said = capfd.readouterr()
    code, pairs = said.err.splitlines()
    assert code.startswith("warning: the code is not that of ")
    assert pairs == f"warning: the pairs of val are not those of {copy}"
    assert said.out.endswith(f"\nThe same scores and translations as {copy}\n")
    assert trained == [{"run": str(copy), "corpus": {}}]  # so that it refuses none


@pytest.mark.usefixtures("trained")
def test_a_run_without_a_test_has_nothing_to_compare(
    place: Place, copy: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (copy / "results.json").unlink()
    assert here(place, reproduce, f"run={copy}", run_id="untested") == 0
    line = f"\n{copy} was not tested, so there are no scores to compare\n"
    assert capfd.readouterr().out.endswith(line)


@pytest.mark.parametrize(("ended", "status"), [(143, 143), (-9, 137)])
def test_a_training_that_ended_early_keeps_its_directory(
    place: Place, copy: Path, monkeypatch: pytest.MonkeyPatch, ended: int, status: int
) -> None:
    def train(new: RunDirectory, threads: int | None) -> int:
        new.log.touch()
        return ended

    monkeypatch.setattr("zhen.reproduce.train", train)
    name = f"ended{ended}"
    assert here(place, reproduce, f"run={copy}", run_id=name) == status
    assert (place.runs / "tiny" / name / "config.yaml").exists()


def test_a_moved_checkout_reads_its_own_files(place: Place, copy: Path) -> None:
    about = {**provenance_of(RunDirectory(copy)), "root": str(place.folder)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ZHEN_RUN_ID", "moved")
        new = prepare(RunDirectory(copy), about, {"runs": str(place.runs), "cache": "/c"})
    stored = yaml.safe_load(new.config.read_text(encoding="utf-8"))
    root = str(Path(__file__).parents[1])
    assert stored["data"]["train"] == f"{root}/train.tsv"
    assert stored["data"]["cache_dir"] == stored["paths"]["cache"] == "/c"
    assert stored["paths"]["run_dir"] == str(new.path) == str(place.runs / "tiny" / "moved")
    assert stored["callbacks"]["checkpoint"]["dirpath"] == f"{new.path}/checkpoints"


def test_a_run_without_provenance(place: Place, copy: Path) -> None:
    (copy / "provenance.json").unlink()
    with pytest.raises(UserError, match=r"^run: .*/provenance.json is missing or damaged"):
        provenance_of(RunDirectory(copy))
