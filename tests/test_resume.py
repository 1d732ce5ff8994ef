"""`make train resume=...` and `init_from=...`, and the signals that end a run, as commands."""

import csv
import json
import os
import pickle
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from tests.apart import environment_apart

from zhen.config import run_command
from zhen.train import train
from zhen.training import module
from zhen.training.loss import TokenLoss, token_loss
from zhen.training.module import TranslationModule

pytestmark = pytest.mark.slow

KILLED = str(Path(__file__).parent / "killed.py")
Train = Callable[..., tuple[int, str, str]]


class Place:
    """Where some trainings of a toy model lie, and what they have in common."""

    def __init__(self, folder: Path, tsv: dict[str, Path]) -> None:
        self.folder, self.runs = folder, folder / "runs"
        self.files = {name: folder / f"{name}.tsv" for name in tsv}
        for name, path in tsv.items():
            shutil.copy(path, self.files[name])
        self.new = [
            "debug=fast",
            "data=files",
            *(f"data.{name}={path}" for name, path in self.files.items()),
            "name=tiny",
            "trainer.max_steps=6",
            "trainer.val_check_interval=3",
            "trainer.limit_val_batches=1.0",
            "data.batch.tokens=300",
            "data.batch.eval_tokens=40",
            "callbacks.checkpoint.monitor=val/chrf",
            "callbacks.checkpoint.every_n_updates=2",
            "scheduler=constant",
            "scheduler.warmup=5",
        ]
        self.paths = [f"paths.runs={self.runs}", f"paths.cache={folder / 'cache'}"]
        self.environment = environment_apart(folder)

    def start(self, *command: str, run_id: str, **variables: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, *command, *self.paths],
            cwd=self.folder,
            env={**self.environment, "ZHEN_RUN_ID": run_id, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            # A suite that runs in the background ignores SIGINT, and so would its children.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def wait(self, process: subprocess.Popen[bytes]) -> None:
        """For what `tests/killed.py` says when it waits."""
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline() == b"waiting\n", process.stderr.read().decode()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, tsv: dict[str, Path]) -> Place:
    return Place(tmp_path_factory.mktemp("place"), tsv)


