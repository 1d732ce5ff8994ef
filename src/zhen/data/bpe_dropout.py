"""BPE-dropout (Provilkov et al. 2020): the merges of a BPE, each left out with some probability.

The `tokenizers` library has it too, but draws from a generator that nobody can seed. Here all
words take their steps at the same time, in numpy, and every draw is a function of its text's key,
so that a text is cut the same way whichever texts stand beside it.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

NO_RANK = 2**31 - 1  # of a pair that no merge joins


class Merges:
    """Joins neighbouring pieces as a BPE has learned to.

    Args:
        pairs: the ids (left, right) that each merge joins, the first-learned one first.
        merged: the id of each result.
    """

    def __init__(self, pairs: Sequence[tuple[int, int]], merged: Sequence[int]) -> None:
        keys = np.array([left << 32 | right for left, right in pairs], dtype=np.int64)
        self._rank = np.argsort(keys)
        self._keys = keys[self._rank]
        self._merged = np.array(merged, dtype=np.int64)

    def __call__(
        self,
        pieces: NDArray[np.int64],
        words: NDArray[np.int64],
        keys: NDArray[np.uint64],
        dropout: float,
    ) -> NDArray[np.int64]:
        """Merge until nothing is left to merge in any word.

        In each step, each possible merge of a word is left out with probability `dropout`; of the
        others the first-learned one is made, the leftmost where it fits twice. A word is done when
        all were left out.

        Args:
            pieces: (N,) the characters of all words.
            words: (N,) the number of the word that each stands in; never falls.
            keys: (N,) what the draws of each follow from.

        Returns:
            (N,) The pieces, each where its first character stood; -1 elsewhere.
        """
        result = pieces.copy()
        at = np.arange(len(pieces))  # where each piece that may still merge began
        step = 0
        while True:
            rank = self._ranks(pieces, words)
            possible = np.flatnonzero(rank < NO_RANK)
            drawn = mix(keys[possible], step) >> np.uint64(11)
            chosen = possible[drawn * 2.0**-53 >= dropout]
            if not len(chosen):
                return result
            # The best of each word: by rank, then by place.
            starts = np.flatnonzero(np.diff(words[chosen], prepend=-1))
            best = np.minimum.reduceat(rank[chosen] << 32 | chosen, starts)
            rank, left = best >> 32, best & 0xFFFFFFFF
            pieces[left] = result[at[left]] = self._merged[rank]
            result[at[left + 1]] = -1
            # Words without a merge are done, and so are the right halves.
            going_on = np.isin(words, words[left])
            going_on[left + 1] = False
            pieces, words = pieces[going_on], words[going_on]
            keys, at = keys[going_on], at[going_on]
            step += 1

    def _ranks(self, pieces: NDArray[np.int64], words: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rank of the merge of each piece with the next one."""
        ranks = np.full(len(pieces), NO_RANK, dtype=np.int64)
        if len(self._keys):
            pairs = pieces[:-1] << 32 | pieces[1:]
            found = np.searchsorted(self._keys, pairs).clip(max=len(self._keys) - 1)
            known = (self._keys[found] == pairs) & (words[:-1] == words[1:])
            ranks[:-1][known] = self._rank[found[known]]
        return ranks


def mix(keys: NDArray[np.uint64], n: NDArray[np.int64] | int) -> NDArray[np.uint64]:
    """The number after the first `n` that SplitMix64 (Steele et al. 2014) draws from each key."""
    # At least one dimension: numpy lets arrays overflow, as they must here, but warns of scalars.
    x = keys + (np.atleast_1d(n).astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
