"""The memory of a training does not grow with its length."""

import gc
import os
from pathlib import Path
from typing import Any

import lightning as L
import pytest
import torch
from tests.conftest import Maker

from zhen.data import BatchOptions
from zhen.training.averages import Averages
from zhen.training.checkpoints import Checkpoints
from zhen.training.loggers import CsvLogger

UPDATES, WARM = 2000, 700  # caches of kernels and the allocator's arenas fill first
MOST = 6  # MiB; a loss that keeps its graph grows by more than 10 KiB an update, 13 MiB


def resident_mib() -> float:
    """The memory of this process now; its peak would hide what is given back."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


class Memory(L.Callback):
    def __init__(self) -> None:
        self.found: dict[int, float] = {}

    def on_train_batch_end(self, trainer: L.Trainer, *_: Any) -> None:
        if trainer.global_step in (WARM, UPDATES):
            self.found[trainer.global_step] = resident_mib()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's /proc")
def test_two_thousand_updates(
    tmp_path: Path, make_data: Maker, make_module: Maker, make_trainer: Maker
) -> None:
    data = make_data(max_length=16, batch=BatchOptions(tokens=100, eval_tokens=1024))
    module = make_module(data, optimizer=lambda groups: torch.optim.AdamW(groups, lr=1e-3))
    memory = Memory()
    trainer = make_trainer(
        max_epochs=-1, max_steps=UPDATES, val_check_interval=400, check_val_every_n_epoch=None,
        enable_checkpointing=True, logger=[CsvLogger(run_dir=str(tmp_path))],
        callbacks=[
            Averages(ema_decay=0.99, last=2, weights="average"),
            Checkpoints(dirpath=str(tmp_path), monitor="val/loss", mode="min"),
            memory,
        ],
    )  # fmt: skip
    trainer.fit(module, datamodule=data)
    print(memory.found)
    assert memory.found[UPDATES] - memory.found[WARM] < MOST
