"""Subjects, and draws of words that go together: who does what, where, and which is how."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from . import chinese, english, lexicon
from .lexicon import Activity, Adjective, Noun, Person, Place, Time, Trait, Verb

ENGLISH_PRONOUNS = {"he": ("him", "his"), "she": ("her", "her"), "they": ("them", "their")}


@dataclass(frozen=True)
class Subject:
    """Whoever a sentence is about, in both languages.

    `agreement` selects the English verb form; `zh_pronoun`, `pronoun`, `obj` and `poss` refer
    back to the subject (他, he, him, his).
    """

    zh: str
    en: str
    agreement: str
    zh_pronoun: str
    pronoun: str
    obj: str
    poss: str
    tags: frozenset[str] = frozenset()

    @property
    def be(self) -> str:
        return english.AM[self.agreement]

    @property
    def was(self) -> str:
        return english.WAS[self.agreement]

    @property
    def have(self) -> str:
        return english.present(self.agreement, "have")

    @property
    def do(self) -> str:
        return english.do(self.agreement)

    @property
    def as_object(self) -> str:
        """The English after a verb or a preposition: him, my mother."""
        return self.obj if self.zh == self.zh_pronoun else self.en

    @property
    def whose(self) -> str:
        """The English before a thing owned: his, my mother's."""
        return self.poss if self.zh == self.zh_pronoun else f"{self.en}'s"

    def does(self, phrase: str) -> str:
        """The verb phrase in the simple present: he goes home."""
        return english.present(self.agreement, phrase)


I = Subject("我", "I", "I", "我", "I", "me", "my")  # noqa: E741
YOU = Subject("你", "you", "they", "你", "you", "you", "your")
HE = Subject("他", "he", "it", "他", "he", "him", "his")
SHE = Subject("她", "she", "it", "她", "she", "her", "her")
WE = Subject("我们", "we", "they", "我们", "we", "us", "our")
THEY = Subject("他们", "they", "they", "他们", "they", "them", "their")

PRONOUNS = [I, YOU, HE, SHE, WE, THEY]
SINGLE_PRONOUNS = [I, YOU, HE, SHE]


def _third(zh: str, en: str, person: Person) -> Subject:
    obj, poss = ENGLISH_PRONOUNS[person.pronoun]
    zh_pronoun = "她" if person.pronoun == "she" else "他"
    return Subject(zh, en, "it", zh_pronoun, person.pronoun, obj, poss, person.tags)


def kin(r: Random, *tags: str) -> Subject:
    """Somebody's relative or friend: 我妈妈, my mother; with tags, one that has any of them."""
    owner = r.choice(SINGLE_PRONOUNS)
    people = [p for p in lexicon.tagged(lexicon.PEOPLE, "kin") if not tags or p.tags & set(tags)]
    person = r.choice(people)
    return _third(owner.zh + person.zh, f"{owner.poss} {person.en}", person)


def named(r: Random) -> Subject:
    """Somebody with a name: 小王, Xiao Wang."""
    person = r.choice(lexicon.tagged(lexicon.PEOPLE, "name"))
    return _third(person.zh, person.en, person)


def role(r: Random) -> Subject:
    """Somebody known by the job: 医生, the doctor."""
    person = r.choice(lexicon.tagged(lexicon.PEOPLE, "role"))
    return _third(person.zh, f"the {person.en}", person)


def third(r: Random) -> Subject:
    """Somebody who is not you or me and whose he or she is known: for sentences that refer back."""
    subject = r.choice([kin, kin, named])(r)
    return third(r) if subject.pronoun == "they" else subject


def someone(r: Random) -> Subject:
    """Any subject; pronouns half the time, as in speech."""
    draw = r.randrange(8)
    if draw < 4:
        return r.choice(PRONOUNS)
    return kin(r) if draw < 6 else named(r) if draw < 7 else role(r)


def speaker(r: Random) -> Subject:
    """A subject that a pronoun can take up again: my mother ... she, but not my friend."""
    subject = someone(r)
    return speaker(r) if subject.pronoun == "they" and subject != THEY else subject


def one_person(r: Random) -> Subject:
    """Any subject but we and they."""
    subject = someone(r)
    return one_person(r) if subject in (WE, THEY) else subject


def noun(r: Random, *tags: str) -> Noun:
    """A thing that has any of the tags."""
    return r.choice(lexicon.tagged(lexicon.NOUNS, *tags))


def two_nouns(r: Random, *tags: str) -> tuple[Noun, Noun]:
    first, second = r.sample(lexicon.tagged(lexicon.NOUNS, *tags), 2)
    return first, second


def adjectives_for(thing: Noun, before_noun: bool = False) -> list[Adjective]:
    """The adjectives that fit a thing; with `before_noun` those that can stand before it."""
    return [
        adjective
        for adjective in lexicon.ADJECTIVES
        if adjective.fits & thing.tags and (adjective.before_noun or not before_noun)
    ]


# Nobody buys what is described like this.
WORN = ("旧", "脏", "慢")


