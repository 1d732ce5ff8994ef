"""Merges left out at random: reproducible, the library's own without dropout, and always exact."""

from itertools import chain, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.data.hard_texts import ODD, TEXTS, TRAINING, TRAPS
from tests.toy_tokenizer import learn

from zhen.data.bpe_dropout import Merges
from zhen.data.repeats import mix
from zhen.data.vocabulary import CONTROLS, Vocabulary

BPE = learn([*TRAINING, *TRAPS * 9], vocab_size=500).source
UNKNOWN = learn(TRAINING, vocab_size=200, byte_fallback=False, normalization="nfkc").source
EACH = pytest.mark.parametrize("vocabulary", [BPE, UNKNOWN], ids=["bytes", "no bytes"])
MANY = TRAINING * 20


def encode(vocabulary: Vocabulary, texts: list[str], dropout: float, seed: int) -> list[list[int]]:
    return vocabulary.encode(texts, dropout, np.random.default_rng(seed))


@EACH
@given(st.lists(TEXTS, max_size=4))
@settings(max_examples=100, deadline=None)
def test_next_to_no_dropout_is_the_library(vocabulary: Vocabulary, texts: list[str]) -> None:
    assert encode(vocabulary, texts, 1e-300, 0) == vocabulary.encode(texts)


@EACH
@given(st.lists(TEXTS, max_size=4))
@settings(max_examples=50, deadline=None)
def test_full_dropout_is_single_characters(vocabulary: Vocabulary, texts: list[str]) -> None:
    texts = vocabulary.normalise(texts)
    found = encode(vocabulary, texts, 1.0, 0)
    assert found == [list(chain.from_iterable(vocabulary.encode(list(text)))) for text in texts]


@EACH
@given(st.lists(TEXTS, max_size=4), st.floats(0.01, 1.0), st.integers(0, 2**32))
@settings(max_examples=100, deadline=None)
def test_the_round_trip_is_exact(
    vocabulary: Vocabulary, texts: list[str], dropout: float, seed: int
) -> None:
    whole = vocabulary.decode(vocabulary.encode(texts))
    found = encode(vocabulary, texts, dropout, seed)
    assert vocabulary.decode(found) == whole
    assert all(len(CONTROLS) <= i < len(vocabulary) for ids in found for i in ids)


def test_it_follows_from_the_seed() -> None:
    assert encode(BPE, MANY, 0.1, 3) == encode(BPE, MANY, 0.1, 3)
    assert encode(BPE, MANY, 0.1, 3) != encode(BPE, MANY, 0.1, 4)
    # The same on every machine.
    found = encode(BPE, ["I like playing basketball", "更喜欢打篮球"], 0.5, 7)
    assert ["|".join(BPE.pieces(ids)) for ids in found] == [
        "I| l|i|ke| |p|l|ay|i|n|g| |b|a|s|ke|t|b|a|l|l",
        "更|喜欢|打篮球",
    ]


@given(st.lists(st.sampled_from([*ODD, *TRAINING]), max_size=8), st.integers(0, 8))
@settings(max_examples=50, deadline=None)
def test_neighbours_and_portions_change_nothing(texts: list[str], at: int) -> None:
    whole = encode(BPE, texts, 0.3, 5)
    rng = np.random.default_rng(5)
    assert BPE.encode(texts[:at], 0.3, rng) + BPE.encode(texts[at:], 0.3, rng) == whole
    others = ["something else", *texts[1:]]
    assert encode(BPE, others, 0.3, 5)[1:] == whole[1:]


def test_equal_texts_and_words_are_cut_apart() -> None:
    (ids,) = encode(BPE, ["basketball" + " basketball" * 60], 0.5, 0)
    words = "|".join(BPE.pieces(ids)).split("| ")
    assert len(set(words)) > 20
    assert len({tuple(ids) for ids in encode(BPE, ["I like playing basketball"] * 60, 0.5, 0)}) > 40


@pytest.mark.parametrize("dropout", [0.1, 0.5, 0.9])
def test_a_merge_is_left_out_as_often_as_asked(dropout: float) -> None:
    """One merge is possible, and it is tried once: a step in which all are left out is the last."""
    pair = learn(["xy"] * 3, vocab_size=262).source
    assert len(pair.encode(["xy"])[0]) == 1
    found = encode(pair, ["xy"] * 20_000, dropout, 1)
    assert np.mean([len(ids) == 2 for ids in found]) == pytest.approx(dropout, abs=0.015)


def by_hand(word: list[int], ranks: dict[tuple[int, int], int], dropout: float, draw) -> list[int]:
    """The algorithm as the paper writes it, for one word: algorithm 1 of Provilkov et al. 2020."""
    pieces, step = [(piece, at) for at, piece in enumerate(word)], 0
    while True:
        possible = [
            (ranks[pair], i)
            for i, pair in enumerate(pairwise(piece for piece, _ in pieces))
            if pair in ranks and draw(pieces[i][1], step) >= dropout
        ]
        if not possible:
            return [piece for piece, _ in pieces]
        rank, i = min(possible)
        pieces[i : i + 2] = [(100 + rank, pieces[i][1])]
        step += 1


@given(
    st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=9), min_size=1, max_size=5),
    st.integers(1, 30),
    st.floats(0, 1),
    st.randoms(use_true_random=False),
)
@settings(max_examples=200, deadline=None)
def test_the_steps_are_those_of_the_paper(words, count: int, dropout: float, rng) -> None:
    known, ranks = [0, 1, 2, 3], {}
    for rank in range(count):
        pair = rng.choice(known), rng.choice(known)
        if pair in ranks:
            break
        ranks[pair] = rank
        known.append(100 + rank)
    merges = Merges(list(ranks), [100 + rank for rank in ranks.values()])
    pieces = np.array(list(chain.from_iterable(words)))
    numbers = np.repeat(np.arange(len(words)), [len(word) for word in words])
    keys = np.arange(len(pieces), dtype=np.uint64) * np.uint64(977)
    found = merges(pieces, numbers, keys, dropout)
    first = 0
    for number, word in enumerate(words):

        def draw(at: int, step: int, first: int = first) -> float:
            return float(mix(keys[first + at : first + at + 1], step)[0] >> np.uint64(11)) * 2**-53

        expected = by_hand(word, ranks, dropout, draw)
        assert [piece for piece in found[numbers == number] if piece >= 0] == expected
        first += len(word)


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="`dropout` needs `rng`"):
        BPE.encode(["a"], dropout=0.1)
    for kind in ("unigram", "char"):
        with pytest.raises(ValueError, match="of the kind bpe"):
            encode(learn(TRAINING, kind=kind).source, ["a"], 0.1, 0)
