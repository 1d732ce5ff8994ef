"""Aspect: 了 for what was done, 过 for experience, 在 and 着 for what goes on; 没 denies them."""

from __future__ import annotations

from random import Random

from .. import chinese, english, lexicon
from ..grammar import Drawn, pattern
from ..phrases import (
    activity,
    amount,
    attributed,
    done_at,
    noun,
    place,
    someone,
    speaker,
    time,
    two_activities,
    verb,
    worn,
)


@pattern
def did_to_things(r: Random) -> Drawn:
    """Verb 了 + amount: 我昨天买了三本书。 I bought three books yesterday."""
    who, when = someone(r), time(r, "past")
    what, thing = verb(r, "买", "吃", "喝", "画", "写", "看", "听")
    zh, en = amount(r, thing, 1, 4 if what.zh == "买" else 3)
    return (
        f"{who.zh}{when.zh}{what.zh}了{zh}。",
        f"{who.en} {english.past(what.en)} {en} {when.en}.",
    )


@pattern
def did_to_adjective_thing(r: Random) -> Drawn:
    """Verb 了 + described thing: 她买了一条漂亮的裙子。 She bought a beautiful skirt."""
    who, (thing, zh_adjective, adjective) = someone(r), attributed(r, "buy", bought=True)
    return (
        f"{who.zh}买了一{thing.measure}{zh_adjective}{thing.zh}。",
        f"{who.en} bought {thing.one(adjective)}.",
    )


@pattern
def did_somewhere(r: Random) -> Drawn:
    """A whole event with 了 at the end: 我们昨天在公园跑步了。 We ran in the park yesterday."""
    who, (where, doing), when = someone(r), done_at(r), time(r, "past")
    return (
        f"{who.zh}{when.zh}在{where.zh}{doing.zh}了。",
        f"{who.en} {english.past(doing.en)} {where.at} {when.en}.",
    )


@pattern
def went_somewhere(r: Random) -> Drawn:
    """去了, 没去: 他上个月去了北京。 He went to Beijing last month."""
    who = someone(r)
    if r.random() < 0.5:
        where, when = place(r, "named", "fun"), time(r, "past")
        zh, to = where.zh, where.to
    else:
        city, when = r.choice(lexicon.CITIES), time(r, "past-long")
        zh, to = city.zh, f"to {city.en}"
    if r.random() < 0.3:
        return f"{who.zh}{when.zh}没去{zh}。", f"{who.en} didn't go {to} {when.en}."
    return f"{who.zh}{when.zh}去了{zh}。", f"{who.en} went {to} {when.en}."


@pattern
def did_not_do(r: Random) -> Drawn:
    """没 for the past: 我昨天没写作业。 I didn't do homework yesterday."""
    who, doing, when = someone(r), activity(r, "hobby", "chore", "meal"), time(r, "past")
    return (
        f"{who.zh}{when.zh}没{doing.zh}。",
        f"{who.en} didn't {doing.en} {when.en}.",
    )


@pattern
def did_not_any(r: Random) -> Drawn:
    """没 + verb + noun: 我没买苹果。 I didn't buy any apples."""
    who, (what, thing) = someone(r), verb(r, "买", "吃", "喝", "写")
    return f"{who.zh}没{what.zh}{thing.zh}。", f"{who.en} didn't {what.en} any {thing.bare}."


@pattern
def has_been_to(r: Random) -> Drawn:
    """过: 我去过北京。 I have been to Beijing. 没去过: have never been to."""
    who, city = someone(r), r.choice(lexicon.CITIES)
    zh, never = r.choice([("去过", ""), ("没去过", " never")])
    return f"{who.zh}{zh}{city.zh}。", f"{who.en} {who.have}{never} been to {city.en}."


@pattern
def has_been_times(r: Random) -> Drawn:
    """过 + times: 她去过两次上海。 She has been to Shanghai twice."""
    who, city, n = someone(r), r.choice(lexicon.CITIES), r.randrange(1, 6)
    times = {1: "once", 2: "twice"}.get(n, f"{english.number(n)} times")
    return (
        f"{who.zh}去过{chinese.count(n)}次{city.zh}。",
        f"{who.en} {who.have} been to {city.en} {times}.",
    )


# For experience, 看过这部电影 is "have seen", though 看 is "watch".
EXPERIENCED = {"watch": "see", "listen to": "hear"}


