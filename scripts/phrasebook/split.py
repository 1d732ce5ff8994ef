"""Deals the pairs out to train, validation and the three parts of the test."""

from __future__ import annotations

import re
from collections import Counter
from random import Random

from .grammar import PATTERNS, SEED, Pair

SEEN_TEST_PAIRS = 500
HANDWRITTEN_TEST_PAIRS = 200
VAL_PAIRS = 500
# A test sentence may only use words that the seen patterns have at least this often, so that
# test.seen and test.heldout ask for new combinations and not for unknown words.
MIN_WORD_COUNT = 8


def words(pair: Pair) -> set[str]:
    """The English words and the Chinese characters of a pair."""
    return set(re.findall(r"[a-z']+", pair.en.lower())) | set(pair.zh)


def known_only(pairs: list[Pair], counts: Counter[str]) -> list[Pair]:
    """The pairs all of whose words are frequent in training."""
    return [p for p in pairs if all(counts[word] >= MIN_WORD_COUNT for word in words(p))]


def deal_evenly(pairs: list[Pair], total: int) -> list[Pair]:
    """Picks `total` pairs, one from each pattern in turn, in the order given."""
    waiting: dict[str, list[Pair]] = {}
    for pair in pairs:
        waiting.setdefault(pair.pattern, []).append(pair)
    picked: list[Pair] = []
    while len(picked) < total:
        for name in sorted(waiting):
            if waiting[name] and len(picked) < total:
                picked.append(waiting[name].pop())
    return picked


def split(generated: list[Pair], handwritten: list[Pair]) -> dict[str, list[Pair]]:
    """Splits the corpus; the result maps a split's name to its pairs in file order.

    No two pairs share a side (see `grammar.generate`), so any partition shares no sentence.
    """
    r = Random(f"{SEED}/split")
    held_out_names = {item.name for item in PATTERNS if item.held_out}
    held_out = [pair for pair in generated if pair.pattern in held_out_names]
    generated = [pair for pair in generated if pair.pattern not in held_out_names]
    handwritten = list(handwritten)
    r.shuffle(generated)
    r.shuffle(handwritten)
    counts = Counter(word for pair in generated for word in words(pair))

    seen = deal_evenly(known_only(generated, counts), SEEN_TEST_PAIRS)
    taken = set(seen)
    left = [pair for pair in generated if pair not in taken]
    handwritten_left = handwritten[HANDWRITTEN_TEST_PAIRS:]

    # Validation has hand-written pairs in the ratio of train.
    share = round(VAL_PAIRS * len(handwritten_left) / (len(left) + len(handwritten_left)))
    val = deal_evenly(left, VAL_PAIRS - share) + handwritten_left[:share]
    taken = set(val)
    train = [pair for pair in left + handwritten_left[share:] if pair not in taken]
    r.shuffle(train)
    return {
        "train": train,
        "val": val,
        "test.seen": seen,
        "test.heldout": known_only(held_out, counts),
        "test.handwritten": handwritten[:HANDWRITTEN_TEST_PAIRS],
    }
