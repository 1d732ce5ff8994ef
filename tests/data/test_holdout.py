"""Validation and test taken from train: nothing leaks, and nothing but the sentences decides."""

import logging
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.data.given import Given, read

from zhen.data.holdout import Holdout, components, deal, groups, hashed
from zhen.errors import UserError

Pairs = list[tuple[str, str]]
SENTENCE = st.integers(0, 30).map(str)
CORPUS = st.lists(st.tuples(SENTENCE.map("源".__add__), SENTENCE), min_size=3, max_size=40)


def split(pairs: Sequence[tuple[str, str]], **sizes: int | float) -> dict[str, Pairs]:
    """The pairs of each part."""
    with TemporaryDirectory() as folder:
        source = Given(pairs, size=7)
        holdout = Holdout(source, lambda: read(source, Path(folder)), sizes)
        return {
            name: [
                pair
                for chunk in holdout.part(name).chunks()
                for pair in zip(chunk.sources, chunk.targets, strict=True)
            ]
            for name in ("train", *sizes)
        }


def unrelated(count: int) -> Pairs:
    return [(f"源{i}", f"target {i}") for i in range(count)]


@given(CORPUS, st.integers(1, 10), st.integers(1, 10))
@settings(max_examples=100, deadline=None)
def test_no_sentence_is_in_two_splits_and_no_pair_is_lost(
    pairs: Pairs, val: int, test: int
) -> None:
    try:
        parts = split(pairs, val=val, test=test)
    except UserError as error:
        assert "data.val_size" in str(error) or "data.test_size" in str(error)
        return
    assert sorted(pair for part in parts.values() for pair in part) == sorted(pairs)
    assert 1 <= len(parts["val"]) <= val and 1 <= len(parts["test"]) <= test and parts["train"]
    for side in (0, 1):
        seen: set[str] = set()
        for part in parts.values():
            sentences = {pair[side] for pair in part}
            assert not seen & sentences
            seen |= sentences
    for part in parts.values():  # in file order
        positions = iter(pairs)
        assert all(pair in positions for pair in part)


@given(CORPUS, st.randoms(use_true_random=False))
@settings(max_examples=50, deadline=None)
def test_the_order_of_the_lines_changes_nothing(pairs: Pairs, randoms: object) -> None:
    shuffled = list(pairs)
    randoms.shuffle(shuffled)  # type: ignore[attr-defined]
    try:
        one = split(pairs, val=3)
    except UserError:
        with pytest.raises(UserError):
            split(shuffled, val=3)
        return
    other = split(shuffled, val=3)
    assert {name: sorted(part) for name, part in one.items()} == {
        name: sorted(part) for name, part in other.items()
    }


def test_unrelated_pairs_give_exactly_what_was_asked() -> None:
    pairs = unrelated(1000)
    parts = split(pairs, val=100, test=0.25)
    assert {name: len(part) for name, part in parts.items()} == {
        "train": 650, "val": 100, "test": 250,
    }  # fmt: skip
    # From everywhere, and the same whatever else is asked for.
    places = [pairs.index(pair) for pair in parts["val"]]
    assert min(places) < 100 and max(places) > 900
    assert split(pairs, val=100)["val"] == parts["val"]


