"""Counts on the way: a bar on a terminal, a line now and then in a log."""

import contextlib
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

log = logging.getLogger(__name__)

Item = TypeVar("Item")

PATIENCE = 2.0  # seconds before anything is shown
INTERVAL = 10.0  # seconds between two lines of a log


def counted(
    items: Iterable[Item],
    what: str,
    total: int | None = None,
    *,
    size: Callable[[Item], int] | None = None,
) -> Iterator[Item]:
    """`items`, and a word on how far they are, if they take more than two seconds.

    Args:
        items: passed on one by one.
        what: the step, such as "data.train: reading".
        total: what the sizes add up to, where that is known.
        size: how much an item counts for; None: 1.
    """
    show: _Bar | _Lines | None = None
    done, started = 0, time.monotonic()
    try:
        for item in items:
            yield item
            done += 1 if size is None else size(item)
            if show is None and time.monotonic() - started > PATIENCE:
                show = _shown(what, total)
            if show is not None:
                show.update(done, time.monotonic() - started)
    finally:
        if show is not None:
            show.close(done, time.monotonic() - started)


@contextlib.contextmanager
def underway(what: str) -> Iterator[None]:
    """A word on one long call that tells nobody how far it is, if it takes more than two seconds.

    Args:
        what: the step and its size, such as "merging 1,000,000 words".
    """
    over = threading.Event()
    watch = threading.Thread(target=_watch, args=(what, over), daemon=True)
    watch.start()
    try:
        yield
    finally:
        over.set()
        watch.join()


def _watch(what: str, over: threading.Event) -> None:
    started = time.monotonic()
    if over.wait(PATIENCE):
        return
    show = _shown(what, None)
    while not over.wait(PATIENCE / 10):
        show.update(None, time.monotonic() - started)
    show.close(None, time.monotonic() - started)


def _shown(what: str, total: int | None) -> "_Bar | _Lines":
    return _Bar(what, total) if sys.stderr.isatty() else _Lines(what, total)


class _Bar:
    def __init__(self, what: str, total: int | None) -> None:
        from rich import progress  # here: a short step does without it
        from rich.console import Console

        self._bar = progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.TextColumn("{task.fields[count]}"),
            progress.TimeElapsedColumn(),
            progress.TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self._of = f"/{total:,}" if total is not None else ""
        self._task = self._bar.add_task(what, total=total, count="")
        self._bar.start()

    def update(self, done: int | None, seconds: float) -> None:
        if done is not None:
            self._bar.update(self._task, completed=done, count=f"{done:,}{self._of}")

    def close(self, done: int | None, seconds: float) -> None:
        self._bar.stop()


class _Lines:
    def __init__(self, what: str, total: int | None) -> None:
        self._what, self._of = what, f" of {total:,}" if total is not None else ""
        self._next = 0.0

    def update(self, done: int | None, seconds: float) -> None:
        if seconds >= self._next:
            if done is None:
                log.info("%s: %.0f s so far", self._what, seconds)
            else:
                log.info("%s: %s%s", self._what, f"{done:,}", self._of)
            self._next = seconds + INTERVAL

    def close(self, done: int | None, seconds: float) -> None:
        count = "done" if done is None else f"{done:,}"
        log.info("%s: %s in %.0f s", self._what, count, seconds)
