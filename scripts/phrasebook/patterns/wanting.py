"""Wishes, plans, likes, requests and prohibitions: 想 希望 打算 喜欢 请 别 吧, and 教."""

from __future__ import annotations

from random import Random

from .. import english, lexicon
from ..grammar import Drawn, pattern
from ..phrases import (
    activity,
    amount,
    done_at,
    noun,
    someone,
    time,
    verb,
)


@pattern
def want_to(r: Random) -> Drawn:
    """想: 我想踢足球。 I want to play soccer. 不想: don't want to."""
    who, doing = someone(r), activity(r, "hobby", "rest", "meal")
    if r.random() < 0.5:
        return f"{who.zh}想{doing.zh}。", f"{who.en} {who.does('want')} to {doing.en}."
    return f"{who.zh}不想{doing.zh}。", f"{who.en} {who.do}n't want to {doing.en}."


@pattern
def want_to_eat(r: Random) -> Drawn:
    """想 + verb + amount: 我想喝一杯茶。 I want to drink a cup of tea."""
    who, (what, thing) = someone(r), verb(r, "吃", "喝", "买", "写")
    zh, en = amount(r, thing, 1, 2)
    return f"{who.zh}想{what.zh}{zh}。", f"{who.en} {who.does('want')} to {what.en} {en}."


@pattern
def want_to_do_there(r: Random) -> Drawn:
    """想去 place: 他想去公园散步。 He wants to go to the park to take a walk."""
    who, (where, doing) = someone(r), done_at(r, "goal")
    return (
        f"{who.zh}想去{where.zh}{doing.zh}。",
        f"{who.en} {who.does('want')} to go {where.to} to {doing.en}.",
    )


@pattern
def plan_to(r: Random) -> Drawn:
    """打算: 我们打算明年去法国。 We plan to go to France next year."""
    who = someone(r)
    if r.random() < 0.5:
        city, when = r.choice(lexicon.CITIES), time(r, "future-long")
        zh, en = f"去{city.zh}", f"go to {city.en}"
    else:
        doing, when = activity(r, "hobby", "chore"), time(r, "future")
        zh, en = doing.zh, doing.en
    return f"{who.zh}打算{when.zh}{zh}。", f"{who.en} {who.does('plan')} to {en} {when.en}."


@pattern
def hope_to(r: Random) -> Drawn:
    """希望能学会: 她希望明年能学会游泳。 She hopes to learn to swim next year."""
    who, skill = someone(r), activity(r, "skill")
    zh, en = r.choice([("明年", "next year"), ("今年", "this year")])
    return (
        f"{who.zh}希望{zh}能学会{skill.zh}。",
        f"{who.en} {who.does('hope')} to learn to {skill.habit} {en}.",
    )


@pattern
def like_doing(r: Random) -> Drawn:
    """喜欢 + verb: 我喜欢踢足球。 I like playing soccer. 不喜欢: don't like."""
    who, doing = someone(r), activity(r, "hobby")
    like = english.gerund(doing.habit)
    if r.random() < 0.5:
        return f"{who.zh}喜欢{doing.zh}。", f"{who.en} {who.does('like')} {like}."
    return f"{who.zh}不喜欢{doing.zh}。", f"{who.en} {who.do}n't like {like}."


@pattern
def like_things(r: Random) -> Drawn:
    """喜欢 + noun: 她喜欢花。 She likes flowers. 很喜欢: ... very much."""
    who, thing = someone(r), noun(r, "food", "drink", "animal", "story")
    if r.random() < 0.5:
        return (
            f"{who.zh}很喜欢{thing.zh}。",
            f"{who.en} {who.does('like')} {thing.bare} very much.",
        )
    return f"{who.zh}不喜欢{thing.zh}。", f"{who.en} {who.do}n't like {thing.bare}."


@pattern
def dont_forget(r: Random) -> Drawn:
    """别忘了: 明天别忘了带你的雨伞。 Don't forget to bring your umbrella tomorrow."""
    thing = noun(r, "lose", "borrow", "puton", "gift")
    when = time(r, "future")
    if "vehicle" in thing.tags or thing.zh in ("沙发", "车", "电脑", "花"):
        return None
    return (
        f"{when.zh}别忘了带你的{thing.zh}。",
        f"don't forget to bring your {thing.en} {when.en}.",
    )


@pattern
def lets_go(r: Random) -> Drawn:
    """吧: 我们明天去公园散步吧。 Let's go to the park to take a walk tomorrow."""
    (where, doing), when = done_at(r, "goal"), time(r, "future")
    if "工作" in doing.zh:
        return None
    return (
        f"我们{when.zh}去{where.zh}{doing.zh}吧。",
        f"let's go {where.to} to {doing.en} {when.en}.",
    )


@pattern
def teach(r: Random) -> Drawn:
    """教 with two objects: 我爸爸教我游泳。 My father teaches me to swim."""
    who, other, skill = someone(r), someone(r), activity(r, "skill")
    if who.zh_pronoun[0] == other.zh_pronoun[0]:
        return None
    return (
        f"{who.zh}教{other.zh}{skill.zh}。",
        f"{who.en} {who.does('teach')} {other.as_object} to {skill.habit}.",
    )


QUIET_PLACES = (
    "图书馆",
    "教室",
    "办公室",
    "医院",
    "博物馆",
    "银行",
    "电影院",
    "书店",
    "邮局",
    "学校",
    "超市",
)

DISTURBING = (
    "聊天",
    "打电话",
    "唱歌",
    "跳舞",
    "睡觉",
    "玩游戏",
    "踢足球",
    "吃午饭",
    "打篮球",
    "弹吉他",
)

WHEN_ASKED = [
    ("现在", "now"),
    ("今天", "today"),
    ("明天", "tomorrow"),
    ("今天下午", "this afternoon"),
    ("今天晚上", "tonight"),
    ("明天早上", "tomorrow morning"),
    ("明天下午", "tomorrow afternoon"),
]


@pattern
def please_do(r: Random) -> Drawn:
    """请: 请明天打扫房间。 Please clean the room tomorrow."""
    doing, when = activity(r, "help"), r.choice(WHEN_ASKED)
    zh, en = when
    return f"请{zh}{doing.zh}。", f"please {doing.en} {en}."


@pattern
def please_dont(r: Random) -> Drawn:
    """请不要, 别: 别在图书馆聊天。 Don't chat at the library."""
    where = r.choice([p for p in lexicon.PLACES if p.zh in QUIET_PLACES])
    doing = lexicon.ACTIVITY[r.choice(DISTURBING)]
    zh, en = r.choice([("别", "don't"), ("请不要", "please don't")])
    return f"{zh}在{where.zh}{doing.zh}。", f"{en} {doing.habit} {where.at}."
