"""The commands as real processes: train, evaluate, translate, on a tiny corpus."""

import csv
import json
import os
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.apart import environment_apart
from tests.commands import COMMANDS

from zhen.config import run_command

pytestmark = pytest.mark.slow

Done = subprocess.CompletedProcess[bytes]


class Place:
    """A directory of its own for some commands, an empty HOME, and nobody to answer a prompt."""

    def __init__(self, folder: Path, tsv: dict[str, Path]) -> None:
        self.folder, self.runs = folder, folder / "runs"
        self.paths = [f"paths.runs={self.runs}", f"paths.cache={folder / 'cache'}"]
        self.data = ["debug=fast", "data=files", *(f"data.{n}={p}" for n, p in tsv.items())]
        # What the tests lean on, however the defaults may change.
        self.data += [
            "optimizer.lr=0.0001",
            "scheduler=inverse_sqrt",
            "scheduler.warmup=10",
        ]
        self.environment = environment_apart(folder)

    def start(self, command: str, *arguments: str, **variables: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", f"zhen.{command}", *arguments],
            cwd=self.folder,
            env={**self.environment, **variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # A suite that runs in the background ignores SIGINT, and so would its children.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def run(self, command: str, *arguments: str, text: bytes = b"", **variables: str) -> Done:
        process = self.start(command, *arguments, *self.paths, **variables)
        out, err = process.communicate(text, timeout=120)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def train(self, *arguments: str, **variables: str) -> Done:
        return self.run("train", *self.data, "name=tiny", *arguments, **variables)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, tsv: dict[str, Path]) -> Place:
    return Place(tmp_path_factory.mktemp("place"), tsv)


@pytest.fixture(scope="module")
def first(place: Place) -> Done:
    """The training that the other tests use: runs/tiny/first."""
    done = place.train("seed=0", ZHEN_RUN_ID="first")
    assert done.returncode == 0, done.stderr.decode()
    return done


@pytest.fixture(scope="module")
def run_dir(place: Place, first: Done) -> Path:
    return place.runs / "tiny" / "first"


@pytest.fixture(scope="module")
def best(run_dir: Path) -> str:
    return f"ckpt={run_dir / 'checkpoints' / 'best.ckpt'}"


def weights(run_dir: Path) -> dict[str, torch.Tensor]:
    content = torch.load(run_dir / "checkpoints" / "last.ckpt", weights_only=True)
    return content["state_dict"]


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    assert one.keys() == other.keys()
    return all(torch.equal(one[name], other[name]) for name in one)


def results(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "results.json").read_text(encoding="utf-8"))


def refused(done: Done) -> str:
    """The one line of a command that refuses its input."""
    lines = done.stderr.decode().splitlines()
    assert done.returncode == 1, lines
    assert len(lines) == 1, lines
    assert lines[0].startswith("error: ")
    assert done.stdout == b""
    return lines[0].removeprefix("error: ")


def test_run_directory_holds_what_the_design_says(place: Place, run_dir: Path) -> None:
    files = {str(p.relative_to(run_dir)) for p in run_dir.rglob("*") if p.is_file()}
    # A checkout in which somebody works leaves one file more.
    assert files - {"uncommitted.patch"} == {
        "config.yaml",
        "overrides.yaml",
        "provenance.json",
        "metrics.csv",
        "clock.csv",
        "log.txt",
        "checkpoints/best.ckpt",
        "checkpoints/last.ckpt",
        "tokenizer.json",
        "test.src",
        "test.hyp",
        "test.ref",
        "results.json",
    }
    # And nothing elsewhere: neither in the current directory nor beside the run.
    assert {p.name for p in place.folder.iterdir()} <= {"home", "runs", "cache"}
    assert list(place.runs.iterdir()) == [run_dir.parent]


def test_results(run_dir: Path, tsv: dict[str, Path]) -> None:
    found = results(run_dir)
    assert set(found) == {
        "test",
        "checkpoint",
        "weights",
        "parameters",
        "updates",
        "target_tokens_per_second",
        "seconds_training",
        "seconds",
        "peak_memory_gib",
        "peak_gpu_memory_gib",
    }
    assert (found["checkpoint"], found["updates"]) == ("best.ckpt", 20)
    assert 0 < found["seconds_training"] <= found["seconds"]
    assert found["target_tokens_per_second"] > 0 and found["peak_memory_gib"] > 0.1
    assert (found["peak_gpu_memory_gib"] is None) is (not torch.cuda.is_available())
    assert found["parameters"] == sum(
        tensor.numel() for tensor in set(weights(run_dir).values())
    ) - (
        weights(run_dir)["model.output.weight"].numel()  # tied to the embedding
    )
    test = found["test"]["test"]
    assert test["sentences"] == 10
    assert "tok:13a" in test["bleu_signature"] and "nc:6" in test["chrf_signature"]
    pairs = [line.split("\t") for line in tsv["test"].read_text(encoding="utf-8").splitlines()]
    for ending, column in (("src", 0), ("ref", 1)):
        lines = (run_dir / f"test.{ending}").read_text(encoding="utf-8").splitlines()
        assert lines == [pair[column] for pair in pairs]


