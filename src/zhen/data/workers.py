"""What a loader's worker process does when it starts."""

import signal

from zhen.errors import STOPPING


def leave_signals_to_main(worker: int) -> None:
    """Ctrl-C and a cluster's signals reach workers too, and must not end them before the run."""
    for number in STOPPING:
        signal.signal(number, signal.SIG_IGN)
