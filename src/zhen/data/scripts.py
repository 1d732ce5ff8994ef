"""Which script a language is written in, and whether Chinese is simplified or traditional."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

import regex
from zhon.cedict import simplified, traditional

# Scripts by their Unicode names, and the languages written in them. Languages with a choice, such
# as Serbian, are left out on purpose: what is not here is not checked.
_LANGUAGES: Mapping[tuple[str, ...], str] = {
    ("Han",): "zh cmn yue wuu",
    ("Han", "Hiragana", "Katakana"): "ja",
    ("Hangul", "Han"): "ko",
    ("Latin",): (
        "af ca cs cy da de en eo es et eu fi fil fr ga gl hr hu id is it la lb lt lv ms mt nl no"
        " nb nn pl pt ro sk sl so sq sv sw tl tr vi"
    ),
    ("Cyrillic",): "be bg ky mk ru uk",
    ("Arabic",): "ar fa ps ur",
    ("Hebrew",): "he yi",
    ("Devanagari",): "hi mr ne",
    ("Bengali",): "as bn",
    ("Greek",): "el",
    ("Armenian",): "hy",
    ("Georgian",): "ka",
    ("Thai",): "th",
    ("Lao",): "lo",
    ("Khmer",): "km",
    ("Myanmar",): "my",
    ("Tibetan",): "bo",
    ("Ethiopic",): "am ti",
    ("Tamil",): "ta",
    ("Telugu",): "te",
    ("Kannada",): "kn",
    ("Malayalam",): "ml",
    ("Gujarati",): "gu",
    ("Sinhala",): "si",
}
SCRIPTS = {code: scripts for scripts, codes in _LANGUAGES.items() for code in codes.split()}

Writing = Literal["simplified", "traditional", "mixed"]

# Characters that only one way of writing has, by the headwords of CC-CEDICT. One choice of that
# dictionary is not followed: 着 is how Hong Kong writes 著 in traditional text.
ONLY_SIMPLIFIED = frozenset(simplified) - frozenset(traditional) - {"着"}
ONLY_TRADITIONAL = frozenset(traditional) - frozenset(simplified)


@dataclass(frozen=True)
class Letters:
    """How many letters of a text are of the scripts asked for, and how many are of others.

    Letters that several scripts share, digits and punctuation count for neither.
    """

    own: int
    other: int

    @property
    def share(self) -> float:
        """Of those of the scripts asked for; 1 where there are no letters."""
        return self.own / (self.own + self.other) if self.own + self.other else 1.0


@cache
def scripts_of(language: str) -> tuple[str, ...] | None:
    """Unicode's names of the scripts of a language, or None where it is not known.

    Args:
        language: a code such as "zh", "zh-TW", "zh-Hant" or "en_US". One that names a script of its
            own, as "zh-Latn" does for pinyin, is not known.
    """
    first, *rest = language.lower().replace("_", "-").split("-")
    if any(len(part) == 4 and part not in ("hans", "hant") for part in rest):
        return None
    return SCRIPTS.get(first)


def count_letters(text: str, scripts: tuple[str, ...]) -> Letters:
    """The letters of a text, by script."""
    if text.isascii():
        letters = sum(map(str.isalpha, text))
        return Letters(letters, 0) if "Latin" in scripts else Letters(0, letters)
    own, other = _patterns(scripts)
    rest = own.sub("", text)  # a few times faster than to find the letters one by one
    return Letters(len(text) - len(rest), len(rest) - len(other.sub("", rest)))


def writing_of(text: str) -> Writing | None:
    """How Chinese is written here, or None where every character belongs to both ways."""
    is_simplified = not ONLY_SIMPLIFIED.isdisjoint(text)
    is_traditional = not ONLY_TRADITIONAL.isdisjoint(text)
    if is_simplified and is_traditional:
        return "mixed"
    if is_simplified:
        return "simplified"
    return "traditional" if is_traditional else None


def is_chinese(language: str) -> bool:
    """Whether a language is written in Han alone, simplified or traditional."""
    return scripts_of(language) == ("Han",)


@cache
def _patterns(scripts: tuple[str, ...]) -> tuple["regex.Pattern[str]", "regex.Pattern[str]"]:
    """Letters of these scripts, and letters of any other."""
    own = "".join(rf"\p{{{script}}}" for script in scripts)
    return (
        regex.compile(rf"(?V1)[\p{{L}}&&[{own}]]+"),
        regex.compile(rf"(?V1)[\p{{L}}--[{own}]--\p{{Common}}--\p{{Inherited}}]+"),
    )
