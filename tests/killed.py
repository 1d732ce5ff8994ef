"""`zhen.train` in a process of its own that comes to harm at a given place.

    python tests/killed.py PLACE NUMBER OVERRIDE...

It happens in the NUMBER-th call. SIGKILL in an `update`, `validation` or `test`; when half of a
checkpoint is written (`writing`), when all of it is, aside (`renaming`), or when last.ckpt is new
and best.ckpt is not (`linking`). `paused`: an update lasts until a signal comes; `stuck`: for ever.
"""

import io
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import torch

from zhen.config import run_command
from zhen.train import train
from zhen.training import checkpoints
from zhen.training.checkpoints import Checkpoints
from zhen.training.module import TranslationModule


def die(*_: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_half_written(content: Any, file: Any) -> None:
    whole = io.BytesIO()
    torch.serialization.save(content, whole)
    file.write(whole.getvalue()[: len(whole.getvalue()) // 2])
    file.flush()
    die()


def pause(module: TranslationModule, *_: Any) -> None:
    """No `signal.pause`, which would wait for another one if it came a moment too late."""
    (keeper,) = (c for c in module.trainer.callbacks if isinstance(c, Checkpoints))
    print("waiting", flush=True)
    while not keeper._signals.received:
        time.sleep(0.05)


def hang(*_: Any) -> None:
    print("waiting", flush=True)
    while True:
        time.sleep(1)


PLACES: dict[str, tuple[Any, str, Callable[..., None]]] = {
    "update": (TranslationModule, "training_step", die),
    "validation": (TranslationModule, "validation_step", die),
    "test": (TranslationModule, "test_step", die),
    "writing": (torch, "save", die_half_written),
    "renaming": (os, "replace", die),
    "linking": (checkpoints, "second_name", die),
    "paused": (TranslationModule, "training_step", pause),
    "stuck": (TranslationModule, "training_step", hang),
}


def harm(place: str, number: int) -> None:
    owner, name, what = PLACES[place]
    real, calls = getattr(owner, name), 0

    def call(*arguments: Any, **named: Any) -> Any:
        nonlocal calls
        # Other files are renamed as well.
        calls += place != "renaming" or str(arguments[1]).endswith("last.ckpt")
        if calls == number:
            calls += 1
            what(*arguments)
        return real(*arguments, **named)

    setattr(owner, name, call)


if __name__ == "__main__":
    harm(sys.argv[1], int(sys.argv[2]))
    sys.argv = ["zhen.train", *sys.argv[3:]]
    run_command(train, config_name="train")