@pattern
def has_done(r: Random) -> Drawn:
    """Verb 过: 我看过这部电影。 I have seen this movie. 没…过: have never."""
    who, (what, thing) = someone(r), verb(r, "看", "听", "用")
    not_, never = r.choice([("", ""), ("没", " never")])
    done = english.participle(EXPERIENCED.get(what.en, what.en))
    return (
        f"{who.zh}{not_}{what.zh}过这{thing.measure}{thing.zh}。",
        f"{who.en} {who.have}{never} {done} this {thing.single()}.",
    )


@pattern
def is_doing(r: Random) -> Drawn:
    """在 + verb: 他在看书。 He is reading. 正在: ... right now."""
    who, doing = someone(r), activity(r, "hobby", "chore", "meal", "rest")
    zh, now = r.choice([("在", ""), ("正在", " right now")])
    return f"{who.zh}{zh}{doing.zh}。", f"{who.en} {who.be} {english.gerund(doing.en)}{now}."


@pattern
def is_doing_somewhere(r: Random) -> Drawn:
    """在 + place + verb: 我妈妈在厨房做饭。 My mother is cooking in the kitchen."""
    who, (where, doing) = someone(r), done_at(r)
    return (
        f"{who.zh}正在{where.zh}{doing.zh}。",
        f"{who.en} {who.be} {english.gerund(doing.en)} {where.at}.",
    )


@pattern
def is_not_doing(r: Random) -> Drawn:
    """没在: 我没在看电视，我在写作业。 I am not watching TV. I am doing homework."""
    who, (first, second) = speaker(r), two_activities(r, "hobby", "chore")
    return (
        f"{who.zh}没在{first.zh}，{who.zh_pronoun}在{second.zh}。",
        f"{who.en} {who.be} not {english.gerund(first.en)}. "
        f"{english.sentence(who.pronoun)} {who.be} {english.gerund(second.en)}.",
    )


@pattern
def is_wearing(r: Random) -> Drawn:
    """着 for what goes on: 她穿着一件红色的毛衣。 She is wearing a red sweater."""
    who, (zh_verb, thing, zh_look, look) = someone(r), worn(r)
    if who.pronoun in ("we", "they") and who.agreement == "they":
        return None
    return (
        f"{who.zh}{zh_verb}着一{thing.measure}{zh_look}{thing.zh}。",
        f"{who.en} {who.be} wearing {thing.one(look)}.",
    )


@pattern
def is_holding(r: Random) -> Drawn:
    """拿着: 他手里拿着一本书。 He is holding a book in his hand."""
    who, thing = speaker(r), noun(r, "small", "drink")
    if who.pronoun in ("we", "they") or thing.zh in ("邮件", "钱包"):
        return None
    return (
        f"{who.zh}手里拿着一{thing.measure}{thing.zh}。",
        f"{who.en} {who.be} holding {thing.one()} in {who.poss} hand.",
    )


LYING = ["桌子上", "椅子上", "床上", "沙发上"]


@pattern
def is_lying_there(r: Random) -> Drawn:
    """Place + 放着, 挂着: 墙上挂着一幅画。 A painting is hanging on the wall."""
    spot = r.choice([s for s in lexicon.SPOTS if s.zh in LYING or s.zh == "墙上"])
    thing = noun(r, *sorted(spot.holds))
    n = r.randrange(1, 5)
    zh_verb, doing = ("挂", "hanging") if spot.zh == "墙上" else ("放", "lying")
    en = thing.one() if n == 1 else thing.several(english.number(n))
    return (
        f"{spot.zh}{zh_verb}着{chinese.count(n)}{thing.measure}{thing.zh}。",
        f"{en} {'is' if n == 1 else 'are'} {doing} {spot.en}.",
    )


@pattern
def finished_then_did(r: Random) -> Drawn:
    """完…就…了: 他吃完晚饭就看书了。 He read right after dinner."""
    who, doing = someone(r), activity(r, "hobby")
    meal = r.choice(["早饭", "午饭", "晚饭"])
    en = {"早饭": "breakfast", "午饭": "lunch", "晚饭": "dinner"}[meal]
    return (
        f"{who.zh}吃完{meal}就{doing.zh}了。",
        f"{who.en} {english.past(doing.en)} right after {en}.",
    )
