"""The unigram learner: its expectations are those of trying every cut, and its pieces are good."""

import math
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zhen.data import unigram
from zhen.data.unigram import _lattices, _seeds, learn_unigram

WORDS = st.dictionaries(
    st.text("ab c中", min_size=1, max_size=9), st.integers(1, 5), min_size=1, max_size=6
)


def cuts(word: str, pieces: set[str]) -> Iterator[list[str]]:
    """Every way to cut a word into pieces."""
    if not word:
        yield []
    for end in range(1, len(word) + 1):
        if word[:end] in pieces:
            for rest in cuts(word[end:], pieces):
                yield [word[:end], *rest]


def flat(words: dict[str, int]) -> tuple[str, np.ndarray, np.ndarray]:
    lengths = np.array([len(word) for word in words])
    return "".join(words), lengths, np.array(list(words.values()))


def names(seeds, text: str) -> list[str]:
    return [
        text[start : start + length]
        for start, length in zip(seeds.first, seeds.lengths, strict=True)
    ]


@given(WORDS, st.integers(1, 3))
@settings(max_examples=100, deadline=None)
def test_the_seeds_are_the_frequent_substrings(words: dict[str, int], min_frequency: int) -> None:
    text, lengths, counts = flat(words)
    seeds = _seeds(text, lengths, counts, 10**6, min_frequency)
    seen: Counter[str] = Counter()
    for word, count in words.items():
        for start in range(len(word)):
            for end in range(start + 1, len(word) + 1):
                seen[word[start:end]] += count
    expected = {p: n for p, n in seen.items() if n >= min_frequency or len(p) == 1}
    assert dict(zip(names(seeds, text), seeds.counts.tolist(), strict=True)) == expected


def test_seeds_are_short_and_few() -> None:
    text, lengths, counts = flat({"abcdefghijklmnopqrstuvwxyz": 9, "ab": 9})
    found = names(_seeds(text, lengths, counts, 10**6, 2), text)
    assert max(map(len, found)) == unigram.LONGEST
    few = names(_seeds(text, lengths, counts, 28, 2), text)
    assert len(few) == 28 and set("abcdefghijklmnopqrstuvwxyz") < set(few)


@given(WORDS, st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_expectations_are_those_of_trying_every_cut(words: dict[str, int], rng) -> None:
    text, lengths, counts = flat(words)
    seeds = _seeds(text, lengths, counts, 10**6, 1)
    whole, inside = _lattices(seeds, lengths)
    pieces = names(seeds, text)
    # Some of them, the characters among them.
    stay = np.array([len(piece) == 1 or rng.random() < 0.6 for piece in pieces])
    whole, inside = whole.only(stay), inside.only(stay, words_too=True)
    score = {pieces[i]: -1 - 5 * rng.random() for i in np.flatnonzero(stay)}
    scores = np.array(list(score.values()))

    expected: Counter[str] = Counter()
    best = []
    for word, count in words.items():
        ways = [(math.exp(sum(score[p] for p in cut)), cut) for cut in cuts(word, set(score))]
        for probability, cut in ways:
            for piece in cut:
                expected[piece] += count * probability / sum(p for p, _ in ways)
        best.append(max(math.log(probability) for probability, _ in ways))
    found = whole.expected(scores, counts)
    assert found == pytest.approx([expected[piece] for piece in score], abs=1e-9)
    assert whole.best(scores) == pytest.approx(best)

    without = inside.best(scores)
    for i, piece in enumerate(score):
        if len(piece) > 1:
            others = cuts(piece, set(score) - {piece})
            assert without[i] == pytest.approx(max(sum(score[p] for p in cut) for cut in others))


def test_a_step_makes_the_text_more_probable() -> None:
    words = {"漂亮": 30, "很漂亮": 9, " beautiful": 20, " beauty": 5, " fully": 3}
    text, lengths, counts = flat(words)
    seeds = _seeds(text, lengths, counts, 10**6, 2)
    whole, _ = _lattices(seeds, lengths)
    scores = np.log(seeds.counts / seeds.counts.sum())
    likelihood = []
    for _ in range(5):
        likelihood.append(counts @ whole._forward(scores, np.logaddexp)[whole.last])
        expected = np.maximum(whole.expected(scores, counts), 1e-9)
        scores = np.log(expected / expected.sum())
    assert likelihood == sorted(likelihood) and likelihood[-1] > likelihood[0] + 1


@given(WORDS, st.integers(0, 12), st.integers(1, 3))
@settings(max_examples=60, deadline=None)
def test_pieces_as_many_as_asked(words: dict[str, int], more: int, min_frequency: int) -> None:
    characters = set("".join(words))
    found = learn_unigram(words, len(characters) + more, min_frequency)
    pieces = [piece for piece, _ in found]
    assert characters <= set(pieces) and len(set(pieces)) == len(pieces)
    assert len(pieces) <= len(characters) + more
    assert all(score <= 0 for _, score in found)
    assert sum(math.exp(score) for _, score in found) == pytest.approx(1, abs=1e-3)


def test_nothing_to_learn_from() -> None:
    assert learn_unigram({}, 100, 2) == []


def test_words_come_before_their_parts() -> None:
    words = {" the": 500, " then": 100, " cat": 300, " cats": 80, "漂亮": 300, "很": 200}
    pieces = [piece for piece, _ in learn_unigram(words, 15, 2)]
    assert {piece for piece in pieces if len(piece) > 1} == {" the", " cat", " then", "漂亮"}


def test_the_order_of_the_words_means_nothing() -> None:
    words = {f"{a}{b}{c}": 1 + (i + j) % 3 for i, a in enumerate("abcdef")
             for j, b in enumerate("ghijk") for c in "lmn"}  # fmt: skip
    backwards = dict(reversed(words.items()))
    assert learn_unigram(words, 60, 2) == learn_unigram(backwards, 60, 2)
