"""Modal verbs: 会 能 可以 应该 必须 不用."""

from __future__ import annotations

from random import Random

from ..grammar import Drawn, pattern
from ..phrases import (
    HE,
    SHE,
    WE,
    I,
    activity,
    done_at,
    kin,
    noun,
    place,
    someone,
    speaker,
    time,
    two_activities,
)


@pattern
def can_skill(r: Random) -> Drawn:
    """会 for skills: 我会游泳。 I can swim. 不会: can't."""
    who, skill = someone(r), activity(r, "skill")
    zh, en = r.choice([("会", "can"), ("不会", "can't")])
    return f"{who.zh}{zh}{skill.zh}。", f"{who.en} {en} {skill.habit}."


@pattern
def can_one_not_other(r: Random) -> Drawn:
    """会 A，但是不会 B: 她会唱歌，但是不会跳舞。 She can sing, but she can't dance."""
    who, (first, second) = speaker(r), two_activities(r, "skill")
    return (
        f"{who.zh}会{first.zh}，但是不会{second.zh}。",
        f"{who.en} can {first.habit}, but {who.pronoun} can't {second.habit}.",
    )


@pattern
def can_you_help(r: Random) -> Drawn:
    """能 for requests: 你能帮我打扫房间吗？ Can you help me clean the room?"""
    who, chore = someone(r), activity(r, "help")
    if who.zh.startswith("你"):
        return None
    return f"你能帮{who.zh}{chore.zh}吗？", f"can you help {who.as_object} {chore.en}?"


OWNERS = [
    ("我", "my"),
    ("我们", "our"),
    ("我妈妈", "my mother's"),
    ("我哥哥", "my older brother's"),
]


@pattern
def may_use(r: Random) -> Drawn:
    """可以 for leave: 你可以用我的词典。 You may use my dictionary."""
    thing = noun(r, "borrow", "tool")
    who, owner = r.choice([("你", "you"), ("他", "he"), ("他们", "they")]), r.choice(OWNERS)
    zh, en = r.choice([("可以", "may"), ("不可以", "may not")])
    zh_verb, verb_en = r.choice([("用", "use"), ("借", "borrow")])
    return (
        f"{who[0]}{zh}{zh_verb}{owner[0]}的{thing.zh}。",
        f"{who[1]} {en} {verb_en} {owner[1]} {thing.en}.",
    )


@pattern
def may_do_there(r: Random) -> Drawn:
    """可以 with a place: 我们可以在公园踢足球。 We may play soccer in the park."""
    who, (where, doing) = someone(r), done_at(r)
    return f"{who.zh}可以在{where.zh}{doing.zh}。", f"{who.en} may {doing.en} {where.at}."


@pattern
def should(r: Random) -> Drawn:
    """应该: 你今天应该打扫房间。 You should clean the room today."""
    who, doing = someone(r), activity(r, "chore", "rest")
    zh, en = r.choice([("应该", "should"), ("不应该", "shouldn't")])
    when = r.choice([("今天", "today"), ("现在", "now")])
    return (
        f"{who.zh}{when[0]}{zh}{doing.zh}。",
        f"{who.en} {en} {doing.en} {when[1]}.",
    )


@pattern
def must(r: Random) -> Drawn:
    """必须: 我今天必须写作业。 I must do homework today."""
    who, doing = someone(r), activity(r, "chore", "duty")
    zh, en = r.choice([("今天", "today"), ("明天", "tomorrow")])
    return f"{who.zh}{zh}必须{doing.zh}。", f"{who.en} must {doing.en} {en}."


@pattern
def need_not(r: Random) -> Drawn:
    """不用: 你今天不用做饭。 You don't have to cook today."""
    who, doing = someone(r), activity(r, "chore", "duty")
    zh, en = r.choice([("今天", "today"), ("明天", "tomorrow")])
    return f"{who.zh}{zh}不用{doing.zh}。", f"{who.en} {who.do}n't have to {doing.en} {en}."


@pattern
def may_i(r: Random) -> Drawn:
    """我可以…吗: 我可以用你的手机吗？ May I use your phone?"""
    thing, who = noun(r, "borrow", "tool"), r.choice([I, I, WE, HE, SHE, kin(r)])
    owner = r.choice(
        [("你", "your"), ("你妈妈", "your mother's"), ("你哥哥", "your older brother's")]
    )
    if who.zh.startswith("你"):
        return None
    zh, en = r.choice([("用", "use"), ("借", "borrow"), ("看看", "have a look at")])
    return (
        f"{who.zh}可以{zh}{owner[0]}的{thing.zh}吗？",
        f"may {who.en} {en} {owner[1]} {thing.en}?",
    )


@pattern
def can_come(r: Random) -> Drawn:
    """能 for what is possible: 他明天不能去公园。 He can't go to the park tomorrow."""
    who, where, when = someone(r), place(r, "named", "fun"), time(r, "future")
    zh, en = r.choice([("能", "can"), ("不能", "can't")])
    return f"{who.zh}{when.zh}{zh}去{where.zh}。", f"{who.en} {en} go {where.to} {when.en}."
