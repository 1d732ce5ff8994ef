"""What one has done already, is about to do, will do, and always does: 已经 刚 要 会 常常."""

from __future__ import annotations

from random import Random

from .. import english, lexicon
from ..grammar import Drawn, pattern
from ..phrases import (
    activity,
    done_at,
    place,
    someone,
    time,
    verb,
)


@pattern
def already_done(r: Random) -> Drawn:
    """已经…了: 他已经起床了。 He has already gotten up."""
    who, doing = someone(r), activity(r, "done")
    return (
        f"{who.zh}已经{doing.zh}了。",
        f"{who.en} {who.have} already {english.participle(doing.en)}.",
    )


@pattern
def not_yet_done(r: Random) -> Drawn:
    """还没: 我还没吃早饭。 I haven't had breakfast yet."""
    who, doing = someone(r), activity(r, "done", "duty")
    return (
        f"{who.zh}还没{doing.zh}。",
        f"{who.en} {who.have}n't {english.participle(doing.en)} yet.",
    )


JUST_DONE = [
    ("起床", "got up"),
    ("到家", "got home"),
    ("下班", "got off work"),
    ("吃完早饭", "finished breakfast"),
    ("吃完午饭", "finished lunch"),
    ("吃完晚饭", "finished dinner"),
    ("写完作业", "finished homework"),
    ("洗完碗", "finished washing the dishes"),
    ("做完饭", "finished cooking"),
]


@pattern
def just_did(r: Random) -> Drawn:
    """刚: 我爸爸刚下班。 My father just got off work."""
    who, (zh, en) = someone(r), r.choice(JUST_DONE)
    return f"{who.zh}刚{zh}。", f"{who.en} just {en}."


@pattern
def going_to(r: Random) -> Drawn:
    """要 for plans: 我们明天要打扫房间。 We are going to clean the room tomorrow."""
    who, when, doing = someone(r), time(r, "future"), activity(r, "hobby", "chore")
    return (
        f"{who.zh}{when.zh}要{doing.zh}。",
        f"{who.en} {who.be} going to {doing.en} {when.en}.",
    )


@pattern
def will_do(r: Random) -> Drawn:
    """会 for what will be: 他明天会在家看书。 He will read at home tomorrow. 不会: won't."""
    who, when, (where, doing) = someone(r), time(r, "future"), done_at(r)
    zh, will = r.choice([("会", "will"), ("不会", "won't")])
    return (
        f"{who.zh}{when.zh}{zh}在{where.zh}{doing.zh}。",
        f"{who.en} {will} {doing.en} {where.at} {when.en}.",
    )


@pattern
def habit(r: Random) -> Drawn:
    """Habits are bare: 我每天早上跑步。 I run every morning."""
    who, when, doing = someone(r), time(r, "habit"), activity(r, "hobby", "chore")
    return (
        f"{who.zh}{when.zh}{doing.zh}。",
        f"{who.en} {who.does(doing.habit)} {when.en}.",
    )


@pattern
def often_somewhere(r: Random) -> Drawn:
    """常常, 总是, 有时候: 他常常在公园跑步。 He often runs in the park."""
    who, (where, doing) = someone(r), done_at(r)
    zh, en = r.choice([("常常", "often"), ("总是", "always"), ("有时候", "sometimes")])
    return (
        f"{who.zh}{zh}在{where.zh}{doing.zh}。",
        f"{who.en} {en} {who.does(doing.habit)} {where.at}.",
    )


@pattern
def never_does(r: Random) -> Drawn:
    """从来不: 我爸爸从来不看电视。 My father never watches TV."""
    who, doing = someone(r), activity(r, "hobby", "chore")
    return f"{who.zh}从来不{doing.zh}。", f"{who.en} never {who.does(doing.habit)}."


@pattern
def does_not(r: Random) -> Drawn:
    """不 for habits: 我不喝咖啡。 I don't drink coffee."""
    who, (what, thing) = someone(r), verb(r, "吃", "喝", "戴")
    return f"{who.zh}不{what.zh}{thing.zh}。", f"{who.en} {who.do}n't {what.en} {thing.bare}."


@pattern
def going_to_place(r: Random) -> Drawn:
    """要去: 他明年要去北京。 He is going to Beijing next year."""
    who = someone(r)
    if r.random() < 0.5:
        city, when = r.choice(lexicon.CITIES), time(r, "future-long")
        zh, to = city.zh, f"to {city.en}"
    else:
        where, when = place(r, "named", "fun"), time(r, "future")
        zh, to = where.zh, where.to
    return f"{who.zh}{when.zh}要去{zh}。", f"{who.en} {who.be} going {to} {when.en}."
