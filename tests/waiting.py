"""A callback that lets a training wait for a signal, so that a test can send it in time."""

import os
import time
from pathlib import Path
from typing import Any

import lightning as L

from zhen.training.checkpoints import Checkpoints

PATIENCE = 900  # seconds


class Wait(L.Callback):
    """Waits once, after update `updates[n]` of start `n` of a job, and says so: `waiting-n`."""

    def __init__(self, *, updates: list[int]) -> None:
        self._updates = updates

    def on_train_batch_start(
        self, trainer: L.Trainer, module: L.LightningModule, batch: Any, batch_idx: int
    ) -> None:
        start = int(os.environ.get("SLURM_RESTART_COUNT", "0"))
        if start >= len(self._updates) or trainer.global_step != self._updates[start]:
            return
        mark = Path(trainer.default_root_dir, f"waiting-{start}")
        if mark.exists():  # the run goes on in another job
            return
        mark.touch()
        (keeper,) = (each for each in trainer.callbacks if isinstance(each, Checkpoints))
        for _ in range(10 * PATIENCE):
            if keeper._signals.received:
                return
            time.sleep(0.1)
        raise TimeoutError("no signal came")
