"""Relative clauses, which Chinese puts before the noun with 的, and clauses as objects."""

from __future__ import annotations

from random import Random

from .. import english, lexicon
from ..grammar import Drawn, pattern
from ..phrases import (
    SINGLE_PRONOUNS,
    WORN,
    activity,
    adjectives_for,
    described,
    done_at,
    kin,
    named,
    noun,
    one_person,
    place,
    someone,
    speaker,
    third,
    time,
    worn,
)
from .describing import this_or_that
from .handling import another

# Which verbs leave a thing behind that one can go on to talk about.
MADE_KNOWN = [
    ("买", "bought", "buy"),
    ("借", "borrowed", "borrow"),
    ("看", "read", "read"),
    ("做", "made", "make"),
    ("画", "painted", "drawn"),
]


def thing_of_clause(r: Random) -> tuple[lexicon.Noun, str, str, str]:
    """A thing known by a clause: (book, 我昨天买的书, book I bought yesterday, is)."""
    who = one_person(r)
    zh, en, tag = r.choice(MADE_KNOWN)
    thing = noun(r, tag)
    when = time(r, "past") if {"food", "drink", "read"} & thing.tags else time(r, "past-long")
    # One makes dumplings, but buys a book.
    name, be = thing.en, english.AM[thing.agreement]
    if zh == "做":
        name, be = thing.bare, "is" if thing.is_mass else "are"
    return thing, f"{who.zh}{when.zh}{zh}的{thing.zh}", f"{name} {who.en} {en} {when.en}", be


@pattern
def this_is_what_i_bought(r: Random) -> Drawn:
    """这是…的: 这是我昨天买的书。 This is the book I bought yesterday."""
    _, zh, en, be = thing_of_clause(r)
    return f"这是{zh}。", f"{'this is' if be == 'is' else 'these are'} the {en}."


@pattern
def what_i_bought_is_nice(r: Random) -> Drawn:
    """…的 + noun 很: 我昨天买的书很有趣。 The book I bought yesterday is very interesting."""
    thing, zh, en, be = thing_of_clause(r)
    fitting = [a for a in adjectives_for(thing) if a.zh not in WORN]
    if not fitting:
        return None
    how = r.choice(fitting)
    return f"{zh}很{how.zh}。", f"the {en} {be} very {how.en}."


@pattern
def what_mother_makes(r: Random) -> Drawn:
    """X 做的: 我妈妈做的饺子很好吃。 The dumplings my mother makes are very tasty."""
    who, thing = one_person(r), noun(r, "make")
    be = "is" if thing.is_mass else "are"
    zh, degree = r.choice([("很", "very"), ("非常", "extremely"), ("真", "really")])
    return (
        f"{who.zh}做的{thing.zh}{zh}好吃。",
        f"the {thing.bare} {who.en} {who.does('make')} {be} {degree} tasty.",
    )


@pattern
def the_one_who_is_doing(r: Random) -> Drawn:
    """…的人: 在公园跑步的人是我哥哥。 The person who is running in the park is my brother."""
    (where, doing), who = done_at(r), r.choice([kin, named])(r)
    return (
        f"在{where.zh}{doing.zh}的人是{who.zh}。",
        f"the person who is {english.gerund(doing.en)} {where.at} is {who.en}.",
    )


def bare_color(zh: str) -> str:
    """A color inside a longer phrase drops its 的: 穿红色毛衣的人."""
    return zh.removesuffix("的") if zh.endswith("色的") else zh


@pattern
def the_one_in_red(r: Random) -> Drawn:
    """穿…的人: 穿红色毛衣的人是谁？ Who is the person wearing a red sweater?"""
    zh_verb, thing, zh_look, look = worn(r)
    zh_look = bare_color(zh_look)
    if r.random() < 0.3:
        return (
            f"{zh_verb}{zh_look}{thing.zh}的人是谁？",
            f"who is the person wearing {thing.worn(look)}?",
        )
    who = r.choice([kin, named])(r)
    return (
        f"{zh_verb}{zh_look}{thing.zh}的人是{who.zh}。",
        f"the person wearing {thing.worn(look)} is {who.en}.",
    )


@pattern
def friend_who_can(r: Random) -> Drawn:
    """有一个…的朋友: 我有一个会弹钢琴的朋友。 I have a friend who can play the piano."""
    who, skill = someone(r), activity(r, "skill", "hobby")
    zh, en = r.choice([("会", "can"), ("喜欢", "likes")])
    if zh == "会" and "skill" not in skill.tags:
        return None
    what = skill.habit if zh == "会" else english.gerund(skill.habit)
    return (
        f"{who.zh}有一个{zh}{skill.zh}的朋友。",
        f"{who.en} {who.have} a friend who {en} {what}.",
    )


@pattern
def place_where(r: Random) -> Drawn:
    """…的地方: 这是我常常跑步的地方。 This is the place where I often run."""
    who, doing = someone(r), activity(r, "hobby", "chore", "meal")
    zh, en = r.choice([("常常", "often"), ("每天", "every day")])
    verb = who.does(doing.habit)
    en = f"often {verb}" if en == "often" else f"{verb} {en}"
    return f"这是{who.zh}{zh}{doing.zh}的地方。", f"this is the place where {who.en} {en}."


