"""Each rule drops what it says and is counted; kept and dropped add up to what was read."""

import re
import tracemalloc
from collections import Counter
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.data.given import corpus

from zhen.data.cleaning import CleanOptions, Dropped, clean, dropped, rules

GOOD = [("我喜欢茶。", "I like tea."), ("他们说汉语。", "They speak Chinese.")]
# A pair that a rule drops and a value of the rule.
BAD: dict[str, tuple[Any, tuple[str, str]]] = {
    "empty": (True, ("", "nothing")),
    "controls": (True, ("茶\x00", "tea")),
    "separators": (True, ("茶\u2028", "tea")),
    "identical": (True, ("OK", "OK")),
    "script": (0.5, ("English", "English too")),
    "mixed": (True, ("他們说", "they say")),
    "writing": ("simplified", ("他們說", "they say")),
    "min_words": (2, ("茶", "a tea")),
    "max_words": (9, ("好" * 9, "a b c d e f g h i j")),
    "max_ratio": (3, ("好好好好好好好", "yes yes")),
    "duplicates": (True, GOOD[0]),
}
USUAL = CleanOptions(**{name: value for name, (value, _) in BAD.items()})


def test_every_rule_is_tried_here() -> None:
    assert list(BAD) == [field.name for field in fields(CleanOptions)]


def test_nothing_is_dropped_that_was_not_asked_for(tmp_path: Path) -> None:
    pairs = [*GOOD, *(pair for _, pair in BAD.values())]
    found = clean(corpus(pairs, tmp_path), CleanOptions())
    assert found.rows.tolist() == list(range(len(pairs))) and found.counts == {}
    assert rules(CleanOptions()) == {}


@pytest.mark.parametrize("name", BAD)
def test_a_rule_alone_drops_its_pair(tmp_path: Path, name: str) -> None:
    value, bad = BAD[name]
    made = corpus([*GOOD, bad, *GOOD[:0]], tmp_path)
    options = CleanOptions(**{name: value})
    found = clean(made, options)
    assert found.counts == {name: 1} and found.rows.tolist() == [0, 1]
    assert list(dropped(made, options, found)) == [Dropped("given.tsv:3", name, *bad)]


def test_a_pair_counts_for_the_first_rule_that_it_breaks(tmp_path: Path) -> None:
    pairs = [*GOOD, *(pair for _, pair in BAD.values()), ("", ""), ("OK\x00", "OK\x00")]
    made = corpus(pairs, tmp_path, size=4)
    found = clean(made, USUAL)
    assert list(found.counts) == list(BAD)
    assert found.counts == dict.fromkeys(BAD, 1) | {"empty": 2, "controls": 2}
    assert found.rows.tolist() == [0, 1]
    listed = [(each.where, each.rule) for each in dropped(made, USUAL, found)]
    expected = [*BAD, "empty", "controls"]
    assert listed == [(f"given.tsv:{line}", rule) for line, rule in enumerate(expected, start=3)]


def test_the_first_of_equal_pairs_is_kept(tmp_path: Path) -> None:
    pairs = [("a", "b"), ("b", "a"), ("a ", "\tb"), ("a", "c"), ("a", "b")]
    found = clean(corpus(pairs, tmp_path, size=2), CleanOptions(duplicates=True))
    assert found.rows.tolist() == [0, 1, 3] and found.counts == {"duplicates": 2}


def test_a_pair_that_another_rule_drops_is_nobodys_first(tmp_path: Path) -> None:
    pairs = [("茶\x00", "tea"), ("茶\x00", "tea"), ("茶", "tea"), ("茶", "tea")]
    found = clean(corpus(pairs, tmp_path), CleanOptions(controls=True, duplicates=True))
    assert found.rows.tolist() == [2] and found.counts == {"controls": 2, "duplicates": 1}


sides = st.text(st.sampled_from("我们們说說茶ab \x00\u2028"), max_size=6)
limits = st.none() | st.integers(1, 4)
options = st.builds(
    CleanOptions,
    **{name: st.booleans() for name, (value, _) in BAD.items() if value is True},
    script=st.none() | st.sampled_from([0.1, 0.5, 1.0]),
    writing=st.sampled_from([None, "simplified", "traditional"]),
    min_words=st.none() | st.integers(1, 2),
    max_words=st.none() | st.integers(2, 4),
    max_ratio=st.none() | st.floats(1, 3),
)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    pairs=st.lists(st.tuples(sides, sides), min_size=1, max_size=12),
    chosen=options,
    size=st.integers(1, 5),
)
def test_kept_and_dropped_add_up(
    tmp_path: Path, pairs: list[tuple[str, str]], chosen: CleanOptions, size: int
) -> None:
    made = corpus(pairs, tmp_path, size=size)
    found = clean(made, chosen)
    assert len(found.rows) + sum(found.counts.values()) == len(pairs)
    listed = list(dropped(made, chosen, found))
    assert Counter(each.rule for each in listed) == +Counter(found.counts)
    # Together they are all that was read, in file order.
    numbers = {int(each.where.rpartition(":")[2]): each for each in listed}
    for row, pair in enumerate(pairs):
        assert (row in found.rows) == (row + 1 not in numbers)
        assert row in found.rows or (numbers[row + 1].source, numbers[row + 1].target) == pair
    # What is kept passes once more, whole.
    if len(found.rows):
        again = clean(corpus([pairs[row] for row in found.rows], tmp_path), chosen)
        assert again.rows.tolist() == list(range(len(found.rows)))
        assert not any(again.counts.values())


def test_memory_is_a_few_bytes_a_pair(tmp_path: Path) -> None:
    most = []
    for count in (20_000, 60_000):
        made = corpus([(f"茶{i}", f"tea {i} " * 20) for i in range(count)], tmp_path)
        tracemalloc.start()
        clean(made, CleanOptions(empty=True, duplicates=True))
        most.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert most[1] - most[0] < 60 * 40_000  # and not 200 bytes of text


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"script": 0.0}, "`script` must be above 0 and at most 1, but is 0.0"),
        ({"script": 1.5}, "`script` must be above 0 and at most 1, but is 1.5"),
        ({"script": float("nan")}, "`script` must be above 0 and at most 1, but is nan"),
        ({"min_words": 0}, "`min_words` must be at least 1, but is 0"),
        ({"max_words": 0}, "`max_words` must be at least 1, but is 0"),
        ({"max_ratio": 0.5}, "`max_ratio` must be at least 1, but is 0.5"),
        ({"max_ratio": float("nan")}, "`max_ratio` must be at least 1, but is nan"),
        (
            {"min_words": 5, "max_words": 4},
            "`max_words` must be at least `min_words` (5), but is 4",
        ),
    ],
)
def test_a_limit_that_makes_no_sense_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        CleanOptions(**wrong)


def test_rows_are_ascending_integers(tmp_path: Path) -> None:
    found = clean(corpus(GOOD, tmp_path), USUAL)
    assert found.rows.dtype == np.int64 and (np.diff(found.rows) > 0).all()
