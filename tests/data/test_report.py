"""The figures of the report, and the list of all findings."""

import io
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.data.given import Given

from zhen.data import report
from zhen.data.cleaning import CleanOptions
from zhen.data.report import Cut, Histogram, Listing, Section, Table, bins, quantile, shown
from zhen.data.source import Fault
from zhen.data.survey import Survey, survey_all

lengths = st.dictionaries(st.integers(0, 500), st.integers(1, 1000), min_size=1)


def table(section: Section) -> list[list[str]]:
    """The rows of a section's only table."""
    (found,) = [block for block in section.blocks if isinstance(block, Table)]
    assert {len(row) for row in found.rows} <= {len(found.head)} == {len(found.align)}
    return [list(row) for row in found.rows]


def surveyed(listing: Listing, **splits: list[tuple[str, str]]) -> list[Survey]:
    sources = {key: Given(pairs, name=f"{key}.tsv") for key, pairs in splits.items()}
    odd = CleanOptions(identical=True, controls=True)
    return survey_all(sources, ("zh", "en"), odd, listing)


def test_the_listing_has_every_finding_and_the_report_the_first_few() -> None:
    file = io.StringIO()
    listing = Listing(file)
    train = [("OK", "OK")] * 7 + [("茶\x1b", "tea"), ("", "tea")]
    surveys = surveyed(listing, train=train, val=[("茶", "tea")])
    head, *lines = file.getvalue().splitlines()
    assert head.split("\t") == ["split", "file", "line", "kind", "refused", "finding"]
    assert len(lines) == 7 + 1 + 1 + 1  # and the tea of val
    assert lines[0].split("\t") == [
        *("train", "train.tsv", "1", "identical", "no", "both sides are the same text"),
    ]
    assert lines[8].split("\t")[3:5] == ["empty", "yes"]
    assert table(report.splits(surveys, listing)) == [
        ["train", "9", "1", "8", "train.tsv"],
        ["val", "1", "0", "1", "val.tsv"],
    ]
    assert str(listing.first_refused["train"]) == "train.tsv:9: the zh side is empty"
    found = table(report.findings(surveys, listing))
    same = "both sides are the same text"
    assert found == [
        ["train", "identical", "7", f"train.tsv:1: {same}"],
        *(["", "", "", f"train.tsv:{line}: {same}"] for line in range(2, 6)),
        ["", "", "", "... and 2 more"],
        [
            *("train", "controls", "1"),
            "train.tsv:8: the zh side has U+001B, which shows nothing, at character 2",
        ],
        ["train", "empty (refused)", "1", "train.tsv:9: the zh side is empty"],
        ["val", "shared_sides", "1", "val.tsv:1: the en side is also in train, train.tsv:8"],
    ]


def test_nothing_odd() -> None:
    listing = Listing(io.StringIO())
    surveys = surveyed(listing, train=[("茶", "tea")])
    assert report.findings(surveys, listing) == Section("Found", ["Nothing odd."])


def test_a_finding_stays_on_its_line_of_the_listing() -> None:
    file = io.StringIO()
    Listing(file)("train", Fault("x", "a\tb.tsv", None, "odd\n\x1b[31m\u2028text"))
    (line,) = file.getvalue().splitlines()[1:]
    assert line == "train\ta\\tb.tsv\t\tx\tyes\todd\\n\\x1b[31m\\u2028text"


def test_cleaning_adds_up_and_says_when_nothing_is_on() -> None:
    section = report.cleaning(1000, {"empty": 1, "duplicates": 20}, 9, 970)
    assert table(section) == [
        ["read", "1,000"],
        ["- empty", "1"],
        ["- duplicates", "20"],
        ["- longer than data.max_length", "9"],
        ["kept", "970"],
    ]
    unasked = report.cleaning(2, {}, None, 2)
    assert table(unasked) == [["read", "2"], ["kept", "2"]]
    assert "data/clean=usual" in str(unasked.blocks[1])


