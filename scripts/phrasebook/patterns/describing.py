"""Adjectives as predicates, and the adverbs of degree: 很 真 太…了 非常 不太 有点儿."""

from __future__ import annotations

from random import Random

from .. import english, lexicon
from ..grammar import Drawn, pattern
from ..phrases import (
    described,
    noun,
    someone,
    trait,
)
from .being import DEMONSTRATIVES


def this_or_that(r: Random, thing: lexicon.Noun) -> tuple[str, str]:
    """这件衬衫, this shirt; 那件衬衫, that shirt."""
    zh, en, _ = r.choice(DEMONSTRATIVES)
    return f"{zh}{thing.measure}{thing.zh}", f"{en} {thing.single()}"


def too(worth: str) -> str:
    """太…了 is praise with a good adjective ("so"), a complaint with a bad one ("too")."""
    return "too" if worth == "bad" else "so"


@pattern
def person_very(r: Random) -> Drawn:
    """很, 非常: 你很漂亮。 You are very beautiful. 我爷爷非常善良。 ... is extremely kind."""
    who = someone(r)
    how = trait(r, who)
    zh, en = r.choice([("很", "very"), ("很", "very"), ("非常", "extremely")])
    return f"{who.zh}{zh}{how.zh}。", f"{who.en} {who.be} {en} {how.en}."


@pattern
def person_really(r: Random) -> Drawn:
    """真: 你妹妹真聪明！ Your younger sister is really clever!"""
    who = someone(r)
    how = trait(r, who)
    return f"{who.zh}真{how.zh}！", f"{who.en} {who.be} really {how.en}!"


@pattern
def person_so(r: Random) -> Drawn:
    """太…了: 她太漂亮了！ She is so beautiful! 他太懒了！ He is too lazy!"""
    who = someone(r)
    how = trait(r, who)
    return f"{who.zh}太{how.zh}了！", f"{who.en} {who.be} {too(how.worth)} {how.en}!"


@pattern
def person_not(r: Random) -> Drawn:
    """不: 他不高。 He is not tall."""
    who = someone(r)
    how = trait(r, who)
    return f"{who.zh}不{how.zh}。", f"{who.en} {who.be} not {how.en}."


@pattern
def person_not_very(r: Random) -> Drawn:
    """不太: 我今天不太高兴。 I am not very happy today."""
    who = someone(r)
    how = trait(r, who, kind="state")
    return f"{who.zh}今天不太{how.zh}。", f"{who.en} {who.be} not very {how.en} today."


@pattern
def person_a_bit(r: Random) -> Drawn:
    """有点儿 complains: 我有点儿累。 I am a bit tired."""
    who = someone(r)
    how = trait(r, who, worth="bad")
    return f"{who.zh}有点儿{how.zh}。", f"{who.en} {who.be} a bit {how.en}."


@pattern
def person_both(r: Random) -> Drawn:
    """又…又…: 她又聪明又漂亮。 She is both clever and beautiful."""
    who = someone(r)
    kind, worth = r.choice([("trait", "good"), ("state", "bad")])
    first, second = (trait(r, who, kind=kind, worth=worth) for _ in range(2))
    if first == second:
        return None
    return (
        f"{who.zh}又{first.zh}又{second.zh}。",
        f"{who.en} {who.be} both {first.en} and {second.en}.",
    )


@pattern
def person_was(r: Random) -> Drawn:
    """States of yesterday carry no 了: 我昨天很忙。 I was very busy yesterday."""
    who = someone(r)
    how = trait(r, who, kind="state")
    return f"{who.zh}昨天很{how.zh}。", f"{who.en} {who.was} very {how.en} yesterday."


@pattern
def looks(r: Random) -> Drawn:
    """看起来: 他看起来很累。 He looks very tired."""
    who = someone(r)
    how = trait(r, who)
    return f"{who.zh}看起来很{how.zh}。", f"{who.en} {who.does('look')} very {how.en}."


