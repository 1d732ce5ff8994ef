"""Repeats found by hash are those found by text."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from zhen.data.repeats import hash_pairs, hash_texts, mix, repeated, shared

texts = st.lists(st.sampled_from(["", "a", "b", "茶", "ab"]), max_size=12)


def test_a_hash_is_the_same_everywhere() -> None:
    """Pinned: seeded anew in each process, hashes could not be compared."""
    assert hash_texts(["茶"]).tolist() == hash_texts([" 茶\u3000"]).tolist()
    assert hash_texts([]).dtype == np.uint64
    assert hash_texts(["tea"]).tolist() == [0xB9FBB2C10201D480]


def test_the_order_of_sides_counts() -> None:
    one, other = hash_texts(["a"]), hash_texts(["b"])
    assert hash_pairs(one, other) != hash_pairs(other, one)


@given(texts)
def test_repeated(found: list[str]) -> None:
    rows, firsts = repeated(hash_texts(found))
    expected = [(i, found.index(text)) for i, text in enumerate(found) if text in found[:i]]
    assert list(zip(rows.tolist(), firsts.tolist(), strict=True)) == expected


@given(texts, texts)
def test_shared(found: list[str], others: list[str]) -> None:
    rows, firsts = shared(hash_texts(found), hash_texts(others))
    expected = [(i, others.index(text)) for i, text in enumerate(found) if text in others]
    assert list(zip(rows.tolist(), firsts.tolist(), strict=True)) == expected


@given(st.lists(st.tuples(st.text(max_size=3), st.text(max_size=3)), max_size=20))
def test_pairs_are_told_apart(pairs: list[tuple[str, str]]) -> None:
    sources, targets = (hash_texts(pair[side] for pair in pairs) for side in (0, 1))
    stripped = [(source.strip(), target.strip()) for source, target in pairs]
    assert len(set(hash_pairs(sources, targets).tolist())) == len(set(stripped))


def test_split_mix_64() -> None:
    """The first numbers from key 1234567, as published with the algorithm's test vectors."""
    drawn = [int(mix(np.array([1234567], dtype=np.uint64), n)[0]) for n in range(3)]
    assert drawn == [6457827717110365317, 3203168211198807973, 9817491932198370423]
