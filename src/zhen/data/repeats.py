"""64-bit hashes: equal sentences among many millions, with 8 bytes a sentence and no text.

Two different sentences have the same hash once in 2**64 times: among 10 million, with a chance of
three in a million.
"""

from collections.abc import Iterable

import numpy as np
import xxhash
from numpy.typing import NDArray

from zhen.data.progress import underway

Hashes = NDArray[np.uint64]
Rows = NDArray[np.int64]


def hash_texts(texts: Iterable[str]) -> Hashes:
    """The hash of each text; space around it makes no difference, as it makes none to a model."""
    found = [xxhash.xxh3_64_intdigest(text.strip().encode("utf-8")) for text in texts]
    return np.array(found, dtype=np.uint64)


def hash_pairs(sources: Hashes, targets: Hashes) -> Hashes:
    """A hash of each pair, in which the order of the sides counts."""
    return sources * np.uint64(0x9E3779B97F4A7C15) + targets  # wraps around


def mix(keys: Hashes, n: NDArray[np.int64] | int = 0) -> Hashes:
    """The number after the first `n` that SplitMix64 (Steele et al. 2014) draws from each key."""
    # At least one dimension: numpy lets arrays overflow, as they must here, but warns of scalars.
    x = keys + (np.atleast_1d(n).astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def repeated(hashes: Hashes) -> tuple[Rows, Rows]:
    """The rows that repeat an earlier one, ascending, and the first row of each one's kind."""
    with underway(f"looking for repeats among {len(hashes):,}"):
        _, first, kind = np.unique(hashes, return_index=True, return_inverse=True)
        firsts = first[kind]
        rows = np.flatnonzero(firsts != np.arange(len(hashes)))
        return rows, firsts[rows]


def shared(hashes: Hashes, others: Hashes) -> tuple[Rows, Rows]:
    """The rows of `hashes` that also occur in `others`, ascending, and where each first does."""
    if not len(hashes) or not len(others):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    with underway(f"looking for {len(hashes):,} among {len(others):,}"):
        wanted, kind = np.unique(hashes, return_inverse=True)
        place = np.searchsorted(wanted, others)
        place[place == len(wanted)] = 0
        found = np.flatnonzero(wanted[place] == others)
        first = np.full(len(wanted), -1, np.int64)
        first[place[found[::-1]]] = found[::-1]  # backwards: the first one is written last
        rows = np.flatnonzero(first[kind] >= 0)
        return rows, first[kind][rows]
