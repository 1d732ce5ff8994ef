"""What a test leaves: results.json, sentences, and the tables on the terminal."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from zhen.runs.results import (
    numbers,
    peak_memory_gib,
    print_samples,
    print_scores,
    write_results,
)
from zhen.training.module import Evaluation
from zhen.training.scores import score

FOUND = Evaluation(
    sources=["我喜欢茶。", "a\u2028b", "花"],
    hypotheses=["I like tea.", "", "flower"],
    references=["I like tea.", "a b", "a flower"],
    loss=1.5,
    nll=1.25,
    perplexity=math.exp(1.25),
    scores=score(["I like tea.", "", "flower"], ["I like tea.", "a b", "a flower"], "en"),
)


def test_a_single_test_set(tmp_path: Path) -> None:
    write_results(tmp_path, {"test": FOUND}, {"parameters": 7})
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "results.json",
        "test.hyp",
        "test.ref",
        "test.src",
    ]
    assert (tmp_path / "test.src").read_bytes() == "我喜欢茶。\na\u2028b\n花\n".encode()
    assert (tmp_path / "test.hyp").read_bytes() == b"I like tea.\n\nflower\n"
    assert (tmp_path / "test.ref").read_bytes() == b"I like tea.\na b\na flower\n"
    assert json.loads((tmp_path / "results.json").read_text(encoding="utf-8")) == {
        "test": {
            "test": {
                "sentences": 3,
                "bleu": FOUND.scores.bleu,
                "chrf": FOUND.scores.chrf,
                "loss": 1.5,
                "nll": 1.25,
                "perplexity": math.exp(1.25),
                "bleu_signature": FOUND.scores.bleu_signature,
                "chrf_signature": FOUND.scores.chrf_signature,
            }
        },
        "parameters": 7,
    }


def test_each_part_has_its_own_files(tmp_path: Path) -> None:
    write_results(tmp_path, {"seen": FOUND, "hard": FOUND}, {})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["results.json"] + [
        f"test.{part}.{ending}" for part in ("hard", "seen") for ending in ("hyp", "ref", "src")
    ]
    assert list(json.loads((tmp_path / "results.json").read_text())["test"]) == ["seen", "hard"]


def test_json_has_no_infinity_and_no_nan() -> None:
    lost = replace(FOUND, loss=math.nan, nll=math.inf, perplexity=math.inf)
    assert {numbers(lost)[name] for name in ("loss", "nll", "perplexity")} == {None}
    json.dumps(numbers(lost), allow_nan=False)


def test_table_of_scores(capsys: pytest.CaptureFixture[str]) -> None:
    print_scores({"seen": FOUND, "handwritten": FOUND})
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["test", "part", "sentences", "BLEU", "chrF", "perplexity"]
    wanted = ["3", f"{FOUND.scores.bleu:.1f}", f"{FOUND.scores.chrf:.1f}", "3.49"]
    assert [line.split() for line in lines[1:]] == [["seen", *wanted], ["handwritten", *wanted]]


@pytest.mark.parametrize(("count", "shown"), [(1, 1), (4, 4), (5, 5), (10, 6)])
def test_samples_are_as_many_as_asked(
    capsys: pytest.CaptureFixture[str], count: int, shown: int
) -> None:
    print_samples({"a": FOUND, "b": FOUND}, count)
    printed = capsys.readouterr().out
    assert printed.count("    -> ") == printed.count("     = ") == shown


def test_peak_memory_is_of_this_process() -> None:
    assert 0.01 < peak_memory_gib() < 64