def test_large_groups_are_not_drawn_more_often() -> None:
    """A group's number must not be the smallest of its sentences': the large would come first."""
    chains = [(f"源{i}", f"{i} {j}") for i in range(300) for j in range(1 + 9 * (i % 2))]
    taken = {source for source, _ in split(chains, val=len(chains) // 5)["val"]}
    large = sum(int(source[1:]) % 2 for source in taken)
    assert 0.4 < large / len(taken) < 0.6


def test_spaces_around_a_sentence_make_no_other() -> None:
    pairs = [*unrelated(50), *((f" {one}", f"{other}\u3000") for one, other in unrelated(50))]
    parts = split(pairs, val=20)
    val = {source.strip() for source, _ in parts["val"]}
    assert len(parts["val"]) == 20 and len(val) == 10
    assert not val & {source.strip() for source, _ in parts["train"]}


def test_a_pair_with_an_empty_side_stays_in_train() -> None:
    pairs = [*unrelated(20), ("", "target 3"), ("源4", ""), ("", "")]
    parts = split(pairs, val=19)
    assert len(parts["val"]) == 19 and len(parts["train"]) == 4
    assert {("", "target 3"), ("源4", ""), ("", "")} <= set(parts["train"])


@pytest.mark.parametrize(
    ("pairs", "sizes", "message"),
    [
        (
            unrelated(10),
            {"val": 5, "test": 5},
            "data.val_size and data.test_size: 10 of 10 pairs leave none to train on; take fewer,"
            " or give files of their own",
        ),
        (
            unrelated(10),
            {"test": 11},
            "data.test_size: 11 of 10 pairs leave none to train on; take fewer,"
            " or give files of their own",
        ),
        (
            [("源", str(i)) for i in range(10)],
            {"val": 5},
            "data.val_size: pairs that share a sentence stay together, and no group that is left"
            " is as small as 5 pairs; take more, or give data.val",
        ),
    ],
    ids=["all", "more than all", "one group"],
)
def test_what_cannot_be_taken_is_refused(pairs: Pairs, sizes: dict[str, int], message: str) -> None:
    with pytest.raises(UserError) as refused:
        split(pairs, **sizes)
    assert str(refused.value) == message


def test_what_was_taken_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "zhen"):
        split([("源泉"[i % 2], str(i)) for i in range(10)], val=7)  # two groups of five
    assert caplog.messages == ["data.val: 5 of 10 pairs of given.tsv held out (asked for 7)"]


def test_where_a_pair_stands_is_kept(tmp_path: Path) -> None:
    source = Given(unrelated(30), size=7)
    whole = read(source, tmp_path)
    part = Holdout(source, lambda: whole, {"val": 10}).part("val")
    val = read(part, tmp_path)  # type: ignore[arg-type]
    assert part.name == "given.tsv (val)"
    for row, text in enumerate(val.sources):
        assert val.where(row) == f"given.tsv:{int(text[1:]) + 1}"
    keys = {
        Holdout(source, lambda: whole, sizes).part(name).fingerprint()
        for sizes, name in (
            ({"val": 10}, "val"), ({"val": 10}, "train"), ({"val": 11}, "val"),
            ({"val": 0.1}, "val"), ({"test": 10}, "test"), ({"val": 10, "test": 1}, "val"),
        )
    }  # fmt: skip
    assert len(keys) == 6


def test_what_changes_before_it_is_dealt_is_refused(tmp_path: Path) -> None:
    source = Given(unrelated(30))
    part = Holdout(source, lambda: read(source, tmp_path), {"val": 10}).part("val")
    assert part.fingerprint()
    source.pairs += unrelated(31)[-1:]
    with pytest.raises(UserError, match=r"^data.train: given.tsv changed while it was read; start"):
        list(part.chunks())


EDGES = st.lists(st.tuples(st.integers(0, 19), st.integers(0, 19)), max_size=30)


@given(EDGES)
@settings(max_examples=300)
def test_components(edges: list[tuple[int, int]]) -> None:
    label = list(range(20))  # the slow way
    for _ in label:
        for one, other in edges:
            label[one] = label[other] = min(label[one], label[other])
    one, other = np.array(edges, np.int64).reshape(-1, 2).T
    assert components(one, other, 20).tolist() == label


def test_memory_is_a_few_numbers_a_pair(tmp_path: Path) -> None:
    whole = read(Given(unrelated(100_000), size=1000), tmp_path)
    rows = np.arange(len(whole))
    tracemalloc.start()
    try:
        groups(hashed(whole, rows))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak / len(whole) < 100  # of which 20 are a chunk's text


def test_a_long_chain_is_one_component() -> None:
    order = np.random.default_rng(0).permutation(100_000)
    assert not components(order[:-1], order[1:], len(order)).any()


@given(st.lists(st.integers(0, 8), min_size=1, max_size=40), st.integers(0, 20))
def test_dealing_takes_groups_in_order_while_they_fit(group: list[int], room: int) -> None:
    left, wanted = room, set()
    for number in sorted(set(group)):  # the slow way
        if group.count(number) <= left:
            left -= group.count(number)
            wanted.add(number)
    taken = deal(np.array(group), {"val": room})["val"]
    assert taken.tolist() == [i for i, number in enumerate(group) if number in wanted]
