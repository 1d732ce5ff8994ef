"""What happens when the training loss, or what it makes of the weights, is NaN or infinite."""

import logging
from collections.abc import Callable, Iterable
from typing import Any, Literal

import torch
import torch.distributed as dist
from torch import Tensor

from zhen.errors import UserError

log = logging.getLogger(__name__)

# What to do about it.
REMEDY = (
    "lower `optimizer.lr`, clip the gradient with `trainer.gradient_clip_val`, or take a higher"
    " `trainer.precision`"
)
LAG = 16  # updates; looking at a number of a GPU waits for all that the GPU has to do


def check_weights(weights: Iterable[Tensor], updates: int) -> None:
    """Before a checkpoint: a finite loss may have a gradient that is not.

    Raises:
        UserError: a weight is NaN or infinite.
    """
    # One look at the device for all of them.
    if not torch.stack([weight.detach().isfinite().all() for weight in weights]).all():
        raise UserError(
            f"the weights are not finite after {updates} updates: the training diverged; the last"
            f" checkpoint is from before; {REMEDY}"
        )


class FiniteLoss:
    """Looks at each loss, and knows which pairs it came from.

    Args:
        action: "stop" ends the training; "skip" leaves the weights as they are for that update.
        named: the training pairs of these numbers, for messages.
    """

    def __init__(self, action: Literal["stop", "skip"], named: Callable[[list[int]], str]) -> None:
        self._action, self._named = action, named
        self._noted: list[tuple[int, Tensor, list[int]]] = []  # update, loss, pairs

    def note(self, update: int, loss: Tensor, indices: list[int]) -> None:
        """Remember the loss of a (micro-)batch; `update` counts from 1."""
        self._noted.append((update, loss.detach(), indices))

    def check(self) -> None:
        """Before a checkpoint: every loss that led to it is finite. Every rank must ask.

        Raises:
            UserError: as `good`.
        """
        if self._action == "stop":  # else no update was made with such a loss
            self.good(now=True)

    def good(self, now: bool = False) -> bool:
        """Before an update: whether it may be made. Every rank must ask.

        To stop, a GPU's losses are looked at some updates later; with `now`, at once.

        Raises:
            UserError: names the pairs, where the training is to stop.
        """
        if not self._noted:
            return True
        behind = self._noted[-1][0] - self._noted[0][0]
        if self._noted[-1][1].is_cuda and self._action == "stop" and not now and behind < LAG:
            return True
        finite = torch.stack([loss for _, loss, _ in self._noted]).isfinite()
        bad = [each for each, ok in zip(self._noted, finite.tolist(), strict=True) if not ok]
        self._noted = []
        several = dist.is_available() and dist.is_initialized()
        everywhere = not bad
        if several:
            agreed = finite.all()
            dist.all_reduce(agreed, dist.ReduceOp.MIN)
            everywhere = bool(agreed.item())
        if everywhere:
            return True
        message = ""
        if bad:
            update, loss, pairs = bad[0]
            message = (
                f"the training loss of update {update} is {loss.item()} for {self._named(pairs)}"
            )
        if several:  # all say the same, as only rank 0 may be heard
            said: list[Any] = [None] * dist.get_world_size()
            dist.all_gather_object(said, message)
            message = next(filter(None, said))
        if self._action == "stop":
            raise UserError(
                f"{message}; the last checkpoint is from before; look at them, lower"
                " `optimizer.lr`, clip the gradient with `trainer.gradient_clip_val`, take a higher"
                " `trainer.precision`, or leave such updates out with nonfinite_loss=skip"
            )
        log.warning("%s: the update is skipped", message)
        return False
