"""The raw pairs in the cache: what is kept of them, and what is refused."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.data.given import Given, corpus, read

from zhen.data.corpus import _hashed
from zhen.data.source import Chunk, Fault
from zhen.errors import UserError

PAIRS = [("我喜欢茶。", "I like tea."), (" 花", "flowers "), ("猫\u2028狗", "cats\x85and\tdogs\n")]


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_pairs_come_back_as_they_were(tmp_path: Path, size: int) -> None:
    made = corpus(PAIRS, tmp_path, size=size)
    assert len(made) == 3
    for start in range(4):
        for stop in range(start, 4):
            assert [*zip(*made.texts(start, stop), strict=True)] == PAIRS[start:stop]
    assert (made.sources, made.targets) == tuple(map(list, zip(*PAIRS, strict=True)))
    for rows in ([0, 1, 2], [1], [0, 2], []):
        found = [
            (int(row), *pair)
            for numbers, *texts in made.chunks(np.array(rows, np.int64))
            for row, *pair in zip(numbers, *texts, strict=True)
        ]
        assert found == [(row, *PAIRS[row]) for row in rows]
    with pytest.raises(IndexError):
        made.texts(0, 4)


def test_a_pair_knows_its_file_and_line(tmp_path: Path) -> None:
    made = corpus(PAIRS, tmp_path, size=2)
    assert [made.where(i) for i in range(3)] == ["given.tsv:1", "given.tsv:2", "given.tsv:3"]


def test_it_is_read_once_and_the_name_of_the_file_is_never_an_old_one(tmp_path: Path) -> None:
    source = Given(PAIRS)
    first, second = read(source, tmp_path), read(source, tmp_path)
    assert source.readings == 1
    assert second.texts(0, 3) == first.texts(0, 3) and second.fingerprint == first.fingerprint
    moved = Given(PAIRS, name="moved.tsv")
    assert read(moved, tmp_path).where(0) == "moved.tsv:1"


def test_a_fault_is_refused_and_nothing_is_kept(tmp_path: Path) -> None:
    fault = Fault("columns", "given.tsv", 2, "expected 2 sentences, but found 1")
    with pytest.raises(UserError) as refused:
        read(Given(PAIRS, faults=[fault]), tmp_path)
    assert str(refused.value) == "data.train: given.tsv:2: expected 2 sentences, but found 1"
    with pytest.raises(UserError) as refused:
        read(Given([]), tmp_path)
    assert str(refused.value) == "data.train: given.tsv has no pairs"
    assert [path.name for path in tmp_path.rglob("*") if not path.name.endswith(".lock")] == [
        "corpora"
    ]


def test_what_changes_while_it_is_read_is_refused(tmp_path: Path) -> None:
    class Growing(Given):
        def chunks(self) -> Iterator[Chunk]:
            yield from super().chunks()
            self.pairs.append(("茶", "tea"))

    with pytest.raises(UserError) as refused:
        read(Growing(PAIRS), tmp_path)
    assert str(refused.value) == "data.train: given.tsv changed while it was read; start again"


def test_what_a_reader_put_right_is_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    marks = [Fault("byte-order mark", "given.tsv", 1, "a mark", refused=False)] * 2
    with caplog.at_level("INFO", "zhen"):
        assert len(read(Given(PAIRS, faults=marks), tmp_path)) == 3
    assert caplog.messages == [
        "data.train: put right on the way: byte-order mark 2; `make data-check` lists them"
    ]


def test_empty_sides_are_known(tmp_path: Path) -> None:
    made = corpus([("a", "b"), ("", "b"), ("a", " \u3000\t"), ("c", "d")], tmp_path, size=2)
    assert made.empty.tolist() == [1, 2]
    assert corpus(PAIRS, tmp_path).empty.tolist() == []


def test_the_fingerprint_is_that_of_the_plain_file(tmp_path: Path) -> None:
    made = corpus(PAIRS[:2], tmp_path)
    content = "".join(f"{source}\t{target}\n" for source, target in PAIRS[:2]).encode()
    assert made.fingerprint == hashlib.sha256(content).hexdigest()
    assert corpus(PAIRS[:2], tmp_path, size=1).fingerprint == made.fingerprint


SIDE = st.text(st.sampled_from("a\t\n\\茶"), max_size=3)
SOME = st.lists(st.tuples(SIDE, SIDE), max_size=3)


@given(SOME, SOME)
@example([("a\tb", "c")], [("a", "b\tc")])
@example([("a", "b\na\tb")], [("a", "b"), ("a", "b")])
@settings(max_examples=500)
def test_other_pairs_have_another_fingerprint(
    one: list[tuple[str, str]], other: list[tuple[str, str]]
) -> None:
    def hashed(pairs: list[tuple[str, str]]) -> bytes:
        return _hashed([source for source, _ in pairs], [target for _, target in pairs])

    assert (hashed(one) == hashed(other)) == (one == other)
    assert hashed(one) + hashed(other) == hashed(one + other)  # chunks make no difference


def test_a_part_can_be_read_again(tmp_path: Path) -> None:
    made = corpus(PAIRS, tmp_path, size=2)
    (part,) = made.again(np.array([0, 2]))
    assert [*zip(part.sources, part.targets, strict=True)] == [PAIRS[0], PAIRS[2]]
    assert (part.lines, part.file, part.faults) == ([1, 3], "given.tsv", [])
