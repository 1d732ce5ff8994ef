"""Questions with question words: 什么 谁 哪里 几 多少 为什么 怎么 还是."""

from __future__ import annotations

from random import Random

from .. import english
from ..grammar import Drawn, pattern
from ..phrases import (
    activity,
    done_at,
    noun,
    place,
    someone,
    time,
    trait,
    two_nouns,
    verb,
)
from .describing import this_or_that
from .yes_no import asked


@pattern
def what_doing_there(r: Random) -> Drawn:
    """什么: 你妈妈在厨房做什么？ What is your mother doing in the kitchen?"""
    who, where = asked(r), place(r)
    return f"{who.zh}在{where.zh}做什么？", f"what {who.be} {who.en} doing {where.at}?"


@pattern
def what_bought(r: Random) -> Drawn:
    """买了什么: 你昨天在超市买了什么？ What did you buy at the supermarket yesterday?"""
    who, where, when = asked(r), place(r, "shop"), time(r, "past")
    zh, en = ("吃", "eat") if where.zh in ("饭馆", "咖啡馆") else ("买", "buy")
    return (
        f"{who.zh}{when.zh}在{where.zh}{zh}了什么？",
        f"what did {who.en} {en} {where.at} {when.en}?",
    )


@pattern
def what_will_do(r: Random) -> Drawn:
    """想…什么: 你明天想做什么？ What do you want to do tomorrow?"""
    who, when = asked(r), time(r, "future")
    zh, en = r.choice(
        [("做", "do"), ("吃", "eat"), ("买", "buy"), ("看", "watch"), ("学", "learn")]
    )
    return (
        f"{who.zh}{when.zh}想{zh}什么？",
        f"what {who.do} {who.en} want to {en} {when.en}?",
    )


@pattern
def what_color(r: Random) -> Drawn:
    """什么颜色: 你的包是什么颜色的？ What color is your bag?"""
    who, thing = asked(r), noun(r, "color")
    if not {"wear", "puton", "borrow", "lose"} & thing.tags:
        return None
    return (
        f"{who.zh}的{thing.zh}是什么颜色的？",
        f"what color {english.AM[thing.agreement]} {who.whose} {thing.en}?",
    )


@pattern
def who_can(r: Random) -> Drawn:
    """谁 as subject: 谁会弹钢琴？ Who can play the piano? 谁想…: Who wants to ..."""
    doing = activity(r, "hobby", "skill")
    zh, en = r.choice([("想", "wants to"), ("喜欢", "likes"), ("不喜欢", "doesn't like")])
    if zh == "想":
        return f"谁想{doing.zh}？", f"who wants to {doing.en}?"
    return f"谁{zh}{doing.zh}？", f"who {en} {english.gerund(doing.habit)}?"


@pattern
def who_is_there(r: Random) -> Drawn:
    """谁在 place: 谁在公园跑步？ Who is running in the park?"""
    where, doing = done_at(r)
    return f"谁在{where.zh}{doing.zh}？", f"who is {english.gerund(doing.en)} {where.at}?"


@pattern
def whose_is_this(r: Random) -> Drawn:
    """谁的: 这是谁的雨伞？ Whose umbrella is this?"""
    thing = noun(r, "borrow", "lose", "wear", "puton", "used")
    zh, one, many = r.choice([("这", "this", "these"), ("那", "that", "those")])
    be = f"are {many}" if thing.agreement == "they" else f"is {one}"
    return f"{zh}是谁的{thing.zh}？", f"whose {thing.en} {be}?"


@pattern
def where_is_thing(r: Random) -> Drawn:
    """哪里 of a thing: 我的钥匙在哪里？ Where is my key?"""
    who, thing = someone(r), noun(r, "lose", "borrow", "wear", "puton")
    return (
        f"{who.zh}的{thing.zh}在哪里？",
        f"where {english.AM[thing.agreement]} {who.whose} {thing.en}?",
    )


@pattern
def where_doing(r: Random) -> Drawn:
    """在哪里 + verb: 你在哪里学英语？ Where do you study English?"""
    who, doing = asked(r), activity(r, "hobby", "chore", "meal")
    zh, en = r.choice([("", ""), ("常常", "usually ")])
    return (
        f"{who.zh}{zh}在哪里{doing.zh}？",
        f"where {who.do} {who.en} {en}{doing.habit}?",
    )


@pattern
def how_many_have(r: Random) -> Drawn:
    """几 + measure word: 你有几本书？ How many books do you have?"""
    who, thing = asked(r), noun(r, "borrow", "pet", "puton", "wear")
    things = thing.bare if not thing.unit else f"{english.plural(thing.unit)} of {thing.en}"
    return (
        f"{who.zh}有几{thing.measure}{thing.zh}？",
        f"how many {things} {who.do} {who.en} have?",
    )