FAVORITES = [
    ("fruit", "水果", "fruit"),
    ("animal", "动物", "animals"),
    ("drink", "饮料", "drink"),
    ("dish", "食物", "food"),
]


@pattern
def thinks_thing(r: Random) -> Drawn:
    """觉得 + clause: 我觉得这件衬衫很漂亮。 I think this shirt is very beautiful."""
    who, (thing, how) = someone(r), described(r)
    zh, en = this_or_that(r, thing)
    if how.worth == "good" and r.random() < 0.5:
        return (
            f"{who.zh}觉得{zh}不太{how.zh}。",
            f"{who.en} {who.do}n't think {en} is very {how.en}.",
        )
    return (
        f"{who.zh}觉得{zh}很{how.zh}。",
        f"{who.en} {who.does('think')} {en} is very {how.en}.",
    )


@pattern
def knows_where(r: Random) -> Drawn:
    """知道 + question: 我不知道我的书在哪里。 I don't know where my book is."""
    who, thing = someone(r), noun(r, "lose", "borrow", "wear", "puton")
    owner = r.choice(SINGLE_PRONOUNS)
    zh, en = r.choice([("知道", who.does("know")), ("不知道", f"{who.do}n't know")])
    return (
        f"{who.zh}{zh}{owner.zh}的{thing.zh}在哪里。",
        f"{who.en} {en} where {owner.poss} {thing.en} {english.AM[thing.agreement]}.",
    )


@pattern
def said_that(r: Random) -> Drawn:
    """说 + clause: 我妈妈说她明天不能去公园。 My mother says she can't go to the park tomorrow."""
    who, where, when = third(r), place(r, "named", "fun"), time(r, "future")
    zh, en = r.choice([("想", "wants to"), ("不能", "can't"), ("必须", "must"), ("会", "will")])
    return (
        f"{who.zh}说{who.zh_pronoun}{when.zh}{zh}去{where.zh}。",
        f"{who.en} says {who.pronoun} {en} go {where.to} {when.en}.",
    )


@pattern
def want_the_thing_that(r: Random) -> Drawn:
    """想 + verb + 的: 我想看你昨天买的书。 I want to read the book you bought yesterday."""
    who, when = someone(r), time(r, "past")
    owner = another(r, who)
    zh, en, tag = r.choice(
        [("吃", "eat", "food"), ("喝", "drink", "drink"), ("看", "read", "read")]
    )
    thing = noun(r, tag)
    if not {"buy", "penny"} & thing.tags:
        return None
    return (
        f"{who.zh}想{zh}{owner.zh}{when.zh}买的{thing.zh}。",
        f"{who.en} {who.does('want')} to {en} the {thing.en} {owner.en} bought {when.en}.",
    )


@pattern
def like_what_you_gave(r: Random) -> Drawn:
    """喜欢…的: 我很喜欢你送给我的礼物。 I like the gift you gave me very much."""
    who, thing = speaker(r), noun(r, "gift")
    giver = another(r, who)
    return (
        f"{who.zh}很喜欢{giver.zh}送给{who.zh_pronoun}的{thing.zh}。",
        f"{who.en} {who.does('like')} the {thing.en} {giver.en} gave {who.obj} very much.",
    )


LIKED = ("聪明", "友好", "善良", "勇敢", "努力", "幽默", "漂亮", "年轻")


@pattern
def like_people_who_are(r: Random) -> Drawn:
    """喜欢…的人: 她喜欢幽默的人。 She likes funny people."""
    who, how = someone(r), r.choice([t for t in lexicon.TRAITS if t.zh in LIKED])
    return f"{who.zh}喜欢{how.zh}的人。", f"{who.en} {who.does('like')} {how.en} people."


@pattern
def favorite(r: Random) -> Drawn:
    """最喜欢的: 我最喜欢的运动是游泳。 My favorite sport is swimming."""
    who = someone(r)
    form = r.randrange(4)
    if form == 0:
        color = r.choice(lexicon.COLORS)
        zh, en, be, zh_what, what = "颜色", "color", "is", bare_color(color.zh), color.en
    elif form == 1:
        sport = activity(r, "sport")
        zh, en, be, zh_what = "运动", "sport", "is", sport.zh
        what = english.gerund(sport.habit)
    elif form == 2:
        city = r.choice([c for c in lexicon.CITIES if c.where == "home"])
        zh, en, be, zh_what, what = "城市", "city", "is", city.zh, city.en
    else:
        tag, zh, en = r.choice(FAVORITES)
        thing = noun(r, tag)
        be = "are" if en == "animals" else "is"
        zh_what, what = thing.zh, thing.bare
    return f"{who.zh}最喜欢的{zh}是{zh_what}。", f"{who.whose} favorite {en} {be} {what}."