@pytest.fixture
def here(
    place: Place, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Iterator[Train]:
    """Runs `zhen.train` in this process, which spares it the imports: status, output, errors."""
    # As many threads as the other processes have: the bits of a sum depend on them.
    threads = torch.get_num_threads()
    torch.set_num_threads(1)

    def run(*arguments: str, run_id: str | None = None) -> tuple[int, str, str]:
        for name in os.environ.keys() - place.environment.keys():
            monkeypatch.delenv(name)
        if run_id is not None:
            monkeypatch.setenv("ZHEN_RUN_ID", run_id)
        monkeypatch.chdir(place.folder)
        monkeypatch.setattr(sys, "argv", ["zhen.train", *arguments, *place.paths])
        capfd.readouterr()
        status = 0
        try:
            run_command(train, config_name="train")
        except SystemExit as stop:
            assert isinstance(stop.code, int)
            status = stop.code
        return (status, *capfd.readouterr())

    yield run
    torch.set_num_threads(threads)


@pytest.fixture
def run(place: Place, here: Train) -> Path:
    """A finished run of six updates, made once: runs/tiny/done."""
    path = place.runs / "tiny" / "done"
    if not path.exists():
        status, _, error = here(*place.new, run_id="done")
        assert status == 0, error
    return path


@pytest.fixture
def begun(place: Place, run: Path) -> Path:
    """One that was killed in update 5, whose last.ckpt is from update 4: runs/tiny/begun."""
    kept, path = place.folder / "begun", place.runs / "tiny" / "begun"
    if not kept.exists():
        process = place.start(KILLED, "update", "5", *place.new, run_id="begun")
        error = process.communicate(timeout=120)[1].decode()
        assert process.returncode == -signal.SIGKILL, error
        shutil.move(path, kept)
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(kept, path)
    return path


def refused(done: tuple[int, str, str]) -> str:
    """The one line of a command that refuses what it is given."""
    status, out, error = done
    lines = error.splitlines()
    assert (status, out, len(lines)) == (1, "", 1), lines
    assert lines[0].startswith("error: ")
    return lines[0].removeprefix("error: ")


def checkpoint(run: Path, name: str = "last.ckpt") -> dict[str, Any]:
    return torch.load(run / "checkpoints" / name, weights_only=True)


def rows(run: Path) -> list[dict[str, str]]:
    with (run / "metrics.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def content(run: Path) -> dict[str, bytes]:
    return {str(p.relative_to(run)): p.read_bytes() for p in run.rglob("*") if p.is_file()}


def settings(run: Path) -> dict[str, Any]:
    return yaml.safe_load((run / "config.yaml").read_text(encoding="utf-8"))


def same_weights(one: Path, other: Path) -> None:
    ours, theirs = checkpoint(one)["state_dict"], checkpoint(other)["state_dict"]
    assert all(torch.equal(ours[key], theirs[key]) for key in ours)


@pytest.mark.parametrize(
    "resume", ["last", "{run}", "{run}/checkpoints", "{run}/checkpoints/last.ckpt"]
)
def test_a_run_goes_on_where_it_was(here: Train, run: Path, begun: Path, resume: str) -> None:
    os.utime(begun / "log.txt")
    assert checkpoint(begun)["global_step"] == 4
    before = (begun / "log.txt").read_text(encoding="utf-8")
    status, out, error = here(f"resume={resume.format(run=begun)}")
    assert status == 0, error
    assert f"Run directory: {begun}" in out and "it goes on after update 4\n" in error
    same_weights(begun, run)
    assert rows(begun) == rows(run)
    assert (begun / "test.hyp").read_bytes() == (run / "test.hyp").read_bytes()
    assert (begun / "log.txt").read_text(encoding="utf-8").startswith(before)
    about = json.loads((begun / "provenance.json").read_text(encoding="utf-8"))
    assert [each["update"] for each in about["resumed"]] == [4]
    assert "resume=" in about["resumed"][0]["command"] and "resume=" not in about["command"]


def test_two_threads_make_the_same_bits_every_time(place: Place) -> None:
    """Where the work is large enough to be shared, and the run is killed once."""
    large = ["trainer=cpu", "model.d_model=128", "model.d_ff=512", "data.batch.tokens=700"]
    commands = {
        "whole": ["-m", "zhen.train", *place.new, *large],
        "parts": [KILLED, "update", "4", *place.new, *large],
    }
    both = [
        place.start(*command, run_id=name, OMP_NUM_THREADS="2")
        for name, command in commands.items()
    ]
    errors = [process.communicate(timeout=200)[1].decode() for process in both]
    assert [process.returncode for process in both] == [0, -signal.SIGKILL], errors
    whole, parts = (place.runs / "tiny" / name for name in commands)
    assert checkpoint(parts)["global_step"] == 3
    last = place.start("-m", "zhen.train", f"resume={parts}", run_id="parts", OMP_NUM_THREADS="2")
    error = last.communicate(timeout=200)[1].decode()
    assert last.returncode == 0, error
    same_weights(parts, whole)
    assert rows(parts) == rows(whole)
    for run in (whole, parts):
        shutil.rmtree(run)


def test_it_goes_on_from_an_earlier_checkpoint(here: Train, run: Path, begun: Path) -> None:
    best = begun / "checkpoints" / "best.ckpt"
    assert checkpoint(begun, "best.ckpt")["global_step"] == 3
    assert here(f"resume={best}")[0] == 0
    same_weights(begun, run)
    assert rows(begun) == rows(run)


def test_last_is_the_newest_run_of_the_name(here: Train, place: Place, begun: Path) -> None:
    line = refused(here("resume=last", "name=other"))
    assert line == (
        f"resume=last: there is no run below {place.runs / 'other'}; begin one without resume"
    )
    for file in ("log.txt", "config.yaml"):
        os.utime(begun / file, (0, 0))  # `done` is newer
    for key in ("resume", "ckpt"):
        assert "done is finished" in here(f"{key}=last", "name=tiny")[1]
    assert refused(here("resume=last", "ckpt=last")).startswith("resume and ckpt are both given")


def test_auto_begins_a_run_or_goes_on_with_it(here: Train, place: Place, begun: Path) -> None:
    assert "holds a run already: go on with it by resume=auto" in refused(
        here(*place.new, run_id="begun")
    )
    status, _, error = here(*place.new, "resume=auto", run_id="begun")
    assert status == 0 and "it goes on after update 4\n" in error
    status, _, error = here(*place.new, "resume=auto", "trainer.max_steps=2", run_id="auto")
    assert status == 0 and "goes on" not in error
    shutil.rmtree(place.runs / "tiny" / "auto")


def test_a_finished_run_says_so_and_stays_as_it_is(here: Train, run: Path) -> None:
    before = content(run)
    status, out, error = here(f"resume={run}")
    assert (status, error) == (0, "")
    assert out == (
        f"{run} is finished, and tested after its 6 updates: to train it further, raise"
        " trainer.max_steps or trainer.max_epochs\n"
    )
    assert content(run) == before


def test_a_finished_run_that_was_not_tested_is_tested(
    here: Train, place: Place, run: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "runs" / "tiny" / "moved"  # and moved to another place
    shutil.copytree(run, copy)
    (copy / "results.json").unlink()
    before = content(copy / "checkpoints")
    assert here(f"resume={copy}")[0] == 0
    for name in ("test.hyp", "metrics.csv"):
        assert (copy / name).read_bytes() == (run / name).read_bytes()
    assert (copy / "results.json").exists() and content(copy / "checkpoints") == before
    assert settings(copy)["callbacks"]["checkpoint"]["dirpath"] == str(copy / "checkpoints")


def test_a_run_can_be_made_longer(here: Train, place: Place, run: Path, begun: Path) -> None:
    # From update 6, and from a kill on the way to it: the same run of nine updates.
    longer = place.runs / "tiny" / "longer"
    shutil.copytree(run, longer)
    for path in (longer, begun):
        status, _, error = here(f"resume={path}", "trainer.max_steps=9")
        assert status == 0 and "; trainer.max_steps: 6 -> 9\n" in error
        assert checkpoint(path)["global_step"] == 9 == settings(path)["trainer"]["max_steps"]
    same_weights(longer, begun)
    assert rows(longer) == rows(begun)
    shutil.rmtree(longer)


def test_bpe_dropout_goes_on(here: Train, place: Place) -> None:
    whole, parts = place.runs / "tiny" / "whole", place.runs / "tiny" / "parts"
    dropout = [*place.new, "tokenizer.dropout=0.3", "trainer.limit_val_batches=0"]
    assert here(*dropout, run_id="whole")[0] == 0
    assert here(*dropout, "trainer.max_steps=4", run_id="parts")[0] == 0
    status, _, error = here(f"resume={parts}", "trainer.max_steps=6")
    assert status == 0, error
    same_weights(parts, whole)
    for path in (whole, parts):
        shutil.rmtree(path)


def test_a_run_without_a_checkpoint_begins_anew(here: Train, run: Path, begun: Path) -> None:
    for file in (begun / "checkpoints").iterdir():
        file.unlink()
    assert len(rows(begun)) > 3
    status, _, error = here(f"resume={begun}")
    assert status == 0 and "it goes on after update 0\n" in error
    same_weights(begun, run)
    assert rows(begun) == rows(run)


REFUSED = [
    ("model.d_model=16", "`model.d_model` is 16, but the run was begun with 32 and can only go on"),
    ("seed=3", "`seed` is 3, but the run was begun with 0 and can only go on so; take it out, or"),
    ("trainer=gpu", "`trainer.precision` is 'bf16-mixed', but the run was begun with '32-true'"),
    ("experiment=phrasebook", "`name` is 'phrasebook', but the run was begun with 'tiny'"),
    ("~optimizer.lr", "`optimizer.lr` is -, but the run was begun with 0.002"),
    ("+model.extra=1", "`model.extra` is not a parameter of zhen.model.Transformer"),
    ("trainer.max_steps=-5", "`trainer.max_steps` must be an int, at least 0, or -1 for no limit"),
    ("init_from=x.ckpt", "resume and init_from are both given: a run that goes on has its weights"),
]


@pytest.mark.parametrize(("argument", "message"), REFUSED, ids=[a for a, _ in REFUSED])
def test_settings_that_make_another_run(
    here: Train, begun: Path, argument: str, message: str
) -> None:
    before = content(begun)
    assert refused(here(f"resume={begun}", argument)).startswith(message)
    assert content(begun) == before


def test_settings_that_may_change(here: Train, begun: Path) -> None:
    status, _, error = here(
        f"resume={begun}", "~callbacks.samples", "decode=beam", "trainer.devices=1"
    )
    assert status == 0
    assert "; decode.num_beams: 1 -> 5" in error and "trainer.devices" not in error
    assert "samples" not in settings(begun)["callbacks"]


def test_a_corpus_that_changed(here: Train, place: Place, begun: Path) -> None:
    before, file = content(begun), place.files["train"]
    text = file.read_bytes()
    try:
        file.write_bytes(text + "茶\ttea\n".encode())
        line = refused(here(f"resume={begun}"))
    finally:
        file.write_bytes(text)
    assert line.startswith(
        f"data.train: the pairs are not those that {begun} was begun with, and it cannot go on"
    )
    assert content(begun) == before


def test_a_corpus_that_moved(here: Train, place: Place, begun: Path, tmp_path: Path) -> None:
    shutil.copy(place.files["train"], tmp_path / "moved.tsv")
    assert here(f"resume={begun}", f"data.train={tmp_path / 'moved.tsv'}")[0] == 0


class Hostile:
    def __reduce__(self) -> Any:
        return os.mkdir, ("ran",)


@pytest.mark.parametrize("kind", ["truncated", "hostile", "foreign", "weights alone", "empty"])
def test_a_checkpoint_that_is_none(here: Train, place: Place, begun: Path, kind: str) -> None:
    file = begun / "checkpoints" / "last.ckpt"
    whole = file.read_bytes()
    file.unlink()
    match kind:
        case "truncated":
            file.write_bytes(whole[: len(whole) // 2])
        case "hostile":
            torch.save({"state_dict": {}, "zhen": Hostile()}, file)
        case "foreign":
            file.write_bytes(pickle.dumps([1, 2]))
        case "weights alone":
            torch.save({"state_dict": {}, "global_step": 4}, file)
        case "empty":
            file.touch()
    before = content(begun)
    line = refused(here(f"resume={begun}"))
    assert line.startswith(f"resume: {file} ")
    assert content(begun) == before and not (place.folder / "ran").exists()


@pytest.mark.parametrize("resume", ["nowhere", "home", "begun.ckpt"])
def test_what_is_no_run(here: Train, place: Place, run: Path, resume: str) -> None:
    (place.folder / "begun.ckpt").touch()
    assert refused(here(f"resume={resume}")) == (
        f"resume={resume} is neither a run directory nor a checkpoint in one; give one, or last"
    )


@pytest.mark.parametrize("text", ["", "a: [", "paths: 3\n"])
def test_a_damaged_configuration(here: Train, begun: Path, text: str) -> None:
    (begun / "config.yaml").write_text(text)
    assert refused(here(f"resume={begun}")) == (
        f"resume: {begun / 'config.yaml'} is damaged: restore it"
    )


def test_init_from_begins_with_weights_and_vocabulary(
    here: Train, place: Place, run: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.tsv"
    other.write_bytes("".join(f"第{n}\tnumber {n}\n" for n in range(60)).encode())
    source = run / "checkpoints" / "best.ckpt"
    arguments = [*place.new, f"init_from={source}", f"data.train={other}", "model.dropout=0"]
    status, _, error = here(*arguments, "trainer.max_steps=0", run_id="tuned")
    assert status == 0, error
    assert f"it begins with the weights and the vocabulary of {source}" in error
    tuned = place.runs / "tiny" / "tuned"
    assert (tuned / "tokenizer.json").read_bytes() == (run / "tokenizer.json").read_bytes()
    assert settings(tuned)["init_from"] == str(source)
    # Without an update, it translates as the one that it begins with.
    assert (tuned / "test.hyp").read_bytes() == (run / "test.hyp").read_bytes()
    shutil.rmtree(tuned)


def test_init_from_refuses_what_does_not_fit(
    here: Train, place: Place, run: Path, tmp_path: Path
) -> None:
    source = run / "checkpoints" / "best.ckpt"
    foreign = json.loads((run / "tokenizer.json").read_text(encoding="utf-8"))
    (tmp_path / "tokenizer.json").write_text(json.dumps(foreign), encoding="utf-8")
    for argument, message in (
        ("model.d_model=16", f"`model.d_model` is 16, but the model of init_from={source} has 32:"),
        ("model.norm=post", f"`model.norm` is post, but the model of init_from={source} has pre:"),
        ("tokenizer.vocab_size=500", "`tokenizer.vocab_size=500`: init_from brings its own"),
    ):
        line = refused(here(*place.new, f"init_from={source}", argument, run_id="refused"))
        assert line.startswith(message)
    assert refused(here(*place.new, "init_from=none.ckpt", run_id="refused")).startswith(
        "init_from: none.ckpt does not exist"
    )
    assert not (place.runs / "tiny" / "refused").exists()


def check_stopped(run: Path, number: signal.Signals, error: str) -> None:
    """That the run ended after update 5, and says how to go on."""
    assert checkpoint(run)["global_step"] == 5
    text = (run / "log.txt").read_text(encoding="utf-8")
    line = f"{number.name}: stopped after update 5; to go on: make train resume={run}\n"
    assert line in text and line in error
    assert "Traceback" not in text + error
    assert not (run / "results.json").exists()


def test_a_signal_ends_the_run_after_its_state_is_kept(
    here: Train, place: Place, run: Path
) -> None:
    path = place.runs / "tiny" / "ended"
    arguments = [*place.new, "data.num_workers=2"]
    process = place.start(KILLED, "paused", "5", *arguments, run_id="ended")
    place.wait(process)
    # To all its processes, as a terminal and a cluster do it: the loaders' workers get it too.
    os.killpg(process.pid, signal.SIGTERM)
    error = process.communicate(timeout=120)[1].decode()
    assert process.returncode == 128 + signal.SIGTERM, error
    check_stopped(path, signal.SIGTERM, error)
    assert here(f"resume={path}")[0] == 0
    same_weights(path, run)
    assert rows(path) == rows(run)
    shutil.rmtree(path)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGUSR1])
def test_other_signals_end_the_run_too(
    here: Train, begun: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    real = TranslationModule.training_step

    def step(self: TranslationModule, *arguments: Any) -> Any:
        signal.raise_signal(number)
        return real(self, *arguments)

    monkeypatch.setattr(TranslationModule, "training_step", step)
    handlers = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGUSR1)
    status, _, error = here(f"resume={begun}")
    assert status == 128 + number
    check_stopped(begun, number, error)
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGUSR1)) == handlers


def test_a_run_that_works_is_left_alone_and_a_second_interrupt_stops_it_at_once(
    here: Train, place: Place
) -> None:
    path = place.runs / "tiny" / "busy"
    process = place.start(KILLED, "stuck", "5", *place.new, run_id="busy")
    place.wait(process)
    line = refused(here(f"resume={path}"))
    assert line == f"{path} is being written by another process: wait for its end, or stop it"

    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    while b"SIGINT once more stops at once" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    error = process.communicate(timeout=60)[1].decode()
    assert process.returncode == 130 and error.splitlines()[-1] == "interrupted"
    assert checkpoint(path)["global_step"] == 4
    shutil.rmtree(path)


def test_a_full_disk(here: Train, run: Path, begun: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, real = content(begun / "checkpoints"), torch.save
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)

    def save(*arguments: Any) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limit[1]))
        try:
            real(*arguments)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limit)

    with monkeypatch.context() as patch:
        patch.setattr(torch, "save", save)
        status, _, error = here(f"resume={begun}")
    assert status == 1 and "Traceback" not in error
    assert error.splitlines()[-1] == (
        f"error: callbacks.checkpoint.dirpath: cannot write {begun / 'checkpoints' / 'last.ckpt'}:"
        " File too large"
    )
    assert content(begun / "checkpoints") == before
    assert here(f"resume={begun}")[0] == 0
    same_weights(begun, run)
    assert rows(begun) == rows(run)