@pattern
def how_many_did(r: Random) -> Drawn:
    """Verb 了几: 他买了几个苹果？ How many apples did he buy?"""
    who, (what, thing) = asked(r), verb(r, "买", "吃", "喝", "写", "画", "看")
    things = thing.bare if not thing.unit else f"{english.plural(thing.unit)} of {thing.en}"
    return (
        f"{who.zh}{what.zh}了几{thing.measure}{thing.zh}？",
        f"how many {things} did {who.en} {what.en}?",
    )


@pattern
def what_time(r: Random) -> Drawn:
    """几点: 你每天几点起床？ What time do you get up every day?"""
    who, doing, when = asked(r), activity(r, "daily", "meal"), r.choice(["每天", "明天", "昨天"])
    if when == "每天":
        en = f"what time {who.do} {who.en} {doing.habit} every day?"
    elif when == "昨天":
        return (
            f"{who.zh}昨天几点{doing.zh}的？",
            f"what time did {who.en} {doing.en} yesterday?",
        )
    else:
        en = f"what time will {who.en} {doing.en} tomorrow?"
    return f"{who.zh}{when}几点{doing.zh}？", en


@pattern
def why_feel(r: Random) -> Drawn:
    """为什么 + adjective: 你为什么这么高兴？ Why are you so happy?"""
    who = asked(r)
    how = trait(r, who, kind="state")
    zh, be, when = r.choice([("", who.be, ""), ("昨天", who.was, " yesterday")])
    so = "那么" if zh else "这么"
    return f"{who.zh}{zh}为什么{so}{how.zh}？", f"why {be} {who.en} so {how.en}{when}?"


@pattern
def why_not_like(r: Random) -> Drawn:
    """为什么 + verb: 你为什么不喜欢跑步？ Why don't you like running?"""
    who, doing = asked(r), activity(r, "hobby")
    zh, en = r.choice([("不喜欢", f"{who.do}n't"), ("喜欢", who.do)])
    return (
        f"{who.zh}为什么{zh}{doing.zh}？",
        f"why {en} {who.en} like {english.gerund(doing.habit)}?",
    )


@pattern
def how_to_go(r: Random) -> Drawn:
    """怎么去: 你每天怎么去学校？ How do you go to school every day?"""
    who, where = asked(r), place(r, "named", "fun")
    zh, en = r.choice([("每天", "every day"), ("周末", "on weekends")])
    return (
        f"{who.zh}{zh}怎么去{where.zh}？",
        f"how {who.do} {who.en} go {where.to} {en}?",
    )


HOW_TO = [
    ("做", "make", "make"),
    ("用", "use", "tool"),
    ("用", "use", "machine"),
    ("写", "write", "written"),
    ("修", "fix", "machine"),
]


@pattern
def how_to_do(r: Random) -> Drawn:
    """怎么 + verb: 你知道怎么用这台相机吗？ Do you know how to use this camera?"""
    who = asked(r)
    zh, en, tag = r.choice(HOW_TO)
    thing = noun(r, tag)
    zh_object, en_object = thing.zh, thing.bare
    if tag in ("tool", "machine"):
        zh_object, en_object = f"这{thing.measure}{thing.zh}", f"this {thing.single()}"
    if zh == "用" and thing.zh in ("自行车", "车", "玩具", "手表"):
        return None
    return (
        f"{who.zh}知道怎么{zh}{zh_object}吗？",
        f"{who.do} {who.en} know how to {en} {en_object}?",
    )


@pattern
def how_much_is_it(r: Random) -> Drawn:
    """多少钱: 这件衬衫多少钱？ How much is this shirt?"""
    thing = noun(r, "buy")
    zh, en = this_or_that(r, thing)
    return f"{zh}多少钱？", f"how much is {en}?"


CHOICES = [
    ("喝", "drink", "drink"),
    ("吃", "eat", "fruit"),
    ("吃", "eat", "dish"),
    ("买", "buy", "wear"),
    ("买", "buy", "puton"),
]


@pattern
def this_or_that_one(r: Random) -> Drawn:
    """还是: 你想喝茶还是咖啡？ Do you want to drink tea or coffee?"""
    who = asked(r)
    zh, en, tag = r.choice(CHOICES)
    first, second = two_nouns(r, tag)
    one, other = first.bare, second.bare
    if zh == "买":
        one, other = first.one(), second.one()
    return (
        f"{who.zh}想{zh}{first.zh}还是{second.zh}？",
        f"{who.do} {who.en} want to {en} {one} or {other}?",
    )
