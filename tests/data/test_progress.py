"""What is said of a step on its way."""

import io
import re
import sys
import time
from pathlib import Path

import pytest

from zhen.data import BatchOptions, CleanOptions, TokenizerOptions, TranslationData, progress
from zhen.data.progress import counted, underway


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that the test sets."""
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def run(clock: list[float], seconds: float, **options: object) -> None:
    """Five items of ten, one every `seconds`."""
    for _ in counted([range(10)] * 5, "reading", size=len, **options):  # type: ignore[arg-type]
        clock[0] += seconds


def test_items_pass_in_order_and_nothing_is_said_of_a_short_step(
    clock: list[float], caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level("INFO", "zhen"):
        assert list(counted(iter("abc"), "reading")) == ["a", "b", "c"]
        run(clock, 0.4)
    assert caplog.messages == [] and capfd.readouterr() == ("", "")


def test_a_log_gets_a_line_now_and_then(
    clock: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", "zhen"):
        run(clock, 6, total=50)
    assert caplog.messages == [
        "reading: 10 of 50",
        "reading: 30 of 50",
        "reading: 50 of 50",
        "reading: 50 in 30 s",
    ]


def test_a_terminal_gets_a_bar(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    run(clock, 3, total=50)
    assert "reading" in terminal.getvalue() and "50/50" in terminal.getvalue()


def test_an_error_ends_the_bar(clock: list[float], caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(RuntimeError), caplog.at_level("INFO", "zhen"):
        for _ in counted(range(5), "reading"):
            clock[0] += 3
            if clock[0] > 5:
                raise RuntimeError
    assert caplog.messages[0] == "reading: 1"
    assert progress.PATIENCE == 2.0


def test_a_call_that_does_not_count_is_heard_of(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", "zhen"):
        with underway("a short call"):
            pass
        assert caplog.messages == []
        monkeypatch.setattr(progress, "PATIENCE", 0.01)
        with pytest.raises(RuntimeError), underway("merging 7 words"):
            while not caplog.messages:
                time.sleep(0.001)
            raise RuntimeError
    assert caplog.messages == ["merging 7 words: 0 s so far", "merging 7 words: done in 0 s"]


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_every_step_of_a_preparation_counts(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As if the two seconds were over at once."""
    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    lines = [f"我喜欢第{i}本书\tI like book {i}\n" for i in range(300)]
    (tmp_path / "pairs.tsv").write_text("".join(lines), encoding="utf-8")
    with caplog.at_level("INFO", "zhen"):
        data = TranslationData(
            train=str(tmp_path / "pairs.tsv"), val_size=9, languages=["zh", "en"],
            source_lang="zh", batch=BatchOptions(), cache_dir=str(tmp_path / "cache"),
            clean=CleanOptions(duplicates=True), tokenizer=TokenizerOptions(kind, 300),
        )  # fmt: skip
        data.split("val")
        data.split("train")
    steps = {re.sub(r"\d[\d,]*", "N", message) for message in caplog.messages}
    learning = {
        "bpe": {"learning up to N merges: done in N s"},
        "unigram": {
            "looking for pieces in N words: done in N s",
            "choosing N of N pieces: rounds: N in N s",
        },
    }
    size = (tmp_path / "pairs.tsv").stat().st_size
    assert f"data.train: hashing: bytes: {size:,} of {size:,}" in caplog.messages
    assert steps >= {
        "data.train: hashing: bytes: N in N s",
        "data.train: reading: N in N s",
        "pairs that share a sentence: N in N s",
        "data.train: dealing out N pairs: done in N s",
        "data.val: reading: N in N s",
        "cleaning: N in N s",
        "looking for repeats among N: done in N s",
        "reading for the vocabulary: N in N s",
        "data.train: encoding: N in N s",
        "data.val: encoding: N in N s",
        *learning[kind],
    }
    assert any(message.startswith("checking ") for message in caplog.messages)
