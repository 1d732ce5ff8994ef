"""What is said of a step on its way."""

import io
import sys
import time

import pytest

from zhen.data import progress
from zhen.data.progress import counted


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
