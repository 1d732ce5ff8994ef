"""A callback that writes down which pairs each rank was trained on."""

import json
from pathlib import Path
from typing import Any

import lightning as L

from zhen.data import Batch


class Seen(L.Callback):
    """A line for each batch in `seen.R.txt` of rank R, in the run directory: epoch, pairs."""

    def on_train_batch_end(
        self,
        trainer: L.Trainer,
        module: L.LightningModule,
        outputs: Any,
        batch: Batch,
        batch_idx: int,
    ) -> None:
        path = Path(trainer.default_root_dir, f"seen.{trainer.global_rank}.txt")
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps([trainer.current_epoch, batch.indices]) + "\n")


def pairs_of(run: Path, epoch: int) -> list[int]:
    """All pairs of an epoch, on whichever rank, sorted."""
    lines = [json.loads(line) for path in run.glob("seen.*.txt") for line in path.open()]
    return sorted(pair for of, pairs in lines for pair in pairs if of == epoch)
