"""How far a training had come at what time: the other axes of its learning curves."""

import time
from pathlib import Path
from typing import Any

import lightning as L

from zhen.data import Batch
from zhen.files import read_rows, write_atomic

COLUMNS = ("update", "target_tokens", "seconds", "seconds_validating")


class Clock(L.Callback):
    """clock.csv in the run directory: a row wherever numbers are logged or the state is kept.

    `update` counts updates, `target_tokens` the real target tokens that they were made of, over all
    ranks; `seconds` is the time that the training has worked so far, without that between two parts
    of a run that went on, and `seconds_validating` how much of it went into validations. It is a
    file of its own since `metrics.csv` is bitwise the same in every run, and time is not.

    Args:
        run_dir: the run directory.
    """

    def __init__(self, run_dir: str) -> None:
        self._path = Path(run_dir, "clock.csv")
        self._update, self._tokens = 0, 0
        self._began: float | None = None  # None: this process writes none
        self._before, self._validating = 0.0, 0.0  # seconds of earlier processes, of validations
        self._validation_began = 0.0
        self._written = -1  # the update of the last row

    def on_train_start(self, trainer: L.Trainer, module: L.LightningModule) -> None:
        """Take up the row of the update that the run goes on after, and cut what came later."""
        if not trainer.is_global_zero:
            return
        self._update = trainer.global_step
        rows = [row for row in self._rows() if int(row[0]) <= self._update]
        if rows:
            self._tokens = int(rows[-1][1])
            self._before, self._validating = float(rows[-1][2]), float(rows[-1][3])
            self._written = int(rows[-1][0])
        elif self._update:
            return
        lines = [",".join(row) for row in [COLUMNS, *rows]]
        write_atomic(self._path, "".join(f"{line}\n" for line in lines))
        self._began = time.monotonic()

    def on_train_batch_end(
        self,
        trainer: L.Trainer,
        module: L.LightningModule,
        outputs: Any,
        batch: Batch,
        batch_idx: int,
    ) -> None:
        if trainer.global_step == self._update:  # a micro-batch that ends no update
            return
        self._update = trainer.global_step
        self._tokens += batch.update_tokens
        if self._update % trainer.log_every_n_steps == 0:  # type: ignore[attr-defined]
            self._write()

    def on_validation_start(self, trainer: L.Trainer, module: L.LightningModule) -> None:
        self._validation_began = time.monotonic()

    def on_validation_end(self, trainer: L.Trainer, module: L.LightningModule) -> None:
        if self._began is not None:
            self._validating += time.monotonic() - self._validation_began
            self._written = -1  # once more, with the time that it took
            self._write()

    def on_save_checkpoint(
        self, trainer: L.Trainer, module: L.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        # So that a run that goes on from here knows how far it had come.
        self._write()

    def _rows(self) -> list[list[str]]:
        return read_rows(self._path)[1] if self._path.exists() else []

    def _write(self) -> None:
        if self._began is None or self._update == self._written:
            return
        self._written = self._update
        seconds = self._before + time.monotonic() - self._began
        row = f"{self._update},{self._tokens},{seconds:.3f},{self._validating:.3f}\n"
        with self._path.open("a", encoding="utf-8", newline="") as file:
            file.write(row)
