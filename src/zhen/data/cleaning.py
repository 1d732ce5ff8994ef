"""What is taken out of the training pairs, each rule by name and counted."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zhen.data.corpus import Corpus

# Part of every key; raise it when a rule changes what it drops.
VERSION = 1


@dataclass(frozen=True)
class CleanOptions:
    """Which training pairs are dropped; validation and test are never cleaned.

    Args:
        empty: drop pairs with an empty side; otherwise such a pair is an error.
    """

    empty: bool = False


@dataclass(frozen=True)
class Cleaned:
    """What is left: ascending rows of the corpus, and how many pairs each rule dropped."""

    rows: NDArray[np.int64]
    counts: dict[str, int]


def clean(corpus: Corpus, options: CleanOptions) -> Cleaned:
    """The pairs that pass every rule; those kept and those dropped add up to all."""
    rows = np.arange(len(corpus))
    if not options.empty:
        return Cleaned(rows, {})
    return Cleaned(np.delete(rows, corpus.empty), {"empty": len(corpus.empty)})