def described(
    r: Random, *tags: str, worth: str = "", bought: bool = False
) -> tuple[Noun, Adjective]:
    """A thing and an adjective that fits it.

    Args:
        r: the generator to draw with.
        tags: the thing has any of these.
        worth: asks for a good, a bad or a plain adjective.
        bought: leaves out what one does not say of a purchase.
    """
    while True:
        thing = noun(r, *tags) if tags else r.choice(lexicon.NOUNS)
        fitting = [
            a
            for a in adjectives_for(thing)
            if worth in ("", a.worth) and not (bought and a.zh in WORN)
        ]
        if fitting:
            return thing, r.choice(fitting)


def attributed(r: Random, *tags: str, bought: bool = False) -> tuple[Noun, str, str]:
    """A thing and an adjective or color before it: 裙子, 漂亮的, beautiful."""
    while True:
        thing = noun(r, *tags) if tags else r.choice(lexicon.NOUNS)
        fitting = [
            (a.before_noun, a.en)
            for a in adjectives_for(thing, before_noun=True)
            if not (bought and a.zh in WORN)
        ]
        if "color" in thing.tags:
            fitting += [(c.zh, c.en) for c in lexicon.COLORS]
        if fitting:
            return thing, *r.choice(fitting)


def fits(trait: Trait, who: Subject) -> bool:
    """Whether one says it of somebody: no man is 漂亮, and no grandmother 年轻."""
    if trait.whom == "woman":
        return who.pronoun in ("she", "you")
    if trait.whom == "child":
        return "child" in who.tags
    return trait.whom == "anyone" or not {"child", "old"} & who.tags


def worn(r: Random) -> tuple[str, Noun, str, str]:
    """Something one has on: (穿 or 戴, 毛衣, 红色的, red)."""
    thing = noun(r, "wear", "puton")
    looks = [(c.zh, c.en) for c in lexicon.COLORS] if "color" in thing.tags else []
    looks += [("新", "new"), ("旧", "old")]
    if "pretty" in thing.tags:
        looks.append(("漂亮的", "beautiful"))
    return "穿" if "wear" in thing.tags else "戴", thing, *r.choice(looks)


def trait(r: Random, *people: Subject, kind: str = "", worth: str = "") -> Trait:
    """An adjective that fits all the people; `kind` and `worth` narrow the choice."""
    return r.choice(
        [
            t
            for t in lexicon.TRAITS
            if (not kind or t.kind in (kind, "both"))
            and worth in ("", t.worth)
            and all(fits(t, who) for who in people)
        ]
    )


def activity(r: Random, *tags: str) -> Activity:
    """Something people do that has any of the tags."""
    return r.choice(lexicon.tagged(lexicon.ACTIVITIES, *tags))


def two_activities(r: Random, *tags: str) -> tuple[Activity, Activity]:
    first, second = r.sample(lexicon.tagged(lexicon.ACTIVITIES, *tags), 2)
    return first, second


def place(r: Random, *tags: str) -> Place:
    return r.choice(lexicon.tagged(lexicon.PLACES, *tags) if tags else lexicon.PLACES)


def done_at(r: Random, *tags: str) -> tuple[Place, Activity]:
    """A place and something people do there."""
    where = place(r, *tags)
    if not where.activities:
        return done_at(r, *tags)
    return where, lexicon.ACTIVITY[r.choice(where.activities)]


def time(r: Random, *kinds: str) -> Time:
    """A time word of one of the kinds: past, past-long, future, future-long, habit."""
    return r.choice([t for t in lexicon.TIMES if t.kind in kinds])


def verb(r: Random, *verbs: str) -> tuple[Verb, Noun]:
    """One of the verbs (by their Chinese) and an object it can have."""
    chosen = r.choice([v for v in lexicon.VERBS if v.zh in verbs])
    return chosen, noun(r, *sorted(chosen.takes))


def amount(r: Random, thing: Noun, low: int = 1, high: int = 6) -> tuple[str, str]:
    """A number of things: 三个苹果, three apples; one is 一个苹果, an apple."""
    n = r.randrange(low, high + 1)
    zh = chinese.count(n) + thing.measure + thing.zh
    return zh, thing.one() if n == 1 else thing.several(english.number(n))


def clock(r: Random, first: int, last: int, exact: bool = True) -> tuple[str, str]:
    """A clock time (八点半, half past eight) from hour `first` to `last`; `exact`: with minutes."""
    hour = r.randrange(first, last + 1)
    zh, en = chinese.count(hour) + "点", english.number(hour)
    form = r.choice([0, 1, 2, 3] if exact else [0, 3])
    if form == 0:
        return zh + "半", f"half past {en}"
    if form == 1:
        return zh + "一刻", f"a quarter past {en}"
    if form == 2:
        minute = r.choice([5, 10, 20, 25])
        spoken = "零五" if minute == 5 else chinese.number(minute)
        return f"{zh}{spoken}分", f"{english.number(minute)} past {en}"
    return zh, f"{en} o'clock"
