"""Reasons, conditions and concessions: 因为…所以, 如果…就, 虽然…但是."""

from __future__ import annotations

from random import Random

from .. import english, lexicon
from ..grammar import Drawn, pattern
from ..phrases import (
    activity,
    described,
    done_at,
    place,
    someone,
    speaker,
    time,
)
from .describing import OPPOSITES, this_or_that


@pattern
def because_tired(r: Random) -> Drawn:
    """因为…所以: 因为我很累，所以我不想跑步。 Because I am very tired, I don't want to run."""
    who, doing = speaker(r), activity(r, "sport", "chore")
    how = r.choice([("累", "tired"), ("生气", "angry"), ("难过", "sad"), ("饿", "hungry")])
    return (
        f"因为{who.zh}很{how[0]}，所以{who.zh_pronoun}不想{doing.zh}。",
        f"because {who.en} {who.be} very {how[1]}, {who.pronoun} {who.do}n't want to {doing.en}.",
    )


@pattern
def because_busy(r: Random) -> Drawn:
    """因为…没: 因为他很忙，所以他昨天没去公园。 Because he was very busy, he didn't go ..."""
    who, where, when = speaker(r), place(r, "named", "fun"), time(r, "past")
    how = r.choice([("忙", "busy"), ("累", "tired"), ("难过", "sad")])
    return (
        f"因为{who.zh}很{how[0]}，所以{who.zh_pronoun}{when.zh}没去{where.zh}。",
        f"because {who.en} {who.was} very {how[1]}, {who.pronoun} didn't go {where.to} {when.en}.",
    )


@pattern
def because_cheap(r: Random) -> Drawn:
    """因为 + thing: 因为这件衬衫很便宜，所以我想买它。 Because this shirt is very cheap, ..."""
    who, (thing, how) = someone(r), described(r, "buy")
    if how.worth == "plain":
        return None
    zh, en = this_or_that(r, thing)
    zh_want, want = ("想", who.does("want"))
    if how.worth == "bad":
        zh_want, want = ("不想", f"{who.do}n't want")
    return (
        f"因为{zh}很{how.zh}，所以{who.zh}{zh_want}买它。",
        f"because {en} is very {how.en}, {who.en} {want} to buy it.",
    )


WEATHER = [("下雨", "rains"), ("下雪", "snows")]

HOME = next(place for place in lexicon.PLACES if place.zh == "家")


def at_home(r: Random) -> lexicon.Activity:
    return lexicon.ACTIVITY[r.choice(HOME.activities)]


@pattern
def if_it_rains(r: Random) -> Drawn:
    """如果…就: 如果明天下雨，我就在家看书。 If it rains tomorrow, I will read at home."""
    who, doing, (zh_weather, weather) = someone(r), at_home(r), r.choice(WEATHER)
    zh, en = r.choice([("明天", "tomorrow"), ("周末", "on the weekend")])
    return (
        f"如果{zh}{zh_weather}，{who.zh}就在家{doing.zh}。",
        f"if it {weather} {en}, {who.en} will {doing.en} at home.",
    )


@pattern
def if_not_busy(r: Random) -> Drawn:
    """如果不…就: 如果他不忙，他就去公园跑步。 If he is not busy, he will go to the park to run."""
    who, (where, doing) = speaker(r), done_at(r, "goal")
    zh, how = r.choice([("忙", "busy"), ("累", "tired")])
    if doing.zh == "工作":
        return None
    return (
        f"如果{who.zh}不{zh}，{who.zh_pronoun}就去{where.zh}{doing.zh}。",
        f"if {who.en} {who.be} not {how}, {who.pronoun} will go {where.to} to {doing.en}.",
    )


@pattern
def if_cheap(r: Random) -> Drawn:
    """如果 + thing: 如果这件衬衫不贵，我就买它。 If this shirt is not expensive, I will buy it."""
    who, (thing, how) = someone(r), described(r, "buy")
    if how.worth == "plain":
        return None
    zh, en = this_or_that(r, thing)
    zh_degree, degree = ("不", "not") if how.worth == "bad" else ("很", "very")
    return (
        f"如果{zh}{zh_degree}{how.zh}，{who.zh}就买它。",
        f"if {en} is {degree} {how.en}, {who.en} will buy it.",
    )


@pattern
def if_you_want(r: Random) -> Drawn:
    """如果想…就应该: 如果你想学会游泳，就应该每天练习。 If you want to learn to swim ..."""
    who, skill = speaker(r), activity(r, "skill")
    zh, en = r.choice([("应该", "should"), ("必须", "must")])
    return (
        f"如果{who.zh}想学会{skill.zh}，{who.zh_pronoun}就{zh}每天练习。",
        f"if {who.en} {who.does('want')} to learn to {skill.habit}, {who.pronoun} {en} practice "
        f"every day.",
    )


@pattern
def although_tired(r: Random) -> Drawn:
    """虽然…但是: 虽然他很累，但是他还在工作。 Although he is very tired, he is still working."""
    who, doing = speaker(r), activity(r, "chore")
    how = r.choice([("累", "tired"), ("饿", "hungry"), ("渴", "thirsty"), ("难过", "sad")])
    return (
        f"虽然{who.zh}很{how[0]}，但是{who.zh_pronoun}还在{doing.zh}。",
        f"although {who.en} {who.be} very {how[1]}, {who.pronoun} {who.be} still "
        f"{english.gerund(doing.en)}.",
    )


@pattern
def although_thing(r: Random) -> Drawn:
    """虽然 + thing: 虽然这件衬衫很贵，但是很漂亮。 Although this shirt is very expensive, ..."""
    thing, first = described(r)
    _, second = described(r, *sorted(thing.tags))
    if not second.fits & thing.tags or {first.en, second.en} in OPPOSITES:
        return None
    if {first.worth, second.worth} != {"good", "bad"}:
        return None
    zh, en = this_or_that(r, thing)
    return (
        f"虽然{zh}很{first.zh}，但是很{second.zh}。",
        f"although {en} is very {first.en}, it is very {second.en}.",
    )


FLAWS = ("懒", "害羞", "矮", "瘦")

MERITS = ("聪明", "友好", "善良", "勇敢", "幽默", "努力")


@pattern
def although_person(r: Random) -> Drawn:
    """虽然 + person: 虽然她很懒，但是她很聪明。 Although she is very lazy, she is very clever."""
    who = speaker(r)
    flaw = r.choice([t for t in lexicon.TRAITS if t.zh in FLAWS])
    merit = r.choice([t for t in lexicon.TRAITS if t.zh in MERITS])
    if (flaw.zh, merit.zh) == ("懒", "努力"):
        return None
    return (
        f"虽然{who.zh}很{flaw.zh}，但是{who.zh_pronoun}很{merit.zh}。",
        f"although {who.en} {who.be} very {flaw.en}, {who.pronoun} {who.be} very {merit.en}.",
    )


@pattern
def although_likes(r: Random) -> Drawn:
    """虽然 + 喜欢: 虽然我喜欢唱歌，但是我没有时间。 Although I like singing, I don't have time."""
    who, doing = speaker(r), activity(r, "hobby")
    return (
        f"虽然{who.zh}喜欢{doing.zh}，但是{who.zh_pronoun}没有时间。",
        f"although {who.en} {who.does('like')} {english.gerund(doing.habit)}, "
        f"{who.pronoun} {who.do}n't have time.",
    )
