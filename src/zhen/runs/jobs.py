"""The jobs of a sweep, one after another, each a process of its own.

So whatever one leaves behind (memory, ranks, a process group, a crash) is gone when the next
begins.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Literal

from zhen.runs.relay import Relay
from zhen.runs.sweeps import Sweep

TRAIN = (sys.executable, "-m", "zhen.train")
Outcome = Literal["finished", "failed", "stopped", "pruned"]
# How a process ends that SIGTERM has stopped: by itself, or before it could take notice.
TERMINATED = (128 + signal.SIGTERM, -signal.SIGTERM)


class Jobs(Relay):
    """Runs them, and passes on to the running one what would stop this process.

    Attributes:
        stopped: the number of the signal that ends the sweep, or 0.
    """

    def __init__(self, sweep: Sweep, seconds: float = 1.0) -> None:
        """
        Args:
            seconds: between two looks at a job that is watched.
        """
        super().__init__()
        self._sweep, self._seconds = sweep, seconds

    def run(self, number: int, watch: Callable[[], bool] | None = None) -> Outcome:
        """Run a job to its end, or from where it was stopped to its end.

        Args:
            number: of the job in the sweep, from 1.
            watch: asked now and then while the job runs; True stops the job as pruned.
        """
        run, words = self._sweep.run(number), self._sweep.jobs[number - 1]
        if run.results.exists():
            return "finished"
        if self._sweep.ended.get(number) == "pruned":
            return "pruned"
        if self.stopped:
            return "stopped"
        print(f"\njob {number}: {' '.join(words)}", flush=True)
        # Whatever it has begun; and without the word where there is nothing, since `overrides.yaml`
        # and the command in provenance.json would keep it.
        again = ["resume=auto"] if run.config.exists() else []
        process = self.start(
            [*TRAIN, *words, *again], {**os.environ, **self._sweep.environment(number)}
        )
        pruned = False
        while (status := self._wait(process, watch is not None)) is None:
            if watch is not None and not pruned and watch():
                pruned = True
                process.terminate()
        outcome = self._outcome(status, pruned)
        self._sweep.ended.pop(number, None)
        if outcome in ("failed", "pruned"):
            self._sweep.ended[number] = outcome
        self._sweep.write()
        return outcome

    def _outcome(self, status: int, pruned: bool) -> Outcome:
        if status == 0:
            return "finished"
        if self.stopped:
            return "stopped"
        return "pruned" if pruned and status in TERMINATED else "failed"

    def _wait(self, process: subprocess.Popen[bytes], watched: bool) -> int | None:
        """The job's exit status; None if it still runs after a while."""
        try:
            return process.wait(self._seconds if watched else None)
        except subprocess.TimeoutExpired:
            return None
