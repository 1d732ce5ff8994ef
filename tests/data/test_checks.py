"""What each check says of a pair, word for word, and what it lets pass."""

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zhen.data import checks
from zhen.data.checks import Sides, length


def pair(source: str, target: str, languages: str = "zh en") -> Sides:
    one, other = languages.split()
    return (one, source), (other, target)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        (" \u3000\t", 0),
        ("我喜欢茶", 4),
        ("我喜欢茶。", 5),  # the full stop is a run of its own
        ("I like tea.", 3),
        ("  I  like\u00a0tea. ", 3),
        ("我用Python 3写", 5),
        ("ラーメン", 4),  # ー is no kana to Unicode, but a run of its own
        ("서울에서 만나요", 2),
        ("https://example.org/a?b=c", 1),
        ("𠮷野家", 3),
    ],
)
def test_the_measure_of_length(text: str, expected: int) -> None:
    assert length(text) == expected


@given(st.lists(st.sampled_from(["我", "茶", "word", "3.14,"]), max_size=8))
def test_units_apart_add_up(units: list[str]) -> None:
    assert length(" ".join(units)) == len(units)


@pytest.mark.parametrize(
    ("sides", "message"),
    [
        (pair("", "tea"), "the zh side is empty"),
        (pair("茶", " \u3000\u00a0"), "the en side is empty"),
        (pair("", ""), "the zh side is empty"),
        (pair("茶", "."), None),
    ],
)
def test_empty(sides: Sides, message: str | None) -> None:
    assert checks.empty(sides) == message


@pytest.mark.parametrize(
    ("character", "named"),
    [
        ("\x00", "U+0000"),
        ("\t", "U+0009"),
        ("\x1b", "U+001B"),
        ("\x7f", "U+007F"),
        ("\u00ad", "U+00AD (SOFT HYPHEN)"),
        ("\u200b", "U+200B (ZERO WIDTH SPACE)"),
        ("\u202e", "U+202E (RIGHT-TO-LEFT OVERRIDE)"),
        ("\ue000", "U+E000"),
        ("\ufeff", "U+FEFF (ZERO WIDTH NO-BREAK SPACE)"),
        ("\ufffd", "U+FFFD (REPLACEMENT CHARACTER)"),
    ],
)
def test_controls(character: str, named: str) -> None:
    assert checks.controls(pair("茶", f"tea{character}s")) == (
        f"the en side has {named}, which shows nothing, at character 4"
    )
    assert checks.separators(pair("茶", f"tea{character}s")) is None


@pytest.mark.parametrize(
    ("character", "named"),
    [
        ("\n", "U+000A"),
        ("\r", "U+000D"),
        ("\x0b", "U+000B"),
        ("\x0c", "U+000C"),
        ("\x1c", "U+001C"),
        ("\x1d", "U+001D"),
        ("\x1e", "U+001E"),
        ("\x85", "U+0085"),
        ("\u2028", "U+2028 (LINE SEPARATOR)"),
        ("\u2029", "U+2029 (PARAGRAPH SEPARATOR)"),
    ],
)
def test_separators(character: str, named: str) -> None:
    assert checks.separators(pair(f"茶{character}", "tea")) == (
        f"the zh side has {named}, which ends a line for some programs, at character 2"
    )
    assert checks.controls(pair(f"茶{character}", "tea")) is None


def test_separators_are_what_splitlines_splits_at() -> None:
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        splits = len(f"a{character}b".splitlines()) > 1
        assert (checks.separators(pair("茶", f"a{character}b")) is not None) == splits, hex(code)


def test_every_control_character_is_found_but_for_joiners() -> None:
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        if unicodedata.category(character) in ("Cc", "Co"):
            found = [check(pair("茶", character)) for check in (checks.controls, checks.separators)]
            assert sum(each is not None for each in found) == 1, hex(code)


@pytest.mark.parametrize(
    "text",
    [
        "全角　空格，１２３！",
        "👩‍👩‍👧 family",  # joined with U+200D
        "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",  # England's flag
        "می‌خواهم",  # with U+200C
        "e\u0301 n\u00a0b",
        "\u0378",  # not assigned
    ],
)
def test_what_has_a_meaning_is_no_control(text: str) -> None:
    assert checks.controls(pair("茶", text)) is None
    assert checks.separators(pair("茶", text)) is None


