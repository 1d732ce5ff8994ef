"""What a pattern is, and how sentences are drawn from it.

A pattern is a function that takes a random generator and returns one (Chinese, English) pair, or
None when the words it drew do not go together. Its name is the function's name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from . import english, lexicon

Drawn = tuple[str, str] | None
Draw = Callable[[Random], Drawn]

SEED = 20240601
PAIRS_PER_PATTERN = 110
HELD_OUT_PAIRS_PER_PATTERN = 18
# A pattern with few sentences runs dry; after this many draws without a new one it is done.
PATIENCE = 400


class Pair(NamedTuple):
    """A sentence in both languages, and the pattern that made it ("" when written by hand)."""

    zh: str
    en: str
    pattern: str


@dataclass(frozen=True)
class Pattern:
    name: str
    draw: Draw
    held_out: bool


PATTERNS: list[Pattern] = []


def pattern(draw: Draw) -> Draw:
    """Registers a pattern whose sentences go to train, validation and test.seen."""
    PATTERNS.append(Pattern(draw.__name__, draw, held_out=False))
    return draw


def held_out_pattern(draw: Draw) -> Draw:
    """Registers a pattern that only test.heldout shows."""
    PATTERNS.append(Pattern(draw.__name__, draw, held_out=True))
    return draw


def key(text: str) -> str:
    """What makes two sentences the same: letters and digits, without case and punctuation."""
    return "".join(char for char in text.casefold() if char.isalnum())


def generate(taken: set[str]) -> list[Pair]:
    """Draws the sentences of every pattern.

    Each pattern has its own generator, seeded by its name, so that a change to one leaves the
    others alone. A sentence whose Chinese or English is already in `taken` (which grows) is
    dropped: no two pairs share a side, and a split of the pairs shares no sentence.
    """
    pairs: list[Pair] = []
    for item in PATTERNS:
        r = Random(f"{SEED}/{item.name}")
        quota = HELD_OUT_PAIRS_PER_PATTERN if item.held_out else PAIRS_PER_PATTERN
        found = misses = 0
        while found < quota and misses < PATIENCE:
            drawn = item.draw(r)
            misses += 1
            if drawn is None or lexicon.absurd(drawn[0]):
                continue
            zh, en = drawn[0], english.sentence(drawn[1])
            if key(zh) in taken or key(en) in taken:
                continue
            taken.update((key(zh), key(en)))
            pairs.append(Pair(zh, en, item.name))
            found, misses = found + 1, 0
    return pairs
