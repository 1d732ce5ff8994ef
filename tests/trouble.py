"""`zhen.train` in which one rank comes to harm in its third update, while the others wait for it.

    HARM=1:kill python tests/trouble.py OVERRIDE...

A variable, since Lightning starts the other ranks with the command line of the first. Harm is a
`bug` (an exception), `user` (a `UserError`) or `kill` (SIGKILL).
"""

import os
import signal
from typing import Any

from zhen.config import run_command
from zhen.errors import UserError
from zhen.runs.directory import rank
from zhen.train import train
from zhen.training.module import TranslationModule

real = TranslationModule.training_step
harmed, harm = os.environ["HARM"].split(":")


def step(self: TranslationModule, *arguments: Any) -> Any:
    if self.trainer.global_step == 2:
        if harm == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        raise UserError("no more of this") if harm == "user" else ZeroDivisionError("too small")
    return real(self, *arguments)


if __name__ == "__main__":
    if rank() == int(harmed):
        TranslationModule.training_step = step  # type: ignore[method-assign]
    run_command(train, config_name="train")
