"""Scripts of languages, and the two ways to write Chinese."""

import pytest
import regex

from zhen.data.scripts import (
    ONLY_SIMPLIFIED,
    ONLY_TRADITIONAL,
    SCRIPTS,
    Letters,
    count_letters,
    is_chinese,
    scripts_of,
    writing_of,
)


@pytest.mark.parametrize(
    ("language", "scripts"),
    [
        ("zh", ("Han",)),
        ("zh-TW", ("Han",)),
        ("zh_CN", ("Han",)),
        ("zh-Hant", ("Han",)),
        ("ZH-Hans-SG", ("Han",)),
        ("zh-Latn", None),  # pinyin
        ("en_US", ("Latin",)),
        ("sr", None),  # Cyrillic or Latin
        ("ja", ("Han", "Hiragana", "Katakana")),
        ("xx", None),
        ("", None),
    ],
)
def test_the_script_of_a_language(language: str, scripts: tuple[str, ...] | None) -> None:
    assert scripts_of(language) == scripts
    assert is_chinese(language) == (scripts == ("Han",))


@pytest.mark.parametrize("scripts", sorted(set(SCRIPTS.values())))
def test_each_script_is_one_that_unicode_names(scripts: tuple[str, ...]) -> None:
    for script in scripts:
        assert regex.compile(rf"\p{{Script={script}}}")


@pytest.mark.parametrize(
    ("text", "language", "own", "other"),
    [
        ("我喜欢茶。", "zh", 4, 0),
        ("我用Python。", "zh", 2, 6),
        ("〇々𠮷", "zh", 2, 0),  # 〇 is a number to Unicode
        ("I like 茶.", "en", 5, 1),
        ("naïve café", "en", 9, 0),
        ("plain", "zh", 0, 5),
        ("ラーメンを食べる", "ja", 7, 0),  # ー belongs to several scripts
        ("서울에서 漢字", "ko", 6, 0),
        ("Привет, мир", "ru", 9, 0),
        ("مرحبا", "ar", 5, 0),
        ("สวัสดี", "th", 4, 0),  # vowel signs are no letters
        ("3.14 … ！", "en", 0, 0),
        ("", "zh", 0, 0),
    ],
)
def test_letters_are_counted_by_script(text: str, language: str, own: int, other: int) -> None:
    assert count_letters(text, SCRIPTS[language]) == Letters(own, other)


def test_a_text_without_letters_is_in_every_script() -> None:
    assert count_letters("3.14！", ("Han",)).share == 1.0
    assert Letters(1, 3).share == 0.25


@pytest.mark.parametrize(
    ("text", "writing"),
    [
        ("他们说汉语", "simplified"),
        ("他們說漢語", "traditional"),
        ("他們说汉语", "mixed"),
        ("我不是人", None),  # the same in both
        ("他在看著書", "traditional"),
        ("他喺度睇着書", "traditional"),  # Hong Kong writes 着
        ("乾隆皇帝著名", None),  # 乾 and 著 are also simplified characters
        ("English", None),
    ],
)
def test_the_writing_of_a_text(text: str, writing: str | None) -> None:
    assert writing_of(text) == writing


def test_no_character_is_of_one_writing_and_of_the_other() -> None:
    assert not ONLY_SIMPLIFIED & ONLY_TRADITIONAL
    assert len(ONLY_SIMPLIFIED) > 2000 and len(ONLY_TRADITIONAL) > 2000
