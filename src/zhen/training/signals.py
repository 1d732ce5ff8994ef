"""SIGTERM, SIGINT and SIGUSR1: a note to be read between two updates, and nothing else.

A checkpoint written inside a handler would be written in the middle of whatever the process was
doing, such as the update of a weight, another checkpoint, or a call that all ranks make together.
"""

import contextlib
import os
import signal
import threading
from types import FrameType

from lightning.pytorch.plugins.environments import SLURMEnvironment, TorchElasticEnvironment

from zhen.errors import STOPPING

NOTED = "\n{}: the state is kept after this update, then the run stops{}\n"


def no_other_owner() -> list[SLURMEnvironment]:
    """Plugins by which Lightning's trainer leaves Slurm's warning to us.

    By itself it would save inside the handler, before the training begins and in the test too, and
    requeue the job, which the batch script of `zhen.submit` does.
    """
    if SLURMEnvironment.detect() and not TorchElasticEnvironment.detect():
        return [SLURMEnvironment(auto_requeue=False)]
    return []


class Signals:
    """`received` is the number of the first signal, or 0; a second SIGINT interrupts at once."""

    def __init__(self) -> None:
        self.received = 0
        self._interrupts = 0

    def install(self) -> None:
        """Take over from whoever has the handlers; only the main thread can."""
        self.received = self._interrupts = 0
        if threading.current_thread() is threading.main_thread():
            for number in STOPPING:
                signal.signal(number, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._interrupts += number == signal.SIGINT
        if number == signal.SIGINT and self._interrupts > 1:
            signal.default_int_handler(number, frame)  # raises KeyboardInterrupt
        if self.received:
            return
        self.received = number
        again = "; SIGINT once more stops at once" if number == signal.SIGINT else ""
        # print() and logging may be what the signal has interrupted, and cannot be entered twice.
        with contextlib.suppress(OSError):
            os.write(2, NOTED.format(signal.Signals(number).name, again).encode())
