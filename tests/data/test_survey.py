"""What is reported of splits, with the place of each finding, however they are cut into chunks."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.data.given import Given

from zhen.data.cleaning import CleanOptions
from zhen.data.source import Chunk, Fault
from zhen.data.survey import Survey, survey_all
from zhen.errors import UserError

QUIET = CleanOptions()
Pairs = list[tuple[str, str]]


def survey(odd: CleanOptions = QUIET, **splits: Pairs | Given) -> list[str]:
    """What is reported of these splits, one line each."""
    found: list[str] = []
    survey_all(
        sources(**splits),
        ("zh", "en"),
        odd,
        lambda key, fault: found.append(f"{key} {said(fault)}"),
    )
    return found


def said(fault: Fault) -> str:
    return f"{fault.kind}{'!' if fault.refused else ''} {fault}"


def sources(**splits: Pairs | Given) -> dict[str, Given]:
    return {
        key: split if isinstance(split, Given) else Given(split, name=f"{key}.tsv", size=2)
        for key, split in splits.items()
    }


def test_checks_name_file_and_line() -> None:
    train = [("茶", "tea"), ("花", "flower"), ("鸟\x00", "OK"), ("人", "man"), ("OK", "OK")]
    assert survey(CleanOptions(controls=True, identical=True), train=train) == [
        "train controls train.tsv:3: the zh side has U+0000, which shows nothing, at character 2",
        "train identical train.tsv:5: both sides are the same text",
    ]


def test_a_pair_may_be_odd_in_several_ways() -> None:
    odd = CleanOptions(script=0.5, identical=True, max_words=3)
    assert [line.split()[1] for line in survey(odd, train=[("a b c d", "a b c d")])] == [
        "identical",
        "script",
        "max_words",
    ]


@pytest.mark.parametrize(("keys", "refused"), [([], "empty!"), (["train"], "empty")])
def test_an_empty_side_is_refused_unless_it_is_dropped(keys: list[str], refused: str) -> None:
    found: list[str] = []
    survey_all(
        sources(train=[("茶", " ")], val=[("", "tea")]),
        ("zh", "en"),
        CleanOptions(min_words=1, script=1.0),  # says no more of what is empty
        lambda key, fault: found.append(f"{key} {said(fault)}"),
        may_be_empty=keys,
    )
    assert found == [
        f"train {refused} train.tsv:1: the en side is empty",
        "val empty! val.tsv:1: the zh side is empty",
    ]


def test_what_the_reader_says_is_passed_on() -> None:
    faults = [
        Fault("columns", "a.tsv", 7, "expected 2 sentences"),
        Fault("crlf", "a.tsv", None, "lines end with CR LF", refused=False),
    ]
    assert survey(train=Given([], faults=faults)) == [
        "train columns! a.tsv:7: expected 2 sentences",
        "train crlf a.tsv: lines end with CR LF",
    ]


def test_duplicates_name_the_first() -> None:
    train = [("茶", "tea"), ("花", "flower"), (" 茶", "tea"), ("茶", "teas"), ("茶", "tea")]
    assert survey(CleanOptions(duplicates=True), train=train, val=[("花", "flowers")] * 2) == [
        "train duplicates train.tsv:3: the same pair as train.tsv:1",
        "train duplicates train.tsv:5: the same pair as train.tsv:1",
        "val duplicates val.tsv:2: the same pair as val.tsv:1",
        "val shared_sides val.tsv:1: the zh side is also in train, train.tsv:2",
        "val shared_sides val.tsv:2: the zh side is also in train, train.tsv:2",
    ]


def test_a_split_is_compared_with_all_before_it_on_either_side() -> None:
    found = survey(
        train=[("茶", "tea"), ("水", "water"), ("花", "flower"), ("水", "waters")],
        val=[("水", "water"), ("新", "new")],
        test=[("茶", "flower"), ("绿", "tea"), ("新", "new"), ("独", "alone"), ("水", "waters")],
    )
    assert found == [
        "val shared_pairs val.tsv:1: the pair is also in train, train.tsv:2",
        "test shared_pairs test.tsv:5: the pair is also in train, train.tsv:4",
        "test shared_sides test.tsv:1: the zh side is also in train, train.tsv:1",
        "test shared_sides test.tsv:1: the en side is also in train, train.tsv:3",
        "test shared_sides test.tsv:2: the en side is also in train, train.tsv:1",
        "test shared_pairs test.tsv:3: the pair is also in val, val.tsv:2",
        "test shared_sides test.tsv:5: the zh side is also in val, val.tsv:1",
    ]


def test_the_rarer_way_of_writing_is_reported_in_every_split() -> None:
    simplified, traditional, neither = ("他们说", "a"), ("他們說", "b"), ("好", "c")
    train = [simplified, neither, traditional, simplified, ("他們说", "mixed")]
    assert survey(train=train, val=[("說", "e"), ("他们", "d")]) == [
        f"{split} writing {split}.tsv:{line}: the zh side is traditional: of the corpus 2 are, 3"
        " are simplified"
        for split, line in (("train", 3), ("val", 1))
    ]


def test_one_way_of_writing_alone_is_not_odd() -> None:
    assert survey(train=[("他們說", "a"), ("好", "b")]) == []
    assert survey(train=[("他们说", "a"), ("好", "b")]) == []


class Broken(Given):
    """A source that fails on the way."""

    def chunks(self) -> Iterator[Chunk]:
        yield next(super().chunks())
        raise UserError("train: broken.gz: ends too early")


def test_a_file_that_ends_too_early_is_surveyed_as_far_as_it_goes() -> None:
    (found,) = survey_all(
        {"train": Broken([("茶", "tea")])}, ("zh", "en"), QUIET, lambda key, fault: None
    )
    assert found.pairs == 1


def read(pairs: Pairs, size: int, seed: int = 0) -> Survey:
    made = Survey(Given(pairs, size=size), "train", ("zh", "en"), np.random.default_rng(seed))
    made.read({}, (), lambda key, fault: None)
    return made


@given(
    st.lists(st.tuples(st.text(max_size=5), st.text(max_size=5)), max_size=30), st.integers(1, 31)
)
def test_chunks_make_no_difference(pairs: Pairs, size: int) -> None:
    cut, whole = read(pairs, size), read(pairs, 31)
    assert cut.pairs == len(pairs)
    assert cut.sample == whole.sample
    assert [cut.where(row) for row in range(len(pairs))] == [
        ("given.tsv", line) for line in range(1, len(pairs) + 1)
    ]
    for i, (one, other) in enumerate(zip(cut.sides, whole.sides, strict=True)):
        assert (one.lengths, one.characters) == (other.lengths, other.characters)
        assert (one.hashes() == other.hashes()).all()
        assert one.characters.total() == sum(len(pair[i]) for pair in pairs)


def test_two_kinds_of_chinese_are_compared_each_with_its_own() -> None:
    found: list[str] = []
    train = [("他们说", "他們說"), ("你们", "你們"), ("我们", "我们")]
    survey_all(
        sources(train=train),
        ("zh-CN", "zh-TW"),
        QUIET,
        lambda key, fault: found.append(f"{key} {said(fault)}"),
    )
    assert found == [
        "train writing train.tsv:3: the zh-TW side is simplified: of the corpus 1 are, 2 are"
        " traditional"
    ]


def test_pairs_to_show_follow_from_the_seed() -> None:
    pairs = [(f"茶{i}", f"tea {i}") for i in range(1000)]
    one = read(pairs, 64).sample
    assert len(one) == 10 and one == read(pairs, 64).sample
    assert all((source, target) == pairs[row] for row, source, target in one)
    others = {row for seed in range(100) for row, _, _ in read(pairs, 1000, seed).sample}
    assert 550 < len(others) < 720  # 1000 (1 - 0.99 ** 100) = 634 different ones are expected


def test_places_in_several_files() -> None:
    class Two(Given):
        def chunks(self) -> Iterator[Chunk]:
            yield Chunk("a.tsv", [1, 3], ["茶", "花"], ["tea", "flower"])
            yield Chunk("a.tsv", faults=[])
            yield Chunk("b.tsv", [2_000_000_000], ["茶"], ["tea"])

    found: list[Any] = []
    survey_all(
        {"train": Two([])},
        ("zh", "en"),
        CleanOptions(duplicates=True),
        lambda key, fault: found.append(str(fault)),
    )
    assert found == ["b.tsv:2000000000: the same pair as a.tsv:1"]
