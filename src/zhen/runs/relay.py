"""Waits for another process, and passes on to it what would stop this one."""

from __future__ import annotations

import contextlib
import signal
import subprocess
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any

from zhen.errors import STOPPING

if TYPE_CHECKING:
    from typing_extensions import Self  # in typing since Python 3.11


class Relay:
    """One process at a time, which each signal reaches once.

    Used as `with Relay() as relay:`, in the main thread.

    Attributes:
        stopped: the number of the first signal that came, or 0.
    """

    def __init__(self) -> None:
        self.stopped = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._unsent: list[int] = []
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for number in (*STOPPING, signal.SIGHUP):
            self._before[number] = signal.signal(number, self._note)
        if self._before[signal.SIGHUP] is signal.SIG_IGN:  # by `nohup`
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
        return self

    def __exit__(self, *_: object) -> None:
        """End the process if it still runs, as after an exception."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait()
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def start(
        self, command: Sequence[str], environment: Mapping[str, str]
    ) -> subprocess.Popen[bytes]:
        """Start the next process; signals that came before go to it at once."""
        self._process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            # A terminal's Ctrl-C goes to a group. It must reach the process once, from here: a
            # second SIGINT would stop it at once, without its state.
            start_new_session=True,
        )
        self._relay()
        return self._process

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.stopped = self.stopped or number
        # What has lost its terminal keeps its state too.
        self._unsent.append(signal.SIGTERM if number == signal.SIGHUP else number)
        self._relay()

    def _relay(self) -> None:
        if self._process is not None and self._process.poll() is None:
            with contextlib.suppress(IndexError):  # a signal came meanwhile, and has sent them
                while self._unsent:
                    self._process.send_signal(self._unsent.pop(0))