def test_identical() -> None:
    assert checks.identical(pair("OK ", "\u3000OK")) == "both sides are the same text"
    assert checks.identical(pair("OK", "ok")) is None


@pytest.mark.parametrize(
    ("sides", "message"),
    [
        (pair("This is English.", "I like tea."), "of 13 letters on the zh side, 0 are Han"),
        (pair("我喜欢茶。", "我喜欢茶。"), "of 4 letters on the en side, 0 are Latin"),
        (pair("我用Pythons", "I use it"), "of 9 letters on the zh side, 2 are Han"),
        (pair("我们用Py", "I use it"), None),
        (pair("123。", "!?"), None),  # no letters
        (pair("茶", "чай"), "of 3 letters on the en side, 0 are Latin"),
        (pair("чай", "茶", "ru ja"), None),
        (
            pair("чай", "tea", "ru ja"),
            "of 3 letters on the ja side, 0 are Han or Hiragana or Katakana",
        ),
        (pair("anything 什么", "чай", "sr xx"), None),  # their scripts are not known
    ],
)
def test_script(sides: Sides, message: str | None) -> None:
    assert checks.script(sides, 0.5) == message


def test_script_at_its_limit_passes() -> None:
    assert checks.script(pair("我们ab", "x"), 0.5) is None
    assert checks.script(pair("我们ab", "x"), 0.51) is not None


@pytest.mark.parametrize(
    ("sides", "message"),
    [
        (
            pair("他們说汉语的時候", "x"),
            "the zh side mixes traditional (們時) with simplified (说汉语) characters",
        ),
        (pair("他們說漢語", "x"), None),
        (pair("他们说汉语", "x"), None),
        (pair("x", "他們说", "en ja"), None),  # Japanese has characters of both
        (
            pair("x", "對对對们说话语汉讲读书", "en zh-CN"),
            "the zh-CN side mixes traditional (對) with simplified (对们说话语) characters",
        ),
    ],
)
def test_mixed(sides: Sides, message: str | None) -> None:
    assert checks.mixed(sides) == message


def test_writing() -> None:
    simplified, traditional = pair("他们说", "they say"), pair("他們說", "they say")
    assert checks.writing(traditional, "simplified") == (
        "the zh side is traditional (們說), not simplified"
    )
    assert checks.writing(simplified, "traditional") == (
        "the zh side is simplified (们说), not traditional"
    )
    assert checks.writing(simplified, "simplified") is None
    assert checks.writing(traditional, "traditional") is None
    assert checks.writing(pair("他們说", "x"), "simplified") is None  # mixed
    assert checks.writing(pair("你好", "x"), "traditional") is None


def test_limits_of_length() -> None:
    sides = pair("我喜欢茶", "I like tea")
    assert checks.min_words(sides, 3) is None
    assert checks.min_words(sides, 4) == "the en side has length 3, below 4"
    assert checks.max_words(sides, 4) is None
    assert checks.max_words(sides, 3) == "the zh side has length 4, above 3"


def test_ratio() -> None:
    assert checks.max_ratio(pair("我喜欢茶水", "yes yes"), 2.5) is None
    assert checks.max_ratio(pair("我喜欢茶水", "yes yes"), 2) == (
        "the zh side has length 5, the en side 2: ratio 2.5, above 2"
    )
    assert checks.max_ratio(pair("茶", "a b c"), 2.5) == (
        "the zh side has length 1, the en side 3: ratio 3.0, above 2.5"
    )
    assert checks.max_ratio(pair("", "a b c"), 2) is None  # empty is another matter


@given(st.text(), st.text(), st.sampled_from(["zh en", "en zh", "ja ko", "xx ar"]))
def test_a_check_says_one_line_or_nothing(source: str, target: str, languages: str) -> None:
    sides = pair(source, target, languages)
    for message in (
        checks.empty(sides),
        checks.controls(sides),
        checks.separators(sides),
        checks.identical(sides),
        checks.script(sides, 0.5),
        checks.mixed(sides),
        checks.writing(sides, "simplified"),
        checks.min_words(sides, 2),
        checks.max_words(sides, 2),
        checks.max_ratio(sides, 1.5),
    ):
        assert message is None or (message and len(message.splitlines()) == 1)
