"""The race counts what it says, trains the same model everywhere, and tells who is missing."""

import json
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from scripts import bench_train
from scripts.race import joey, ours, plain
from scripts.race.job import Clock, Job
from scripts.race.operations import Shape
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from zhen.errors import UserError
from zhen.model import Transformer

SIZES = {
    "vocab_size": 60, "d_model": 16, "d_ff": 40, "num_heads": 2, "num_encoder_layers": 2,
    "num_decoder_layers": 1,
}  # fmt: skip
TINY = "--model tiny --vocab-size 400 --tokens 300 --threads 1".split()


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """Of two pairs a batch, one of each of four lengths."""
    ids = [[5, 6, 7], [8], [9, 10], [11, 12, 13, 14]]
    content = {"source": ids, "target": ids[::-1], "val_source": ids[:3]}
    (tmp_path / "pairs.json").write_text(json.dumps(content))
    return Job(
        folder=str(tmp_path), pairs=str(tmp_path / "pairs.json"), shape=SIZES, pad_id=0, bos_id=1,
        eos_id=2, tokens=64, rows=2, warmup=1, updates=3, longest=6, lr_warmup=4,
    )  # fmt: skip


@pytest.fixture
def words(tsv: dict[str, Path]) -> list[str]:
    """The command line of a small race."""
    return [*TINY, "--corpus", str(tsv["train"].parent)]


def report(job: Job) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((Path(job.folder) / "report.json").read_text())
    return found


def zhen_model() -> Transformer:
    return Transformer(**SIZES, pad_id=0, dropout=0.1)  # type: ignore[arg-type]


def test_operations_are_those_that_pytorch_counts() -> None:
    """In a batch without padding, whose attention is written out as products."""
    model, source, target = zhen_model(), torch.ones(3, 7).long(), torch.ones(3, 5).long()
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        model(source, target).sum().backward()
    assert Shape(**SIZES).operations([7] * 3, [5] * 3) == counter.get_total_flops()


def test_the_clock_counts_real_pieces_after_the_warm_up(job: Job) -> None:
    clock = Clock(job, zhen_model(), lambda source: [])
    source, labels = torch.tensor([[5, 6, 2], [5, 2, 0]]), torch.tensor([[7, 2], [2, 0]])
    done = [clock.update(source, labels) for _ in range(4)]
    assert done == [False, False, False, True]
    found, shape = report(job), Shape(**SIZES)
    assert (found["updates"], found["tokens"], found["real"]) == (3, 9, 8 / 10)
    assert found["useful"] == pytest.approx(3 * shape.operations([3, 2], [2, 1]))
    assert found["made"] == pytest.approx(3 * shape.operations([3, 3], [2, 2]))
    assert 0 < found["seconds"] < 5 and found["peak_gib"] > 0.05


