"""The commands as real processes: train, evaluate, translate, on a tiny corpus."""

import csv
import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

pytestmark = pytest.mark.slow

Done = subprocess.CompletedProcess[bytes]


class Place:
    """A directory of its own for some commands, an empty HOME, and nobody to answer a prompt."""

    def __init__(self, folder: Path, tsv: dict[str, Path]) -> None:
        self.folder, self.runs = folder, folder / "runs"
        (folder / "home").mkdir()
        self.paths = [f"paths.runs={self.runs}", f"paths.cache={folder / 'cache'}"]
        self.data = ["debug=fast", "data=files", *(f"data.{n}={p}" for n, p in tsv.items())]
        outside = ("WANDB_", "ZHEN_", "SLURM_", "HYDRA_")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(outside)}
        self.environment = {**kept, "HOME": str(folder / "home"), "OMP_NUM_THREADS": "1"}

    def start(self, command: str, *arguments: str, **variables: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", f"zhen.{command}", *arguments],
            cwd=self.folder,
            env={**self.environment, **variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
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
    assert files == {
        "config.yaml",
        "overrides.yaml",
        "provenance.json",
        "metrics.csv",
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
        "parameters",
        "updates",
        "target_tokens_per_second",
        "seconds_training",
        "seconds",
        "peak_memory_gib",
    }
    assert (found["checkpoint"], found["updates"]) == ("best.ckpt", 20)
    assert 0 < found["seconds_training"] <= found["seconds"]
    assert found["target_tokens_per_second"] > 0 and found["peak_memory_gib"] > 0.1
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
    assert rates == pytest.approx([2e-3 * update / 400 for update in range(1, 21)], rel=1e-5)
    (validation,) = [row for row in rows if row["val/bleu"]]
    assert float(validation["val/perplexity"]) > 1
    about = json.loads((run_dir / "provenance.json").read_text(encoding="utf-8"))
    assert (about["seed"], about["run"]) == (0, "first")
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
    (
        ["model.num_heads=3"],
        "`model`: `num_heads` must divide `d_model` (32), but is 3; try one of [1, 2, 4, 8, 16, 32]",
    ),
    (["optimizer.lr=abc"], "`optimizer.lr` must be a float, but is 'abc'"),
    (["optimizer.lr=-1"], "`optimizer`: Invalid learning rate: -1"),
    (["trainer.max_epochs=-5"], "`trainer`: `max_epochs` must be a non-negative integer or -1. "),
    (["data.val=none.tsv"], "data.val: none.tsv does not exist; give the path of a TSV of pairs"),
    (["data.test=empty.tsv"], "data.test: empty.tsv has no pairs; write one pair a line, separate"),
    (["data.batch.tokens=9"], "`data`: `batch.tokens` must be above `max_length` (128), but is 9"),
    (["paths.runs=empty.tsv/x"], "cannot make the run directory {folder}/empty.tsv/x/tiny/"),
    (
        ["logger=default", "logger.wandb.mode=online"],
        "logger.wandb.mode=online needs a key: set WANDB_API_KEY or run `wandb login`, or take"
        " logger.wandb.mode=offline",
    ),
]


@pytest.mark.parametrize(("arguments", "message"), BAD, ids=lambda value: str(value[0]))
def test_train_refuses_in_one_line_and_leaves_no_run(
    tmp_path: Path, tsv: dict[str, Path], arguments: list[str], message: str
) -> None:
    place = Place(tmp_path, tsv)
    (tmp_path / "empty.tsv").touch()
    if arguments[0].startswith("paths.runs="):  # it is given already, and a relative one is ROOT's
        place.paths[0] = f"paths.runs={tmp_path / arguments[0].partition('=')[2]}"
        arguments = []
    line = refused(place.train(*arguments))
    assert line.startswith(message.format(folder=tmp_path))
    assert not place.runs.exists()


def test_evaluate_gives_the_scores_of_the_training(
    place: Place, run_dir: Path, best: str, tmp_path: Path
) -> None:
    done = place.run("evaluate", best, "decode=greedy", f"output={tmp_path}", "batch.tokens=20")
    assert done.returncode == 0, done.stderr.decode()
    ours, theirs = results(tmp_path)["test"]["test"], results(run_dir)["test"]["test"]
    for name in ("bleu", "chrf", "bleu_signature", "chrf_signature", "sentences"):
        assert ours[name] == theirs[name]
    assert ours["nll"] == pytest.approx(theirs["nll"], rel=1e-5)
    for ending in ("src", "hyp", "ref"):
        name = f"test.{ending}"
        assert (tmp_path / name).read_bytes() == (run_dir / name).read_bytes()
    assert f"{theirs['bleu']:.1f}" in done.stdout.decode()


@pytest.mark.parametrize("command", ["evaluate", "translate"])
def test_truncated_checkpoint(place: Place, run_dir: Path, tmp_path: Path, command: str) -> None:
    whole = (run_dir / "checkpoints" / "best.ckpt").read_bytes()
    half = tmp_path / "half.ckpt"
    half.write_bytes(whole[: len(whole) // 2])
    line = refused(place.run(command, f"ckpt={half}"))
    assert line.startswith(f"ckpt: {half} is truncated or no checkpoint; ")


def test_translate_gives_a_line_for_a_line(place: Place, best: str, tmp_path: Path) -> None:
    text = "我喜欢茶。\n\n \n你看见黑猫。\r\n龘😀 x".encode()  # the last line has no end
    piped = place.run("translate", best, "decode=greedy", text=text)
    assert (piped.returncode, piped.stderr) == (0, b"")
    lines = piped.stdout.decode().split("\n")
    assert len(lines) == 6 and lines[-1] == ""
    assert [bool(line) for line in lines[:5]] == [True, False, False, True, True]

    # A file gives the same, and so does the newest run when no checkpoint is named.
    (tmp_path / "in.txt").write_bytes(text)
    output = tmp_path / "out.txt"
    filed = place.run(
        "translate", "decode=greedy", f"input={tmp_path / 'in.txt'}", f"output={output}"
    )
    assert (filed.returncode, filed.stdout, filed.stderr) == (0, b"", b"")
    assert output.read_bytes().count(b"\n") == 5
    newest = max(place.runs.glob("tiny/*/checkpoints/best.ckpt"), key=os.path.getmtime)
    if f"ckpt={newest}" == best:
        assert output.read_bytes() == piped.stdout


def test_translate_refuses_what_is_not_utf8(place: Place, best: str, tmp_path: Path) -> None:
    bad = tmp_path / "bad.txt"
    bad.write_bytes("茶\n".encode() + b"tea \xff\n")
    done = place.run("translate", best, f"input={bad}", f"output={tmp_path / 'out.txt'}")
    assert refused(done) == (f"input: {bad}:2: byte 0xFF is not UTF-8; convert the text to UTF-8")
    assert not (tmp_path / "out.txt").exists()


def test_translate_is_quiet_when_the_reader_leaves(place: Place, best: str, tmp_path: Path) -> None:
    many = tmp_path / "many.txt"
    many.write_text("我喜欢茶。\n" * 5000, encoding="utf-8")
    arguments = [best, "decode=greedy", "decode.max_new_tokens=4", f"input={many}", *place.paths]
    process = place.start("translate", *arguments)
    assert process.stdout is not None and process.stderr is not None
    assert process.stdout.readline().endswith(b"\n")
    process.stdout.close()  # as `head -1` does
    assert process.stderr.read() == b""
    assert process.wait(60) == 0


@pytest.mark.parametrize("command", ["train", "evaluate", "translate"])
def test_help_takes_no_time(place: Place, command: str) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = place.run(command, "--help")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0 and done.stdout
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 2.0
