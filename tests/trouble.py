"""`zhen.train` in which one rank comes to harm in its third update, while the others wait for it.

    HARM=1:kill python tests/trouble.py OVERRIDE...

A variable, since Lightning starts the other ranks with the command line of the first. Harm is a
`bug` (an exception), `user` (a `UserError`), `kill` (SIGKILL), `end` (SIGTERM) or `nan` (its loss).
"""

import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

from zhen.config import run_command
from zhen.errors import UserError
from zhen.runs.directory import rank
from zhen.train import train
from zhen.training.loss import token_loss
from zhen.training.module import TranslationModule

real = TranslationModule.training_step
harmed, harm = os.environ["HARM"].split(":")


def step(self: TranslationModule, *arguments: Any) -> Any:
    if self.trainer.global_step != 2:
        return real(self, *arguments)
    Path("harm").touch()  # when it was
    match harm:
        case "bug":
            raise ZeroDivisionError("too small")
        case "user":
            raise UserError("no more of this")
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "end":
            os.kill(os.getpid(), signal.SIGTERM)
        case "nan":
            self._training_loss, loss = no_number, self._training_loss
            try:
                return real(self, *arguments)
            finally:
                self._training_loss = loss
    return real(self, *arguments)


def no_number(*arguments: Any) -> Any:
    found = token_loss(*arguments)
    return replace(found, smoothed=found.smoothed * float("nan"))


if __name__ == "__main__":
    if rank() == int(harmed):
        TranslationModule.training_step = step  # type: ignore[method-assign]
    run_command(train, config_name="train")
