"""Learning-rate schedules: each gives the share of the optimizer's `lr` at an update.

All begin with a linear warm-up from 0 and count updates, not batches. How long the warm-up is, and
when a decay ends, may be given in epochs or in tokens too: see `in_updates`.
"""

import math
import re
from dataclasses import dataclass
from typing import Protocol

from zhen.errors import UserError

Span = int | str  # updates, or text such as "2 epochs"

SPAN = re.compile(r"(\d{1,15}(?:\.\d+)?(?:e\d{1,2})?) *(update|token|epoch)s?")


@dataclass(frozen=True)
class Pace:
    """How a training goes forward, by which epochs and tokens become updates."""

    updates: int | None  # of the whole training; None where only the clock ends it
    updates_per_epoch: int
    tokens_per_update: float  # real target tokens, over all ranks and micro-batches, on average


def in_updates(span: Span, pace: Pace) -> int:
    """A span of `400` or `400 updates`, `2 epochs` or `1e6 tokens`, in whole updates."""
    number, unit = _read("span", span)
    each = {"epoch": pace.updates_per_epoch, "token": 1 / pace.tokens_per_update}
    return round(number * each.get(unit, 1))


def _read(name: str, span: Span) -> tuple[float, str]:
    """The number and the unit.

    Raises:
        ValueError: `name`, a parameter, is no span.
    """
    if isinstance(span, int) and span >= 0:
        return span, "update"
    match = SPAN.fullmatch(span) if isinstance(span, str) else None
    if match is None:
        raise ValueError(
            f"`{name}` must be a number of updates, at least 0, or a text as 2epochs, 1e6tokens or"
            f" 400updates, but is {span}"
        )
    return float(match[1]), match[2]


class Schedule(Protocol):
    """The share of the peak learning rate for update 1, 2, ... of a training."""

    def __call__(self, update: int, pace: Pace) -> float: ...


@dataclass(frozen=True)
class Constant:
    """Warm-up, then the peak for ever.

    Args:
        warmup: a span (`in_updates`).

    Raises:
        ValueError: `warmup` is no span.
    """

    warmup: Span

    def __post_init__(self) -> None:
        _read("warmup", self.warmup)

    def __call__(self, update: int, pace: Pace) -> float:
        return min(1.0, update / max(1, in_updates(self.warmup, pace)))


@dataclass(frozen=True)
class InverseSqrt(Constant):
    """The paper's schedule (Vaswani et al. 2017, section 5.3, equation 3).

    lr = d_model^-0.5 · min(update^-0.5, update · warmup^-1.5), whose peak, at the end of the
    warm-up, is (d_model · warmup)^-0.5. Here the peak is the optimizer's `lr` and the share is
    min(update / warmup, (warmup / update)^0.5).
    """

    def __call__(self, update: int, pace: Pace) -> float:
        warmup = max(1, in_updates(self.warmup, pace))
        return min(update / warmup, (warmup / update) ** 0.5)


@dataclass(frozen=True)
class _Decay(Constant):
    length: Span | None  # with the warm-up; None: the whole training
    min_ratio: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.length is not None:
            _read("length", self.length)
        if not 0 <= self.min_ratio <= 1:
            raise ValueError(f"`min_ratio` must be from 0 to 1, but is {self.min_ratio}")

    def __call__(self, update: int, pace: Pace) -> float:
        """The warm-up; then from 1 down to `min_ratio`.

        Raises:
            UserError: the training has no last update, or the decay ends before it begins.
        """
        warmup = in_updates(self.warmup, pace)
        last = pace.updates if self.length is None else in_updates(self.length, pace)
        if last is None:
            raise UserError(
                "a run that only the clock ends needs scheduler.length; or set trainer.max_steps or"
                " trainer.max_epochs"
            )
        if self.length is not None and last <= warmup:
            raise UserError(
                f"scheduler.length={self.length} is {last} updates, and must be more than the"
                f" {warmup} of scheduler.warmup={self.warmup}"
            )
        if update < warmup:
            return update / warmup
        progress = min(1.0, (update - warmup) / max(1, last - warmup))
        return self.min_ratio + (1 - self.min_ratio) * self.curve(progress)

    def curve(self, progress: float) -> float:
        """From 1 to 0 as `progress` goes from 0 to 1."""
        raise NotImplementedError


@dataclass(frozen=True)
class Linear(_Decay):
    """Warm-up, then a straight line to `min_ratio` at the end of `length`."""

    def curve(self, progress: float) -> float:
        return 1 - progress


@dataclass(frozen=True)
class Cosine(_Decay):
    """Warm-up, then half a cosine to `min_ratio` (Loshchilov and Hutter 2017, no restarts)."""

    def curve(self, progress: float) -> float:
        return (1 + math.cos(math.pi * progress)) / 2
