"""Learning-rate schedules: each gives the share of the optimizer's `lr` at an update.

All begin with a linear warm-up from 0 and count updates, not batches or epochs.
"""

import math
from dataclasses import dataclass
from typing import Protocol

from zhen.errors import UserError


class Schedule(Protocol):
    """The share of the peak learning rate for update 1, 2, ... of `total`."""

    def __call__(self, update: int, total: int | None) -> float: ...


@dataclass(frozen=True)
class Constant:
    """Warm-up, then the peak for ever.

    Raises:
        ValueError: `warmup_updates` is negative.
    """

    warmup_updates: int

    def __post_init__(self) -> None:
        if self.warmup_updates < 0:
            raise ValueError(f"`warmup_updates` must be at least 0, but is {self.warmup_updates}")

    def __call__(self, update: int, total: int | None) -> float:
        return min(1.0, update / max(1, self.warmup_updates))


@dataclass(frozen=True)
class InverseSqrt(Constant):
    """The paper's schedule (Vaswani et al. 2017, section 5.3, equation 3).

    lr = d_model^-0.5 · min(update^-0.5, update · warmup^-1.5), whose peak, at the end of the
    warm-up, is (d_model · warmup)^-0.5. Here the peak is the optimizer's `lr` and the share is
    min(update / warmup, (warmup / update)^0.5).
    """

    def __call__(self, update: int, total: int | None) -> float:
        warmup = max(1, self.warmup_updates)
        return min(update / warmup, (warmup / update) ** 0.5)


@dataclass(frozen=True)
class _Decay(Constant):
    total_updates: int | None
    min_ratio: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.total_updates is not None and self.total_updates <= self.warmup_updates:
            raise ValueError(
                f"`total_updates` must be above `warmup_updates` ({self.warmup_updates}), but is"
                f" {self.total_updates}"
            )
        if not 0 <= self.min_ratio <= 1:
            raise ValueError(f"`min_ratio` must be from 0 to 1, but is {self.min_ratio}")

    def progress(self, update: int, total: int | None) -> float:
        """0 at the end of the warm-up, 1 at the last update.

        Raises:
            UserError: the run has no last update.
        """
        total = self.total_updates or total
        if total is None:
            raise UserError(
                "a run that only the clock ends needs scheduler.total_updates; or set"
                " trainer.max_steps or trainer.max_epochs"
            )
        span = max(1, total - self.warmup_updates)
        return min(1.0, max(0, update - self.warmup_updates) / span)


@dataclass(frozen=True)
class Linear(_Decay):
    """Warm-up, then a straight line to `min_ratio` at `total_updates` (None: the run's last)."""

    def __call__(self, update: int, total: int | None) -> float:
        progress = self.progress(update, total)
        if update < self.warmup_updates:
            return super().__call__(update, total)
        return 1 - (1 - self.min_ratio) * progress


@dataclass(frozen=True)
class Cosine(_Decay):
    """Warm-up, then half a cosine to `min_ratio` (Loshchilov and Hutter 2017, no restarts)."""

    def __call__(self, update: int, total: int | None) -> float:
        progress = self.progress(update, total)
        if update < self.warmup_updates:
            return super().__call__(update, total)
        cosine = (1 + math.cos(math.pi * progress)) / 2
        return self.min_ratio + (1 - self.min_ratio) * cosine
