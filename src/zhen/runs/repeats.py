"""One setting with several seeds: what its scores are on average, and how much is luck."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from zhen.runs.comparison import Column
from zhen.runs.record import CORPUS, Run
from zhen.schema import within


@dataclass(frozen=True)
class Spread:
    """Scores of one setting over its seeds."""

    scores: tuple[float, ...]

    @property
    def mean(self) -> float:
        return statistics.fmean(self.scores)

    @property
    def deviation(self) -> float | None:
        """The sample standard deviation; None of a single score."""
        return statistics.stdev(self.scores) if len(self.scores) > 1 else None

    def delta(self, base: "Spread") -> tuple[float, float | None]:
        """The difference of the means, and its standard error; None without repeats of both."""
        error = None
        if self.deviation is not None and base.deviation is not None:
            both = ((each.deviation, len(each.scores)) for each in (self, base))
            error = math.sqrt(sum((deviation or 0) ** 2 / n for deviation, n in both))
        return self.mean - base.mean, error


Setting = frozenset[tuple[str, str]]


def setting_of(run: Run) -> Setting:
    """All that a run was trained with, but its seed."""
    known = CORPUS in run.settings  # then it does not matter where the pairs lay
    return frozenset(
        (key, value)
        for key, value in run.settings.items()
        if key != "seed" and not (known and within(key, ("data.train",)))
    )


def repeats(runs: Sequence[Run]) -> dict[Setting, list[Run]]:
    """The runs that have scores, by their setting; of two with one seed the later counts.

    The same seed again is no other throw of the dice.
    """
    found: dict[Setting, dict[str, Run]] = {}
    scored = [run for run in runs if run.tests or run.best]
    for run in sorted(scored, key=lambda run: (bool(run.tests), str(run.about.get("started")))):
        found.setdefault(setting_of(run), {})[run.config["seed"]] = run
    return {setting: list(by_seed.values()) for setting, by_seed in found.items()}


def spread(runs: Sequence[Run], column: Column) -> Spread | None:
    """A column over the repeats of one setting; None where none has it."""
    values = [float(value) for run in runs if (value := column.value(run)) is not None]
    return Spread(tuple(values)) if values else None
