"""The lexicon: reads the tables in words/ into one record a line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from . import english

WORDS = Path(__file__).resolve().parent / "words"


@dataclass(frozen=True)
class Noun:
    """A thing or an animal; `unit` is what one counts of it (cup of tea, pair of shoes)."""

    zh: str
    measure: str
    en: str
    unit: str
    tags: frozenset[str]

    @property
    def agreement(self) -> str:
        """How "the <noun>" agrees: the tea is, the shoes are."""
        return "they" if self.unit and self.en.endswith("s") else "it"

    @property
    def bare(self) -> str:
        """The noun in general, as after "I like": apples, tea, shoes."""
        return self.en if self.unit else english.plural(self.en)

    @property
    def is_mass(self) -> bool:
        """Whether it has no plural in general: tea is good, but apples are, and shoes are."""
        return bool(self.unit) and self.agreement == "it"

    @property
    def it(self) -> str:
        return "it" if self.agreement == "it" else "them"

    def single(self, adjective: str = "") -> str:
        """One of it, without an article: big apple, cup of hot tea."""
        noun = f"{adjective} {self.en}" if adjective else self.en
        return f"{self.unit} of {noun}" if self.unit else noun

    def one(self, adjective: str = "") -> str:
        """One of it, with a or an: an apple, a cup of tea."""
        return english.a(self.single(adjective))

    def worn(self, adjective: str) -> str:
        """As after "wearing": a red sweater, blue pants."""
        return f"{adjective} {self.en}" if self.agreement == "they" else self.one(adjective)

    def several(self, count: str, adjective: str = "") -> str:
        """A number (in words) of it: three apples, two cups of tea; one gives the singular."""
        if count == "one":
            return f"one {self.single(adjective)}"
        words = f"{adjective} " if adjective else ""
        if self.unit:
            return f"{count} {english.plural(self.unit)} of {words}{self.en}"
        return f"{count} {words}{self.bare}"


@dataclass(frozen=True)
class Adjective:
    """An adjective for things; `fits` holds the noun tags it may describe."""

    zh: str
    before_noun: str
    en: str
    fits: frozenset[str]
    worth: str


@dataclass(frozen=True)
class Color:
    zh: str
    en: str


@dataclass(frozen=True)
class Trait:
    """An adjective for people; `kind` is trait (lasting), state (passing) or both."""

    zh: str
    en: str
    kind: str
    worth: str
    whom: str


@dataclass(frozen=True)
class Person:
    zh: str
    en: str
    pronoun: str
    tags: frozenset[str]


@dataclass(frozen=True)
class Activity:
    """Something people do; `habit` is its English in general (watch movies)."""

    zh: str
    en: str
    habit: str
    tags: frozenset[str]


@dataclass(frozen=True)
class Place:
    zh: str
    en: str
    at: str
    to: str
    tags: frozenset[str]
    activities: tuple[str, ...]


@dataclass(frozen=True)
class City:
    """A city at home or a country abroad, as `where` says."""

    zh: str
    en: str
    where: str


@dataclass(frozen=True)
class Time:
    zh: str
    en: str
    kind: str


@dataclass(frozen=True)
class Spot:
    """Where things lie; `holds` are the tags of the things that can be there."""

    zh: str
    en: str
    holds: frozenset[str]


@dataclass(frozen=True)
class Verb:
    """A verb with an object; `takes` are the noun tags of the object."""

    zh: str
    en: str
    takes: frozenset[str]


@dataclass(frozen=True)
class Result:
    """A verb with its result (吃完了), for 把 and 被; the English marks the object with _."""

    zh: str
    en: str
    participle: str
    takes: frozenset[str]


def read_table(name: str) -> list[list[str]]:
    """Reads words/<name>.txt into rows of stripped cells; "-" reads as an empty cell."""
    rows = []
    for line in (WORDS / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            cells = [cell.strip() for cell in line.split("|")]
            rows.append(["" if cell == "-" else cell for cell in cells])
    return rows


def _tags(cell: str) -> frozenset[str]:
    return frozenset(cell.split())


NOUNS = [Noun(zh, mw, en, unit, _tags(t)) for zh, mw, en, unit, t in read_table("nouns")]
ADJECTIVES = [
    Adjective(zh, before, en, _tags(fits), worth)
    for zh, before, en, fits, worth in read_table("adjectives")
]
COLORS = [Color(*row) for row in read_table("colors")]
TRAITS = [Trait(*row) for row in read_table("traits")]
PEOPLE = [Person(zh, en, pron, _tags(tags)) for zh, en, pron, tags in read_table("people")]
ACTIVITIES = [
    Activity(zh, en, habit or en, _tags(tags)) for zh, en, habit, tags in read_table("activities")
]
PLACES = [
    Place(zh, en, at, to, _tags(tags), tuple(acts.split()))
    for zh, en, at, to, tags, acts in read_table("places")
]
CITIES = [City(*row) for row in read_table("cities")]
TIMES = [Time(*row) for row in read_table("times")]
SPOTS = [Spot(zh, en, _tags(holds)) for zh, en, holds in read_table("spots")]
VERBS = [Verb(zh, en, _tags(takes)) for zh, en, takes in read_table("verbs")]
RESULTS = [Result(zh, en, part, _tags(takes)) for zh, en, part, takes in read_table("results")]

NEVER = [(left.split(), right.split()) for left, right in read_table("never")]
ACTIVITY = {activity.zh: activity for activity in ACTIVITIES}


def absurd(zh: str) -> bool:
    """Whether a sentence has two words together that words/never.txt keeps apart."""
    return any(
        any(word in zh for word in left) and any(word in zh for word in right)
        for left, right in NEVER
    )


def tagged(entries: list, *tags: str) -> list:
    """The entries that have at least one of the tags, in table order."""
    return [entry for entry in entries if entry.tags & set(tags)]
