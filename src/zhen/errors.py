"""Errors a user can mend, and the nearest name to a mistyped one."""

import signal
from collections.abc import Iterable
from difflib import SequenceMatcher


class UserError(Exception):
    """Something the user gave is wrong: a key, a value, a file.

    The message is one line: the key, file or line, what it is, what is allowed, what to do.
    `zhen.config.run_command` prints it without a traceback and exits with status 1.
    """


# What ends a run: a job's end, Ctrl-C, and the warning that a cluster gives before the end.
STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)


class Stopped(SystemExit):
    """A signal ends the run, after its state was kept; the status is 128 + the signal's number."""

    def __init__(self, number: int) -> None:
        super().__init__(128 + number)
        self.signal = signal.Signals(number).name


def one_line(text: object) -> str:
    """`text` with its lines joined, for messages that come from a library."""
    lines = (line.strip() for line in str(text).splitlines())
    return "; ".join(line.rstrip(";") for line in lines if line)


# Names whose likeness differs by less are equally near.
CLOSE = 0.01


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """The names in `known` most like `name`: the best one, none if far off.

    Several if they are equally near, the ones with as many dots first.

    A dotted key is compared whole, and by its last part, so that `lr` and `model.lr` find
    `optimizer.lr`.
    """
    scores = {candidate: _likeness(name, candidate) for candidate in known}
    best = max(scores.values(), default=0.0)
    if best < 0.6:
        return []
    found = [candidate for candidate, score in scores.items() if score > best - CLOSE]
    return sorted(found, key=lambda each: (each.count(".") != name.count("."), each))


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean ...?` for the end of a message, empty when nothing is near."""
    found = nearest(name, known)[:3]
    return f"; did you mean {' or '.join(f'`{each}`' for each in found)}?" if found else ""


def _likeness(name: str, candidate: str) -> float:
    """0 (nothing in common) to 1 (equal)."""
    name_parent, _, name_leaf = name.rpartition(".")
    parent, _, leaf = candidate.rpartition(".")
    by_leaf = 0.9 * _ratio(name_leaf, leaf) + 0.1 * _ratio(name_parent, parent)
    return max(_ratio(name, candidate), by_leaf)


def _ratio(one: str, other: str) -> float:
    return SequenceMatcher(None, one, other, autojunk=False).ratio()