def test_changes_are_counted_by_split_and_rule() -> None:
    counts = {"train": {"space around": 1000, "nfc": 0}, "val": {"space around": 0, "nfc": 2}}
    section = report.changes(counts)
    assert table(section) == [["train", "space around", "1,000"], ["val", "nfc", "2"]]
    assert report.changes({"train": {"nfc": 0}}).blocks[1] == "No text."


def test_lengths_and_their_histograms() -> None:
    pairs = [("茶" * n, "tea " * (n + 1)) for n in range(1, 5)]
    surveys = surveyed(Listing(io.StringIO()), train=pairs, val=pairs[:1])
    section = report.lengths(surveys)
    assert table(section) == [
        ["train", "zh", "2", "4", "4", "4"],
        ["train", "en", "3", "5", "5", "5"],
        ["val", "zh", "1", "1", "1", "1"],
        ["val", "en", "2", "2", "2", "2"],
    ]
    assert section.blocks[2] == Histogram(
        "train, zh", [("0", 0), ("1", 1), ("2", 1), ("3", 1), ("4", 1)]
    )


@given(lengths)
def test_quantiles_are_numpys(counts: dict[int, int]) -> None:
    values = np.repeat(list(counts), list(counts.values()))
    for share in (0.5, 0.95, 1.0):
        expected = np.quantile(values, share, method="inverted_cdf")
        assert quantile(counts, share) == expected


@given(lengths)
def test_bars_hold_all_values_and_cover_all_lengths(counts: dict[int, int]) -> None:
    bars = bins(counts)
    assert sum(height for _, height in bars) == sum(counts.values())
    assert len(bars) <= 22
    ends = [tuple(map(int, label.split("-"))) for label, _ in bars]
    assert ends[0][0] == 0 and ends[-1][-1] == max(counts)
    assert all(after[0] == before[-1] + 1 for before, after in pairwise(ends))
    for (first, *last), (_, height) in zip(ends, bars, strict=True):
        within = range(first, (last or [first])[0] + 1)
        assert height == sum(counts.get(value, 0) for value in within)


def test_characters_that_train_lacks() -> None:
    surveys = surveyed(
        Listing(io.StringIO()),
        train=[("茶茶水", "tea")],
        val=[("茶花花树", "tea t"), ("花", "ü")],
    )
    section = report.characters(surveys)
    assert section.blocks[0] == "train has 5 different characters, 4 of them once."
    assert table(section) == [
        ["val", "zh", "5", "4", "80.000 %", "花 树"],
        ["val", "en", "6", "2", "33.333 %", r"  ü"],
    ]
    assert len(report.characters(surveys[:1]).blocks) == 1


def test_vocabulary() -> None:
    section = report.vocabulary([Cut("val", "zh", 4, 10, 1), Cut("val", "en", 0, 0, 0)])
    assert table(section) == [
        ["val", "zh", "4", "2.5", "1"],
        ["val", "en", "0", "0.0", "0"],
    ]


def test_random_pairs_in_file_order() -> None:
    surveys = surveyed(Listing(io.StringIO()), train=[(f"茶{i}", "tea\x07") for i in range(12)])
    rows = table(report.sample(surveys[0]))
    lines = [int(where.removeprefix("train.tsv:")) for where, _, _ in rows]
    assert len(lines) == 10 and lines == sorted(lines)
    assert rows[0][1:] == [f"茶{lines[0] - 1}", "tea\\x07"]


def test_verdict() -> None:
    assert report.verdict([]).blocks == ["Training would accept this corpus."]
    (unsure,) = report.verdict([], encoded=False).blocks
    assert "as far as reading and cleaning can tell" in str(unsure)
    assert report.verdict(["a", "b\x1b"]).blocks == [
        "Training would refuse this corpus:",
        "- a",
        "- b\\x1b",
    ]


@given(st.text())
def test_what_is_shown_can_be_printed(text: str) -> None:
    assert shown(text).isprintable()
    assert shown("茶 é 👍") == "茶 é 👍"
