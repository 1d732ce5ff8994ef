"""Any number of pairs that mean nothing, with lengths and words distributed as real ones are.

For measuring with corpora too large to keep here. Words follow Zipf's law, a sentence's length a
log-normal distribution. Both sides say the same words in the same order, but some English words,
mostly common ones, have no Chinese counterpart, more in one pair than in another: the lengths of
the two sides differ as those of translations do.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from zhen.data.scripts import ONLY_SIMPLIFIED, ONLY_TRADITIONAL

WORDS = 30_000
CHARACTERS = 2_500
FUNCTION_WORDS = 100
MEAN_LOG, SPREAD_LOG = 2.5, 0.6  # of the words of an English sentence: 12 at the median
LONGEST = 80  # words
CHUNK = 50_000
SYLLABLES = [f"{a}{b}" for a in "bdfghklmnprstvwz" for b in "aeiou"]


def write_tsv(path: Path, pairs: int, seed: int = 0) -> None:
    """Write `pairs` lines, Chinese TAB English; the same for the same arguments."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for lines in chunks(pairs, seed):
            file.writelines(lines)


def chunks(pairs: int, seed: int) -> Iterator[list[str]]:
    rng = np.random.default_rng(seed)
    english, chinese = vocabulary(np.random.default_rng(0))
    likely = 1 / (np.arange(WORDS) + 2.7)
    upto = np.cumsum(likely / likely.sum())
    for start in range(0, pairs, CHUNK):
        size = min(CHUNK, pairs - start)
        lengths = np.exp(rng.normal(MEAN_LOG, SPREAD_LOG, size)).clip(1, LONGEST).astype(np.int64)
        words = np.searchsorted(upto, rng.random(lengths.sum()))
        terse = rng.random(size).repeat(lengths)
        said = rng.random(len(words)) > terse * np.where(words < FUNCTION_WORDS, 1.0, 0.3)
        ends = np.cumsum(lengths)
        said[ends - 1] = True  # no sentence is empty
        yield [
            f"{source}。\t{target}.\n"
            for source, target in zip(
                joined(chinese[words[said]], "", np.cumsum(said)[ends - 1]),
                joined(english[words], " ", ends),
                strict=True,
            )
        ]


def joined(words: NDArray[np.object_], by: str, ends: NDArray[np.int64]) -> Iterator[str]:
    """Sentences of words that stand on end."""
    every, start = words.tolist(), 0
    for end in ends.tolist():
        yield by.join(every[start:end])
        start = end


def vocabulary(rng: np.random.Generator) -> tuple[NDArray[np.object_], NDArray[np.object_]]:
    """Words of both languages, the commonest first and shortest."""
    ranks = np.arange(WORDS)
    syllables = 1 + (ranks > 100) + (ranks > 3000) + (ranks > 15_000)
    english = ["".join(rng.choice(SYLLABLES, n)) for n in syllables]
    # Those that both ways of writing share: a mixture of the two would be cleaned away.
    of_one = ONLY_SIMPLIFIED | ONLY_TRADITIONAL
    common = [each for each in map(chr, range(0x4E00, 0xA000)) if each not in of_one]
    # Common characters come again and again; rare ones are met a few times.
    characters = [common[int(i)] for i in rng.permutation(CHARACTERS)]
    chosen = (rng.random((WORDS, 2)) ** 2 * len(characters)).astype(np.int64)
    chinese = [
        characters[one] + (characters[other] if rank > 300 else "")
        for rank, (one, other) in enumerate(chosen)
    ]
    return np.array(english, dtype=object), np.array(chinese, dtype=object)
