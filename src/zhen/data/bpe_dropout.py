"""BPE-dropout (Provilkov et al. 2020): the merges of a BPE, each left out with some probability.

The `tokenizers` library has it too, but draws from a generator that nobody can seed. Here all
words take their steps at the same time, in numpy, and every draw is a function of its text's key,
so that a text is cut the same way whichever texts stand beside it.
"""

from collections.abc import Sequence
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from zhen.data.repeats import mix

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


def merge_texts(
    texts: Sequence[Sequence[int]],
    words: Sequence[Sequence[int | None]],
    merges: Merges,
    dropout: float,
    rng: np.random.Generator,
) -> list[list[int]]:
    """The pieces of each text.

    Args:
        texts: the characters of each.
        words: the number, in its text, of the word that each character stands in.
        merges: what may be merged.
        dropout: probability of leaving a merge out.
        rng: gives one number for each text.
    """
    pieces = np.fromiter(chain.from_iterable(texts), dtype=np.int64)
    lengths = np.array([len(text) for text in texts], dtype=np.int64)
    bounds = np.concatenate([[0], lengths.cumsum()])  # of each text in `pieces`
    # A word begins where its number is another one, or with its text.
    numbers = np.fromiter(chain.from_iterable(words), dtype=np.int64)
    begins = np.diff(numbers, prepend=-1) != 0
    begins[bounds[:-1][lengths > 0]] = True
    keys = rng.integers(0, 2**64, size=len(texts), dtype=np.uint64)
    places = np.arange(len(pieces)) - np.repeat(bounds[:-1], lengths)
    keys = mix(np.repeat(keys, lengths), places)
    merged = merges(pieces, begins.cumsum(), keys, dropout)
    left = merged >= 0
    ends = np.concatenate([[0], left.cumsum()])[bounds]
    ids = merged[left].tolist()
    return [ids[start:end] for start, end in pairwise(ends.tolist())]