def test_a_loss_that_is_no_number_names_the_pairs(here: Train, place: Place) -> None:
    lost = ["optimizer.lr=1e30", "scheduler=constant", "scheduler.warmup=0"]
    status, _, error = here(*place.new, *lost, run_id="lost")
    path = place.runs / "tiny" / "lost"
    assert status == 1
    line = error.splitlines()[-1]
    assert line.startswith("error: the training loss of update ") and " for pairs " in line
    assert "Traceback" not in error
    shutil.rmtree(path)


@pytest.mark.parametrize("number", ["nan", "inf"])
def test_such_a_loss_leaves_the_last_checkpoint_as_it_is(
    here: Train, run: Path, begun: Path, monkeypatch: pytest.MonkeyPatch, number: str
) -> None:
    calls, before = 0, content(begun / "checkpoints")

    def loss(*arguments: Any) -> TokenLoss:
        nonlocal calls
        calls += 1
        found = token_loss(*arguments)
        return replace(found, smoothed=found.smoothed * float(number if calls == 2 else 1))

    with monkeypatch.context() as patch:
        patch.setattr(module, "token_loss", loss)
        status, _, error = here(f"resume={begun}")
    assert status == 1
    line = error.splitlines()[-1]
    assert line.startswith(f"error: the training loss of update 6 is {number} for pairs ")
    assert content(begun / "checkpoints") == before and checkpoint(begun)["global_step"] == 4
    assert here(f"resume={begun}")[0] == 0
    same_weights(begun, run)