def test_the_clock_stands_still_while_it_evaluates(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr("scripts.race.job.time.perf_counter", lambda: now)
    model, modes = zhen_model(), []

    def translate(source: torch.Tensor) -> list[list[int]]:
        nonlocal now
        now += 100
        modes.append(model.training)
        return [[*row, 2, 9] for row in source.tolist()]

    job = replace(job, warmup=0, updates=0, seconds=30, evaluate_every=2)
    clock = Clock(job, model, translate)
    done = False
    while not done:
        now += 10
        done = clock.update(torch.tensor([[5, 2]]), torch.tensor([[5, 2]]))
    found = report(job)
    assert found["seconds"] == 30 and found["updates"] == 3
    # At the second update, and at the end. The sources come back in the order of the file.
    assert [each["seconds"] for each in found["scored"]] == [20, 30]
    assert found["scored"][0]["found"] == [[5, 6, 7], [8], [9, 10]]
    assert modes == [False] * 2 and model.training


def test_all_train_the_same_model(job: Job) -> None:
    from scripts.race import marian  # takes seconds: it imports transformers

    def size(model: torch.nn.Module) -> int:
        return sum(p.numel() for p in model.parameters() if p.requires_grad)

    theirs, wanted = marian.make_model(job), size(zhen_model())
    assert theirs.config.activation_function == "relu" and theirs.config.dropout == 0.1
    assert size(theirs) == wanted
    # With a norm at the end of each stack.
    assert size(plain.PlainModel(job)) == wanted + 2 * 2 * SIZES["d_model"]


@pytest.mark.parametrize("name", ["plain", "marian"])
def test_a_peer_trains_and_translates(job: Job, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["marian", job.folder, "group_by_length"])
    job = replace(job, evaluate_every=4, updates=7)
    module = import_module(f"scripts.race.{name}")
    torch.manual_seed(0)
    module.run(job)
    found = report(job)
    # Four pairs with 14 target pieces, ends included, in batches of two.
    assert found["updates"] == 7 and 0 < found["real"] <= 1
    assert found["tokens"] == pytest.approx(7 * 14 / 2, abs=7)
    assert [len(each["found"]) for each in found["scored"]] == [3, 3]


def test_the_plain_model_decodes_what_its_forward_pass_says(job: Job) -> None:
    torch.manual_seed(0)
    module = plain.PlainModule(job).eval()
    source = torch.tensor([[5, 6, 2], [7, 2, 0]])
    found = torch.tensor(module.translate(source))
    target = torch.cat([torch.tensor([[1], [1]]), found], dim=1)
    assert torch.equal(module.model(source, target).argmax(-1)[:, :-1], found)


def test_pieces_have_names_for_joeynmt_and_back(job: Job) -> None:
    names = joey.Names(job)
    pieces = torch.arange(SIZES["vocab_size"])
    assert torch.equal(names.to_ours[names.to_joey[pieces]], pieces)
    specials = ["<unk>", "<pad>", "<s>", "</s>"]
    words = [*specials, *names.words]
    assert [words[names.to_joey[i]] for i in (0, 1, 2)] == specials[1:]
    assert all(words[names.to_joey[i]] == str(i) for i in range(3, 60))


@pytest.mark.slow
def test_both_of_zhen_train_on_the_same_batches(tmp_path: Path, words: list[str]) -> None:
    """The bare loop, and the command with a clock; another round has others."""
    words += ["--updates", "2", "--warmup", "0"]
    race = bench_train.Race(bench_train.parse(words), tmp_path)
    bare = []
    try:
        for seed in (0, 2):
            ours.run(replace(race.job, seed=seed))
            bare.append(report(race.job))
    finally:
        torch.use_deterministic_algorithms(False)
    whole = race.turn("zhen", seed=2)
    first, second, command = (
        [each[key] for key in ("tokens", "real", "useful", "made", "parameters")]
        for each in (*bare, whole)
    )
    assert first != second == command


def stub(speeds: dict[str, float]) -> Callable[..., dict[str, Any]]:
    """Turns that nobody takes; each round is a tenth slower than the one before, but for zhen.

    In the first minute zhen translates half of the sentences and in the second all, MarianMT half
    in the second, and the others none.
    """

    def turn(self: bench_train.Race, name: str, seed: int) -> dict[str, Any]:
        if name == "ceiling":
            return {"throughput": 1e9}
        slower = 1 if name == "zhen" else 1 + seed / 10
        own = {
            "tokens": speeds[name] * 10, "seconds": 10 * slower, "real": 0.5, "useful": 5e9,
            "made": 8e9, "peak_gib": 1.0, "updates": 7,
        }  # fmt: skip
        references = self.data.split("val").targets
        texts = self.data.tokenizer.target.encode(references)
        nothing: list[list[int]] = [[] for _ in texts]
        half = texts[: len(texts) // 2] + nothing[len(texts) // 2 :]
        found = {"zhen": [half, texts], "MarianMT": [nothing, half]}.get(name, [nothing] * 2)
        own["scored"] = [{"seconds": 60 * (i + 1), "found": each} for i, each in enumerate(found)]
        return own

    return turn


SPEEDS = {"zhen": 300.0, "bare loop": 306.0, "torch.nn.Transformer": 100.0, "MarianMT": 150.0}
ONLY = [word for name in (*SPEEDS, "joeynmt") for word in ("--only", name)]


@pytest.fixture
def no_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_train.Race, "turn", stub(SPEEDS))
    monkeypatch.setattr(bench_train, "find_spec", lambda name: True)


def test_ratios_are_of_one_round(
    no_turns: None, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    bench_train.main([*words, *ONLY, "--rounds", "3"])
    about, rounds, table, overhead = capsys.readouterr().out.split("\n\n")
    assert "1 threads" in about and "300 tokens a batch" in about and "32-true" in about
    assert rounds.startswith("3 rounds of 50 updates after 10; one large product: 1 billion")
    rows = {line.split("|")[1].strip(): line for line in table.splitlines()[2:]}
    assert rows["zhen"] == "| zhen | 300 | 1.00 | 1.00–1.00 | 0.50 | 50% | 80% | 1.0 |"
    assert rows["MarianMT"].startswith("| MarianMT | 136 | 2.20 | 2.00–2.40 |")
    assert "not installed: give --joeynmt PYTHON" in rows["joeynmt"]
    assert {line.count("|") for line in table.splitlines()} == {9}
    assert overhead.strip() == (
        "Lightning, callbacks and logs: -7.3% over the bare loop (-15.0–2.0)"
    )


def test_time_to_what_the_fastest_peer_has(
    no_turns: None, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    bench_train.main([*words, *ONLY, "--minutes", "2"])
    out = capsys.readouterr().out
    assert "The fastest peer is MarianMT; it has BLEU" in out and "after 2 minutes" in out
    rows = [line for line in out.splitlines() if line.startswith("|")][2:]
    assert [row.split("|")[1].strip() for row in rows] == [*SPEEDS][:1] + [*SPEEDS][2:]
    last = [row.split("|")[-2].strip() for row in rows]
    assert last == ["1.0", "not reached", "2.0"]


def test_peers_that_are_missing_are_named(
    monkeypatch: pytest.MonkeyPatch, words: list[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(bench_train, "find_spec", lambda name: None)
    race = bench_train.Race(bench_train.parse(words), tmp_path)
    assert race.names == ["zhen", "bare loop", "torch.nn.Transformer"]
    assert race.missing["MarianMT"] == (
        "not installed (transformers, accelerate): .venv/bin/pip install -e '.[bench]'"
    )
    assert set(race.missing) == {*bench_train.NAMES} - {*race.names}


@pytest.mark.skipif(find_spec("joeynmt") is not None, reason="it would run")
def test_a_contestant_that_fails_is_named(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    race = bench_train.Race(bench_train.parse([*words, "--joeynmt", sys.executable]), tmp_path)
    with pytest.raises(UserError, match="bench train: joeynmt ended with status 1"):
        race.turn("joeynmt", seed=0)
    assert "No module named 'joeynmt'" in capsys.readouterr().err


def test_the_others_go_on_without_one_that_fails(
    no_turns: None,
    words: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    turn = bench_train.Race.turn

    def fails(self: bench_train.Race, name: str, seed: int) -> dict[str, Any]:
        if (name, seed) == ("MarianMT", 1):
            raise UserError("its reason")
        return turn(self, name, seed)

    monkeypatch.setattr(bench_train.Race, "turn", fails)
    with pytest.raises(UserError, match="bench train: MarianMT failed, see above"):
        bench_train.main([*words, *ONLY])
    captured = capsys.readouterr()
    assert "| MarianMT | failed |" in captured.out and "its reason" in captured.err
    assert "| torch.nn.Transformer | 91 | 3.30 |" in captured.out


@pytest.mark.skipif("ZHEN_JOEYNMT" not in os.environ, reason="ZHEN_JOEYNMT=PYTHON is not set")
def test_joeynmt_trains_and_translates(words: list[str], tmp_path: Path) -> None:
    words += ["--minutes", "0.02", "--joeynmt", os.environ["ZHEN_JOEYNMT"]]
    race = bench_train.Race(bench_train.parse(words), tmp_path)
    found = race.turn("joeynmt", seed=0)
    assert found["tokens"] > 0 and len(found["scored"][0]["found"]) == 10


@pytest.mark.parametrize(
    "words", [["--rounds", "0"], ["--minutes", "0"], ["--only", "fairseq"], ["--device", "tpu"]]
)
def test_a_wrong_argument_is_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        bench_train.main(words)
    assert words[0] in capsys.readouterr().err


def test_a_wrong_setting_of_zhen_is_one_line(words: list[str], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="modle"):
        bench_train.Race(bench_train.parse([*words, "--set", "modle.norm=pre"]), tmp_path)
    asked = bench_train.parse([*words, "--compiled", "compiel=true"])
    reason = bench_train.Race(asked, tmp_path).missing["zhen compiled"]
    assert reason.startswith("not to be had: ") and "compiel" in reason
