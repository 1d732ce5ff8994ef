"""Questions that 吗 makes: is it, do you, did you, have you ever, can you."""

from __future__ import annotations

from random import Random

from .. import english, lexicon
from ..grammar import Drawn, pattern
from ..phrases import (
    HE,
    SHE,
    THEY,
    YOU,
    Subject,
    activity,
    described,
    kin,
    noun,
    place,
    time,
    trait,
)
from .being import job_of
from .describing import this_or_that


def asked(r: Random) -> Subject:
    """Whom a question may be about: you, them, your mother; seldom me."""
    return r.choice([YOU, YOU, HE, SHE, THEY, kin(r), kin(r), kin(r)])


@pattern
def is_it_a_job(r: Random) -> Drawn:
    """吗 with 是: 你妈妈是医生吗？ Is your mother a doctor?"""
    who = asked(r)
    work = job_of(r, who)
    if work is None or who == THEY:
        return None
    return f"{who.zh}是{work.zh}吗？", f"{who.be} {who.en} {english.a(work.en)}?"


@pattern
def is_person_adjective(r: Random) -> Drawn:
    """吗 with an adjective: 你累吗？ Are you tired?"""
    who = asked(r)
    how = trait(r, who)
    return f"{who.zh}{how.zh}吗？", f"{who.be} {who.en} {how.en}?"


@pattern
def is_thing_adjective(r: Random) -> Drawn:
    """吗 about a thing: 这本书有趣吗？ Is this book interesting?"""
    thing, how = described(r)
    zh, en = this_or_that(r, thing)
    return f"{zh}{how.zh}吗？", f"is {en} {how.en}?"


@pattern
def do_you_like(r: Random) -> Drawn:
    """喜欢…吗: 你喜欢踢足球吗？ Do you like playing soccer?"""
    who, doing = asked(r), activity(r, "hobby", "sport")
    return (
        f"{who.zh}喜欢{doing.zh}吗？",
        f"{who.do} {who.en} like {english.gerund(doing.habit)}?",
    )


@pattern
def do_you_have(r: Random) -> Drawn:
    """有…吗: 你有自行车吗？ Do you have a bicycle?"""
    who, thing = asked(r), noun(r, "borrow", "pet", "puton")
    return f"{who.zh}有{thing.zh}吗？", f"{who.do} {who.en} have {thing.one()}?"


@pattern
def did_you_go(r: Random) -> Drawn:
    """了吗: 他昨天去公园了吗？ Did he go to the park yesterday?"""
    who, where, when = asked(r), place(r, "named", "fun"), time(r, "past")
    return f"{who.zh}{when.zh}去{where.zh}了吗？", f"did {who.en} go {where.to} {when.en}?"


@pattern
def did_you_yet(r: Random) -> Drawn:
    """…了吗 for what is due: 你吃早饭了吗？ Have you had breakfast yet?"""
    who, doing = asked(r), activity(r, "done", "duty")
    return (
        f"{who.zh}{doing.zh}了吗？",
        f"{who.have} {who.en} {english.participle(doing.en)} yet?",
    )


@pattern
def have_you_ever(r: Random) -> Drawn:
    """过…吗: 你去过西安吗？ Have you ever been to Xi'an?"""
    who = asked(r)
    if r.random() < 0.5:
        city = r.choice(lexicon.CITIES)
        return f"{who.zh}去过{city.zh}吗？", f"{who.have} {who.en} ever been to {city.en}?"
    skill = activity(r, "skill")
    return f"{who.zh}学过{skill.zh}吗？", f"{who.have} {who.en} ever learned to {skill.habit}?"


@pattern
def can_you(r: Random) -> Drawn:
    """会…吗: 你会游泳吗？ Can you swim?"""
    who, skill = asked(r), activity(r, "skill")
    return f"{who.zh}会{skill.zh}吗？", f"can {who.en} {skill.habit}?"