@pattern
def thing_very(r: Random) -> Drawn:
    """很, 非常: 这件衬衫很便宜。 This shirt is very cheap."""
    thing, how = described(r)
    zh, en = this_or_that(r, thing)
    zh_degree, degree = r.choice([("很", "very"), ("很", "very"), ("非常", "extremely")])
    return f"{zh}{zh_degree}{how.zh}。", f"{en} is {degree} {how.en}."


@pattern
def thing_really(r: Random) -> Drawn:
    """真: 这朵花真漂亮！ This flower is really beautiful!"""
    thing, how = described(r)
    zh, en = this_or_that(r, thing)
    return f"{zh}真{how.zh}！", f"{en} is really {how.en}!"


@pattern
def thing_so(r: Random) -> Drawn:
    """太…了: 这块手表太贵了！ This watch is too expensive!"""
    thing, how = described(r)
    zh, en = this_or_that(r, thing)
    return f"{zh}太{how.zh}了！", f"{en} is {too(how.worth)} {how.en}!"


@pattern
def thing_not(r: Random) -> Drawn:
    """不: 那辆车不贵。 That car is not expensive."""
    thing, how = described(r)
    zh, en = this_or_that(r, thing)
    return f"{zh}不{how.zh}。", f"{en} is not {how.en}."


@pattern
def thing_a_bit(r: Random) -> Drawn:
    """有点儿: 这个箱子有点儿重。 This suitcase is a bit heavy."""
    thing, how = described(r, worth="bad")
    zh, en = this_or_that(r, thing)
    return f"{zh}有点儿{how.zh}。", f"{en} is a bit {how.en}."


@pattern
def thing_not_at_all(r: Random) -> Drawn:
    """一点儿也不: 这本书一点儿也不难。 This book is not difficult at all."""
    thing, how = described(r)
    zh, en = this_or_that(r, thing)
    return f"{zh}一点儿也不{how.zh}。", f"{en} is not {how.en} at all."


@pattern
def these_things_very(r: Random) -> Drawn:
    """这些: 这些苹果很甜。 These apples are very sweet."""
    thing, how = described(r)
    if thing.unit and thing.agreement == "it":
        return None
    zh, _, en = r.choice([("这些", "", "these"), ("那些", "", "those")])
    return f"{zh}{thing.zh}很{how.zh}。", f"{en} {thing.bare} are very {how.en}."


@pattern
def thing_color(r: Random) -> Drawn:
    """Colors take 是…的: 我的围巾是红色的。 My scarf is red."""
    owner, thing, color = someone(r), noun(r, "color"), r.choice(lexicon.COLORS)
    if not {"wear", "puton", "borrow", "lose"} & thing.tags:
        return None
    return (
        f"{owner.zh}的{thing.zh}是{color.zh}。",
        f"{owner.whose} {thing.en} {english.AM[thing.agreement]} {color.en}.",
    )


# Adjectives that do not go together in 又…又… and 虽然…但是: opposites, and near synonyms.
OPPOSITES = [
    {"big", "small"},
    {"long", "short"},
    {"fast", "slow"},
    {"heavy", "light"},
    {"new", "old"},
    {"cheap", "expensive"},
    {"clean", "dirty"},
    {"interesting", "boring"},
    {"easy", "difficult"},
    {"good", "famous"},
    {"good", "interesting"},
    {"good", "new"},
    {"good", "boring"},
    {"good", "old"},
]


@pattern
def both_qualities(r: Random) -> Drawn:
    """又…又… of a thing: 这个苹果又大又甜。 This apple is both big and sweet."""
    thing, first = described(r)
    _, second = described(r, *sorted(thing.tags))
    if first == second or not second.fits & thing.tags:
        return None
    if first.worth != second.worth or {first.en, second.en} in OPPOSITES:
        return None
    zh, en = this_or_that(r, thing)
    return f"{zh}又{first.zh}又{second.zh}。", f"{en} is both {first.en} and {second.en}."