def test_scores_are_those_of_the_sacrebleu_command(run_dir: Path) -> None:
    line = [sys.executable, "-m", "sacrebleu", "test.ref", "-i", "test.hyp", "-l", "zh-en"]
    line += ["-m", "bleu", "chrf", "-w", "9"]
    printed = subprocess.run(line, cwd=run_dir, capture_output=True, check=True).stdout
    test = results(run_dir)["test"]["test"]
    for name, score in zip(("bleu", "chrf"), json.loads(printed), strict=True):
        assert test[name] == pytest.approx(score["score"], abs=1e-8)
        assert test[f"{name}_signature"] == score["signature"]


def test_log_metrics_and_provenance(run_dir: Path, first: Done, tsv: dict[str, Path]) -> None:
    log = (run_dir / "log.txt").read_text(encoding="utf-8")
    for line in (
        f"data.train: 100 pairs from {tsv['train']}",
        f"zh to en: {results(run_dir)['parameters']:,} parameters, ",
        "validation at update 20: BLEU ",
    ):
        assert line in log
        assert line in first.stderr.decode()
    with (run_dir / "metrics.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    rates = [float(row["train/lr"]) for row in rows if row["train/lr"]]
    wanted = [0.0001 * min(update / 10, (10 / update) ** 0.5) for update in range(1, 21)]
    assert rates == pytest.approx(wanted, rel=1e-5)
    (validation,) = [row for row in rows if row["val/bleu"]]
    assert float(validation["val/perplexity"]) > 1
    about = json.loads((run_dir / "provenance.json").read_text(encoding="utf-8"))
    assert (about["seed"], about["run"]) == (0, "first")
    assert {name: about["choices"][name] for name in ("model", "data", "debug", "decode")} == {
        "model": "tiny",
        "data": "files",
        "debug": "fast",
        "decode": "greedy",
    }
    assert set(about["corpus"]) == {"train", "val", "test"}


def test_closing_summary(run_dir: Path, first: Done) -> None:
    printed = first.stdout.decode()
    assert printed.count("    -> ") == printed.count("     = ") == 10
    test = results(run_dir)["test"]["test"]
    assert f"{test['bleu']:.1f}" in printed and f"{test['perplexity']:.2f}" in printed
    assert f"Run directory: {run_dir}" in printed
    assert printed.partition("Next:\n")[2].count("  make ") == 3


def test_same_seed_same_weights_and_another_seed_others(place: Place, run_dir: Path) -> None:
    # The loggers of the first and the second run differ: they must not touch the training.
    second = place.train("seed=0", "logger=default", ZHEN_RUN_ID="second")
    assert second.returncode == 0, second.stderr.decode()
    assert place.train("seed=1", ZHEN_RUN_ID="third").returncode == 0
    parent = run_dir.parent
    assert same(weights(run_dir), weights(parent / "second"))
    assert not same(weights(run_dir), weights(parent / "third"))
    assert results(run_dir)["test"] == results(parent / "second")["test"]
    assert (parent / "second" / "metrics.csv").read_bytes() == (
        run_dir / "metrics.csv"
    ).read_bytes()
    assert len(list((parent / "second" / "wandb").glob("offline-run-*/run-*.wandb"))) == 1


BAD = [
    ("model.num_heads=3", "`model`: `num_heads` must divide `d_model` (32), but is 3; try one of "),
    ("optimizer.lr=abc", "`optimizer.lr` must be a number above 0, but is 'abc'"),
    (
        "trainer.max_epochs=-5",
        "`trainer.max_epochs` must be an int, at least 0, or -1 for no limit",
    ),
    ("trainer.accelerator=tpu", "`trainer.accelerator` must be one of 'auto', 'cpu', 'gpu', "),
    ("trainer.precision=bf16", "`trainer.precision` must be one of '32-true', 'bf16-mixed', "),
    ("callbacks.progress.refresh_seconds=nan", "`callbacks.progress`: `refresh_seconds` must be "),
    ("decode.num_beams=0", "`decode`: `num_beams` must be from 1 to 10000, but is 0"),
    ("decode.top_p=1.5", "`decode`: `top_p` must be above 0 and at most 1, but is 1.5"),
    ("decode.top_k=5", "`decode`: `top_k` must be 0 without `do_sample=true`, but is 5"),
    ("decode.length_penalty=1e4", "`decode`: `length_penalty` must be from -10 to 10, but is 1"),
    (
        "data.train=''",
        "`data.train` must be a path, a pattern, a list of these, or a mapping {zh: path",
    ),
    ("data.cache_dir=/proc/x", "paths.cache: cannot make /proc/x: "),
    ("callbacks.checkpoint.dirpath=/proc/x", "callbacks.checkpoint.dirpath: cannot make /proc/x: "),
    (
        "data.batch.tokens=9",
        "`data`: `batch.tokens` must be at least 258, two sides of `max_length`",
    ),
    ("data.test=empty.tsv", "data.test: empty.tsv has no pairs"),
    (
        "data.train=half.tsv",
        "data.train: half.tsv:1: the en side is empty: '茶\\t'; write the sentence or delete the",
    ),
    ("data.train=faulty.tsv", "data.train: faulty.tsv:2: expected 2 sentences separated by a tab"),
    ("data.test={val: empty.tsv}", "`data`: a part of `test` must be named with letters, digits,"),
    ("tokenizer.vocab_size=9", "`tokenizer`: `vocab_size` must be at least 260, but is 9"),
    ("tokenizer.vocab_size={zh: 9}", "`tokenizer`: `vocab_size` must have source and target, but"),
    ("tokenizer.kind=wordpiece", "`tokenizer.kind` must be one of 'bpe', 'unigram', 'char', but"),
    ("tokenizer.path=empty.tsv", "tokenizer.path: empty.tsv: not a tokenizer.json ("),
    ("tokenizer.path={source: a, target: b}", "tokenizer.path.source: cannot read a: No such file"),
    ("scheduler.warmup=-1", "`scheduler`: `warmup` must be a number of updates, at least 0, or"),
    ("callbacks.samples.count=-1", "`callbacks.samples`: `count` must be at least 0, but is -1"),
]


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Any:
    """Runs a command in this process, which spares it the imports."""

    def run(place: Place, command: str, *arguments: str) -> Done:
        for name in os.environ.keys() - place.environment.keys():
            monkeypatch.delenv(name)
        monkeypatch.chdir(place.folder)
        monkeypatch.setattr(sys, "argv", [f"zhen.{command}", *arguments, *place.paths])
        capfd.readouterr()
        with pytest.raises(SystemExit) as stop:
            run_command(getattr(import_module(f"zhen.{command}"), command), config_name=command)
        printed = capfd.readouterr()
        assert isinstance(stop.value.code, int)
        return Done(arguments, stop.value.code, printed.out.encode(), printed.err.encode())

    return run


@pytest.mark.parametrize(("argument", "message"), BAD, ids=[argument for argument, _ in BAD])
def test_train_refuses_in_one_line_and_leaves_no_run(
    tmp_path: Path, tsv: dict[str, Path], here: Any, argument: str, message: str
) -> None:
    place = Place(tmp_path, tsv)
    (tmp_path / "empty.tsv").touch()
    (tmp_path / "half.tsv").write_text("茶\t\n", encoding="utf-8")
    (tmp_path / "faulty.tsv").write_text("茶\ttea\nno tab\n", encoding="utf-8")
    line = refused(here(place, "train", *place.data, "name=tiny", argument))
    assert line.startswith(message)
    assert list(tmp_path.glob("runs/*")) == []


def test_train_refuses_a_missing_file(tmp_path: Path, tsv: dict[str, Path]) -> None:
    place = Place(tmp_path, tsv)
    wanted = "data.val: none.tsv does not exist; give the path of a TSV of pairs"
    assert refused(place.train("data.val=none.tsv")) == wanted
    assert list(tmp_path.glob("runs/*")) == []


def test_train_refuses_runs_that_are_a_file(
    tmp_path: Path, tsv: dict[str, Path], here: Any
) -> None:
    place = Place(tmp_path, tsv)
    place.runs.write_text("mine")
    line = refused(here(place, "train", *place.data, "name=tiny"))
    assert line.startswith(f"cannot make the run directory {place.runs}/tiny/")
    assert place.runs.read_text() == "mine"


@pytest.mark.parametrize("key", ["", "too-short"])
def test_wandb_online_without_a_good_key_asks_nothing(
    tmp_path: Path, tsv: dict[str, Path], key: str
) -> None:
    place = Place(tmp_path, tsv)
    key_variable = {"WANDB_API_KEY": key} if key else {}
    done = place.train("logger=default", "logger.wandb.mode=online", **key_variable)
    line = refused(done)
    if key:
        assert line.startswith("logger.wandb.mode=online: WANDB_API_KEY invalid: ")
    else:
        assert line == (
            "logger.wandb.mode=online needs a key: set WANDB_API_KEY or run `wandb login`, or take"
            " logger.wandb.mode=offline"
        )
    assert list(tmp_path.glob("runs/*")) == []


def test_train_names_a_pair_too_long_for_the_model(
    tmp_path: Path, tsv: dict[str, Path], here: Any
) -> None:
    place = Place(tmp_path, tsv)
    arguments = [*place.data, "name=tiny", "model.max_positions=4"]
    done = here(place, "train", *arguments)
    assert done.returncode == 1
    assert done.stderr.decode().splitlines()[-1] == (
        f"error: data.train: {tsv['train']}:1: a sentence has 5 pieces, but the model only 4"
        " positions: shorten it or raise model.max_positions"
    )


def test_evaluate_gives_the_scores_of_the_training(
    place: Place, run_dir: Path, best: str, tmp_path: Path
) -> None:
    done = place.run("evaluate", best, "decode=greedy", f"output={tmp_path}", "batch.tokens=20")
    assert done.returncode == 0, done.stderr.decode()
    assert b"warning: the pairs" not in done.stderr
    ours, theirs = results(tmp_path)["test"]["test"], results(run_dir)["test"]["test"]
    for name in ("bleu", "chrf", "bleu_signature", "chrf_signature", "sentences"):
        assert ours[name] == theirs[name]
    assert ours["nll"] == pytest.approx(theirs["nll"], rel=1e-5)
    for ending in ("src", "hyp", "ref"):
        name = f"test.{ending}"
        assert (tmp_path / name).read_bytes() == (run_dir / name).read_bytes()
    assert f"{theirs['bleu']:.1f}" in done.stdout.decode()


def test_evaluate_takes_a_test_set_from_train_as_the_training_did(
    tmp_path: Path, tsv: dict[str, Path]
) -> None:
    place = Place(tmp_path, tsv)
    held_out = ["data.val=null", "data.val_size=10", "data.test=null", "data.test_size=0.1"]
    done = place.train(*held_out, ZHEN_RUN_ID="one")
    assert done.returncode == 0, done.stderr.decode()
    assert f"data.test: 10 pairs from {tsv['train']} (test)" in done.stderr.decode()
    run = place.runs / "tiny" / "one"
    best, output = f"ckpt={run / 'checkpoints' / 'best.ckpt'}", tmp_path / "again"
    shutil.rmtree(tmp_path / "cache")
    about = json.loads((run / "provenance.json").read_text(encoding="utf-8"))
    about["corpus"]["test"] = "0" * 64  # as if the file had been another one
    (run / "provenance.json").write_text(json.dumps(about))
    done = place.run("evaluate", best, "decode=greedy", f"output={output}")
    assert done.returncode == 0, done.stderr.decode()
    assert b"warning: the pairs of test are not those of the run\n" in done.stderr
    for ending in ("src", "hyp", "ref"):
        assert (output / f"test.{ending}").read_bytes() == (run / f"test.{ending}").read_bytes()
    assert (output / "test.src").read_text(encoding="utf-8").count("\n") == 10


def test_evaluate_calls_no_stranger(place: Place, run_dir: Path, tmp_path: Path, here: Any) -> None:
    copy = tmp_path / "run"
    shutil.copytree(run_dir, copy)
    config = copy / "config.yaml"
    content = config.read_text(encoding="utf-8").replace("zhen.data.Files", "os.system")
    config.write_text(content, encoding="utf-8")
    line = refused(here(place, "evaluate", f"ckpt={copy / 'checkpoints' / 'best.ckpt'}"))
    assert line == (
        f"{config}: `data.reader._target_` is 'os.system', which is not part of zhen: give the test"
        " data, test=PATH, and its reader"
    )


@pytest.mark.parametrize("command", ["evaluate", "translate"])
def test_truncated_checkpoint(
    place: Place, run_dir: Path, tmp_path: Path, here: Any, command: str
) -> None:
    whole = (run_dir / "checkpoints" / "best.ckpt").read_bytes()
    half = tmp_path / "half.ckpt"
    half.write_bytes(whole[: len(whole) // 2])
    line = refused(here(place, command, f"ckpt={half}"))
    assert line.startswith(f"ckpt: {half} is truncated or no checkpoint; ")


def test_translate_gives_a_line_for_a_line(place: Place, best: str, tmp_path: Path) -> None:
    text = "我喜欢茶。\n\n \n你看见黑猫。\r\n龘😀 x".encode()  # the last line has no end
    piped = place.run("translate", best, "decode=greedy", text=text)
    assert (piped.returncode, piped.stderr) == (0, b"")
    lines = piped.stdout.decode().split("\n")
    assert len(lines) == 6 and lines[-1] == ""
    assert lines[1] == lines[2] == "" and any(lines)

    # A file gives the same, and so does the newest model when none is named.
    os.utime(best.removeprefix("ckpt="))
    (tmp_path / "in.txt").write_bytes(text)
    output = tmp_path / "out.txt"
    files = [f"input={tmp_path / 'in.txt'}", f"output={output}"]
    filed = place.run("translate", "decode=greedy", *files)
    assert (filed.returncode, filed.stdout, filed.stderr) == (0, b"", b"")
    assert output.read_bytes() == piped.stdout


def test_translate_gives_several_translations(place: Place, best: str, here: Any) -> None:
    text = "我喜欢茶。\n\n你看见黑猫。\n".encode()
    options = ["decode.num_beams=4", "decode.max_new_tokens=6"]
    one = place.run("translate", best, *options, text=text).stdout.decode().splitlines()
    done = place.run("translate", best, *options, "decode.num_return_sequences=3", text=text)
    assert (done.returncode, done.stderr) == (0, b"")
    rows = [line.split("\t", 2) for line in done.stdout.decode().splitlines()]
    assert [number for number, _, _ in rows] == ["1", "1", "1", "2", "3", "3", "3"]
    assert rows[3][2] == ""
    for at, number in ((0, 0), (3, 1), (4, 2)):
        assert rows[at][2] == one[number]
    assert [float(score) for _, score, _ in rows[:3]] == sorted(
        (float(score) for _, score, _ in rows[:3]), reverse=True
    )


def test_translate_samples_from_a_seed(place: Place, best: str) -> None:
    text = "我喜欢茶。\n你看见黑猫。\n".encode()

    def sample(seed: int) -> bytes:
        done = place.run("translate", best, "decode=sample", f"decode.seed={seed}", text=text)
        assert (done.returncode, done.stderr) == (0, b"")
        return done.stdout

    assert sample(1) == sample(1) != sample(2)


def test_translate_refuses_what_is_not_utf8(
    place: Place, best: str, tmp_path: Path, here: Any
) -> None:
    bad = tmp_path / "bad.txt"
    bad.write_bytes("茶\n".encode() + b"tea \xff\n")
    done = here(place, "translate", best, f"input={bad}", f"output={tmp_path / 'out.txt'}")
    assert refused(done) == (f"input: {bad}:2: byte 0xFF is not UTF-8; convert the text to UTF-8")
    assert not (tmp_path / "out.txt").exists()


def test_translate_refuses_a_place_that_is_not_there_before_it_works(
    place: Place, tmp_path: Path, here: Any
) -> None:
    line = refused(here(place, "translate", "ckpt=none", f"output={tmp_path / 'no' / 'out.txt'}"))
    assert line.startswith(f"output: cannot write {tmp_path / 'no' / 'out.txt'}: No such file or")
    line = refused(here(place, "translate", "ckpt=none", f"output={tmp_path}"))
    assert line == f"output: {tmp_path} is a directory; give a file"


def test_translate_is_quiet_when_the_reader_leaves(place: Place, best: str, tmp_path: Path) -> None:
    many = tmp_path / "many.txt"
    many.write_text("我喜欢茶。\n" * 5000, encoding="utf-8")
    arguments = [best, "decode=greedy", "decode.max_new_tokens=4", f"input={many}", *place.paths]
    process = place.start("translate", *arguments)
    assert process.stdout is not None and process.stderr is not None
    assert process.stdout.readline().endswith(b"\n")
    process.stdout.close()  # as `head -1` does
    assert process.stderr.read() == b""
    assert process.wait(60) == 141  # what a program that SIGPIPE ends leaves


def test_a_run_is_never_written_over(place: Place, run_dir: Path) -> None:
    before = (run_dir / "config.yaml").read_bytes()
    done = place.train("seed=5", "logger={}", ZHEN_RUN_ID="first")
    assert refused(done).startswith(f"{run_dir} holds a run already")
    assert (run_dir / "config.yaml").read_bytes() == before


def test_sigterm_and_sigint_end_a_training_in_one_line(tmp_path: Path, tsv: Any) -> None:
    place = Place(tmp_path, tsv)
    for number, status in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
        word = number.name
        arguments = [*place.data, "name=tiny", "trainer.max_steps=-1", "trainer.max_epochs=-1"]
        process = place.start(
            "train", *arguments, "trainer.val_check_interval=2", *place.paths, ZHEN_RUN_ID=word
        )
        log = place.runs / "tiny" / word / "log.txt"
        while not (log.exists() and "validation at update 4" in log.read_text(encoding="utf-8")):
            assert process.poll() is None
            time.sleep(0.1)
        process.send_signal(number)
        error = process.communicate(timeout=60)[1].decode()
        assert process.returncode == status
        assert error.splitlines()[-1].startswith(f"{number.name}: stopped after update ")
        assert "Traceback" not in error + log.read_text(encoding="utf-8")


def test_a_run_without_an_update_or_a_validation_still_ends_well(tmp_path: Path, tsv: Any) -> None:
    place = Place(tmp_path, tsv)
    done = place.train("trainer.max_steps=0", ZHEN_RUN_ID="none")
    assert done.returncode == 0, done.stderr.decode()
    done = place.train("trainer.limit_val_batches=0", ZHEN_RUN_ID="unseen")
    assert done.returncode == 0, done.stderr.decode()
    assert not (place.runs / "tiny" / "unseen" / "checkpoints" / "best.ckpt").exists()
    assert place.run("translate", text="茶\n".encode()).stdout.count(b"\n") == 1


def test_double_precision(tmp_path: Path, tsv: Any) -> None:
    """It runs, and the log says so."""
    place = Place(tmp_path, tsv)
    done = place.train("trainer.precision=64-true", ZHEN_RUN_ID="double")
    assert done.returncode == 0, done.stderr.decode()
    run_dir = place.runs / "tiny" / "double"
    assert {each.dtype for each in weights(run_dir).values()} == {torch.float64}
    assert f", 1 rank x cpu, 64-true, run directory {run_dir}\n" in (run_dir / "log.txt").read_text(
        encoding="utf-8"
    )


def test_a_training_that_diverges_says_so(tmp_path: Path, tsv: Any) -> None:
    place = Place(tmp_path, tsv)
    done = place.train("optimizer.lr=1e30", "scheduler=constant", "scheduler.warmup=0")
    assert done.returncode == 1
    line = done.stderr.decode().splitlines()[-1]
    assert line.startswith("error: the training loss of update 2 is nan for pairs ")
    assert "lower `optimizer.lr`" in line


@pytest.mark.parametrize("content", ["", "a: [", "- 1\n", "data: 3\n"])
def test_evaluate_beside_a_foreign_config(
    place: Place, best: str, tmp_path: Path, here: Any, content: str
) -> None:
    (tmp_path / "checkpoints").mkdir()
    copy = tmp_path / "checkpoints" / "best.ckpt"
    shutil.copy(best.removeprefix("ckpt="), copy)
    (tmp_path / "config.yaml").write_text(content)
    line = refused(here(place, "evaluate", f"ckpt={copy}"))
    assert line.startswith(f"{copy} is in no run directory: give the test data")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "> /dev/full"])
def test_streams_that_are_closed_or_full(place: Place, best: str, closed: str) -> None:
    command = shlex.join([sys.executable, "-m", "zhen.translate", best, *place.paths])
    done = subprocess.run(
        ["bash", "-c", f"echo 茶 | {command} {closed}"],
        cwd=place.folder, env=place.environment, capture_output=True,
    )  # fmt: skip
    error = done.stderr.decode()
    assert "Traceback" not in error and "Exception ignored" not in error
    assert done.returncode == (1 if "full" in closed else 0), error
    if "full" in closed:
        assert error == "error: [Errno 28] No space left on device\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_help_takes_no_time(place: Place, command: str) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = place.run(command, "--help")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0 and done.stdout
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 2.0
