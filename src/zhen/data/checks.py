"""What may be odd about a pair: each check a function of its two texts.

A check gives None where all is well, or says what it found. `make data-check` reports what they
say; cleaning drops the pairs that they say something about (`zhen.data.cleaning`).
"""

import unicodedata
from collections.abc import Callable

import regex

from zhen.data.scripts import (
    ONLY_SIMPLIFIED,
    ONLY_TRADITIONAL,
    Writing,
    count_letters,
    is_chinese,
    scripts_of,
    writing_of,
)

# A language and a text in it, for the source and for the target.
Sides = tuple[tuple[str, str], tuple[str, str]]
# Says what is odd about a pair, or None.
Check = Callable[[Sides], str | None]

# What other programs, among them Python's `splitlines`, take for the end of a line. A reader of
# files leaves all but \n and \r\n inside the text; JSON, CSV and Parquet can hold even these.
_SEPARATORS = regex.compile("[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
# Characters that show nothing and mean nothing to a model: controls, tabs too; byte-order marks and
# zero-width spaces; what sets the direction of text; private ones; and U+FFFD, which stands where a
# program could not decode. The joiners of emoji and of Persian have a meaning.
_CONTROLS = regex.compile(
    r"(?V1)[\p{Cc}\p{Cf}\p{Co}\ufffd--[\n\r\x0b\x0c\x1c-\x1e\x85]--[\u200c\u200d]--[\U000e0020-\U000e007f]]"
)
_HAN_OR_KANA = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}]+")
# What to ask where most pairs of a split are not in the scripts of their languages.
WRONG_WAY_ROUND = (
    "are the two sides the wrong way round? data.languages names them in the order of the columns"
)
SHOWN = 5  # characters of a kind that a message shows


def length(text: str) -> int:
    """The length of a text in a measure that suits every language.

    A Han or kana character counts 1, and so does every run of other characters without space: a
    word of English with the comma after it, a number, a full stop between Han. A Chinese sentence
    and its English translation come to much the same.
    """
    rest, runs = _HAN_OR_KANA.subn(" ", text)
    return len(text) - (len(rest) - runs) + len(rest.split())


def empty(sides: Sides) -> str | None:
    """A side is nothing but space."""
    for language, text in sides:
        if not text.strip():
            return f"the {language} side is empty"
    return None


def controls(sides: Sides) -> str | None:
    """A side has a character that shows nothing, such as NUL."""
    return _characters(_CONTROLS, sides, "which shows nothing")


def separators(sides: Sides) -> str | None:
    """A side has a character that some programs take for the end of the line, such as U+2028."""
    return _characters(_SEPARATORS, sides, "which ends a line for some programs")


def _characters(wanted: "regex.Pattern[str]", sides: Sides, what: str) -> str | None:
    for language, text in sides:
        # `isprintable` is far quicker, and false for all that is looked for, but for U+FFFD.
        if text.isprintable() and "\ufffd" not in text:
            continue
        found = wanted.search(text)
        if found:
            name = unicodedata.name(found[0], "")
            named = f"U+{ord(found[0]):04X}" + (f" ({name})" if name else "")
            return f"the {language} side has {named}, {what}, at character {found.start() + 1}"
    return None


def identical(sides: Sides) -> str | None:
    """Both sides are the same text, which no translation is."""
    (_, source), (_, target) = sides
    return "both sides are the same text" if source.strip() == target.strip() else None


def script(sides: Sides, least: float) -> str | None:
    """Too few letters of a side are of its language's script.

    A side without letters passes, and so does one in a language whose script is not known.

    Args:
        least: the share of letters, above 0 and at most 1, that must be.
    """
    for language, text in sides:
        scripts = scripts_of(language)
        if scripts is None:
            continue
        letters = count_letters(text, scripts)
        if letters.share < least:
            total, names = letters.own + letters.other, " or ".join(scripts)
            return f"of {total} letters on the {language} side, {letters.own} are {names}"
    return None


def mixed(sides: Sides) -> str | None:
    """A Chinese side has characters of traditional and of simplified writing.

    Only characters that the other way of writing lacks say anything.
    """
    for language, text in sides:
        if is_chinese(language) and writing_of(text) == "mixed":
            return (
                f"the {language} side mixes traditional ({_some(text, ONLY_TRADITIONAL)}) with"
                f" simplified ({_some(text, ONLY_SIMPLIFIED)}) characters"
            )
    return None


def writing(sides: Sides, wanted: Writing) -> str | None:
    """A Chinese side is written in the other way: traditional for simplified, or the reverse.

    Args:
        wanted: "simplified" or "traditional".
    """
    for language, text in sides:
        found = writing_of(text) if is_chinese(language) else None
        if found not in (None, "mixed", wanted):
            only = ONLY_TRADITIONAL if found == "traditional" else ONLY_SIMPLIFIED
            return f"the {language} side is {found} ({_some(text, only)}), not {wanted}"
    return None


def min_words(sides: Sides, least: int) -> str | None:
    """A side is shorter than `least`, by the measure of `length`."""
    for language, text in sides:
        if (found := length(text)) < least:
            return f"the {language} side has length {found}, below {least}"
    return None


def max_words(sides: Sides, most: int) -> str | None:
    """A side is longer than `most`, by the measure of `length`."""
    for language, text in sides:
        if (found := length(text)) > most:
            return f"the {language} side has length {found}, above {most}"
    return None


def max_ratio(sides: Sides, most: float) -> str | None:
    """One side is more than `most` times as long as the other, by the measure of `length`.

    A side of length 0 is not odd, but empty.
    """
    (one, source), (other, target) = sides
    lengths = length(source), length(target)
    if max(lengths) > most * min(lengths) > 0:
        ratio = max(lengths) / min(lengths)
        return (
            f"the {one} side has length {lengths[0]}, the {other} side {lengths[1]}: ratio"
            f" {ratio:.1f}, above {most:g}"
        )
    return None


def _some(text: str, wanted: frozenset[str]) -> str:
    """The first few of the characters looked for, each once."""
    return "".join(list(dict.fromkeys(c for c in text if c in wanted))[:SHOWN])
