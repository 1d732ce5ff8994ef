"""One thing and another: 的时候, 以前, 以后, 先…然后, 一…就, 一边…一边, 不但…而且, 和…都."""

from __future__ import annotations

from random import Random

from .. import english, lexicon
from ..grammar import Drawn, pattern
from ..phrases import (
    SINGLE_PRONOUNS,
    activity,
    done_at,
    someone,
    speaker,
    third,
    two_activities,
)
from .linking import at_home

MEALS = ["吃早饭", "吃午饭", "吃晚饭"]

HOUSEWORK = ["做饭", "洗碗", "洗衣服", "打扫房间", "包饺子"]

DESK_WORK = ["写作业", "学习", "工作", "写信", "学英语", "学中文"]

# What goes well with what, for 一边…一边 and the like.
SIDELINES = [
    (MEALS, ["听音乐", "看电视", "聊天"]),
    (HOUSEWORK, ["听音乐", "唱歌", "聊天"]),
    (DESK_WORK, ["听音乐", "喝茶", "喝咖啡"]),
    (["跑步", "散步", "画画", "骑自行车"], ["听音乐", "聊天", "唱歌"]),
]


def main_and_sideline(r: Random) -> tuple[lexicon.Activity, lexicon.Activity]:
    """Two things done at once: 做饭 and 听音乐."""
    mains, sidelines = r.choice(SIDELINES)
    return lexicon.ACTIVITY[r.choice(mains)], lexicon.ACTIVITY[r.choice(sidelines)]


@pattern
def when_doing(r: Random) -> Drawn:
    """的时候: 我做饭的时候喜欢听音乐。 I like listening to music when I cook."""
    who, (main, sideline) = speaker(r), main_and_sideline(r)
    return (
        f"{who.zh}{main.zh}的时候喜欢{sideline.zh}。",
        f"{who.en} {who.does('like')} {english.gerund(sideline.habit)} when {who.pronoun} "
        f"{who.does(main.habit)}.",
    )


@pattern
def when_i_got_home(r: Random) -> Drawn:
    """的时候 in the past: 我到家的时候，我妈妈在做饭。 When I got home, my mother was cooking."""
    who, doing = r.choice(SINGLE_PRONOUNS), at_home(r)
    other = third(r)
    if other.zh_pronoun == who.zh:
        return None
    return (
        f"{who.zh}到家的时候，{other.zh}在{doing.zh}。",
        f"when {who.en} got home, {other.en} was {english.gerund(doing.en)}.",
    )


@pattern
def after_doing(r: Random) -> Drawn:
    """以后: 我爸爸下班以后常常跑步。 My father often runs after he gets off work."""
    who, first = speaker(r), lexicon.ACTIVITY[r.choice(["起床", "下班", "回家", *MEALS])]
    second = activity(r, "hobby")
    return (
        f"{who.zh}{first.zh}以后常常{second.zh}。",
        f"{who.en} often {who.does(second.habit)} after {who.pronoun} {who.does(first.habit)}.",
    )


@pattern
def before_doing(r: Random) -> Drawn:
    """以前: 我睡觉以前总是看书。 I always read before I sleep."""
    who, second = speaker(r), at_home(r)
    first = lexicon.ACTIVITY[r.choice(["睡觉", "吃早饭", "吃晚饭", "上课", "上班"])]
    if second.zh in ("睡觉", "休息", *MEALS):
        return None
    return (
        f"{who.zh}{first.zh}以前总是{second.zh}。",
        f"{who.en} always {who.does(second.habit)} before {who.pronoun} {who.does(first.habit)}.",
    )


@pattern
def first_then(r: Random) -> Drawn:
    """先…然后: 今天我要先吃午饭，然后看书。 Today I will have lunch first and then read."""
    who, first, second = someone(r), activity(r, "meal", "chore"), activity(r, "hobby", "rest")
    zh, en = r.choice([("今天", "today"), ("明天", "tomorrow")])
    if first.zh in ("做饭", "包饺子", "开会") or first.zh[0] == second.zh[0]:
        return None
    return (
        f"{zh}{who.zh}要先{first.zh}，然后{second.zh}。",
        f"{en} {who.en} will {first.en} first and then {second.en}.",
    )


# When one does what at once: (Chinese, English, what follows).
OCCASIONS = [
    ("到家", "get home", ["看电视", "做饭", "写作业", "洗澡", "听音乐", "玩游戏", "睡觉", "上网"]),
    ("起床", "get up", ["跑步", "喝茶", "喝咖啡", "听音乐", "看报纸", "吃早饭", "洗澡", "上网"]),
    ("下班", "get off work", ["回家", "买东西", "跑步", "游泳", "打篮球", "喝咖啡", "打电话"]),
    ("吃完晚饭", "finish dinner", ["散步", "看电视", "洗碗", "写作业", "看书", "弹钢琴", "下棋"]),
]


@pattern
def as_soon_as(r: Random) -> Drawn:
    """一…就: 他一回家就看电视。 He watches TV as soon as he gets home."""
    who, (zh, en, seconds) = speaker(r), r.choice(OCCASIONS)
    second = lexicon.ACTIVITY[r.choice(seconds)]
    return (
        f"{who.zh}一{zh}就{second.zh}。",
        f"{who.en} {who.does(second.habit)} as soon as {who.pronoun} {who.does(en)}.",
    )


@pattern
def at_the_same_time(r: Random) -> Drawn:
    """一边…一边: 她一边做饭，一边听音乐。 She is listening to music while cooking."""
    who, (main, sideline) = someone(r), main_and_sideline(r)
    return (
        f"{who.zh}一边{main.zh}，一边{sideline.zh}。",
        f"{who.en} {who.be} {english.gerund(sideline.en)} while {english.gerund(main.en)}.",
    )


@pattern
def not_only_but_also(r: Random) -> Drawn:
    """不但…而且: 他不但会唱歌，而且会跳舞。 He can not only sing but also dance."""
    who, (first, second) = someone(r), two_activities(r, "skill")
    return (
        f"{who.zh}不但会{first.zh}，而且会{second.zh}。",
        f"{who.en} can not only {first.habit} but also {second.habit}.",
    )


@pattern
def both_people(r: Random) -> Drawn:
    """A 和 B 都: 我和我姐姐都喜欢画画。 My older sister and I both like drawing."""
    who, other, doing = r.choice(SINGLE_PRONOUNS), third(r), activity(r, "hobby")
    if who.zh == other.zh_pronoun:
        return None
    pair = f"{other.en} and I" if who.zh == "我" else f"{who.en} and {other.en}"
    return (
        f"{who.zh}和{other.zh}都喜欢{doing.zh}。",
        f"{pair} both like {english.gerund(doing.habit)}.",
    )


@pattern
def together_with(r: Random) -> Drawn:
    """和…一起: 我昨天和小王一起打篮球了。 I played basketball with Xiao Wang yesterday."""
    who, other, (where, doing) = someone(r), third(r), done_at(r)
    if who.zh_pronoun[0] == other.zh_pronoun[0] or doing.zh in ("睡觉", "洗澡"):
        return None
    return (
        f"{who.zh}喜欢和{other.zh}一起在{where.zh}{doing.zh}。",
        f"{who.en} {who.does('like')} {english.gerund(doing.habit)} {where.at} with {other.en}.",
    )
