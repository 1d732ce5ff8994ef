"""Comparison: 比, 更, 最, 没有, 一样 and 越来越."""

from __future__ import annotations

from random import Random

from .. import english, lexicon
from ..grammar import Drawn, pattern
from ..phrases import (
    HE,
    SHE,
    YOU,
    I,
    Subject,
    described,
    kin,
    named,
    noun,
    one_person,
    someone,
    trait,
)


def two_people(r: Random) -> tuple[Subject, Subject]:
    """Two different people; the second in the form that follows "than"."""
    while True:
        first, second = one_person(r), r.choice([one_person, kin])(r)
        if first.zh != second.zh and first.zh_pronoun != second.zh_pronoun:
            return first, second


@pattern
def taller_than(r: Random) -> Drawn:
    """A 比 B: 我比你高。 I am taller than you."""
    first, second = two_people(r)
    how = trait(r, first, second, kind="trait")
    return (
        f"{first.zh}比{second.zh}{how.zh}。",
        f"{first.en} {first.be} {english.comparative(how.en)} than {second.as_object}.",
    )


@pattern
def a_little_taller_than(r: Random) -> Drawn:
    """A 比 B … 一点儿, 得多: 他比我高一点儿。 He is a little taller than me. 得多: much."""
    first, second = two_people(r)
    how = trait(r, first, second, kind="trait")
    zh, en = r.choice([("一点儿", "a little"), ("得多", "much")])
    return (
        f"{first.zh}比{second.zh}{how.zh}{zh}。",
        f"{first.en} {first.be} {en} {english.comparative(how.en)} than {second.as_object}.",
    )


@pattern
def not_as_tall_as(r: Random) -> Drawn:
    """A 没有 B: 我没有他高。 I am not as tall as him."""
    first, second = two_people(r)
    how = trait(r, first, second, kind="trait")
    return (
        f"{first.zh}没有{second.zh}{how.zh}。",
        f"{first.en} {first.be} not as {how.en} as {second.as_object}.",
    )


@pattern
def as_tall_as(r: Random) -> Drawn:
    """A 和 B 一样: 她和她妈妈一样漂亮。 She is as beautiful as her mother."""
    first, second = two_people(r)
    how = trait(r, first, second, kind="trait")
    return (
        f"{first.zh}和{second.zh}一样{how.zh}。",
        f"{first.en} {first.be} as {how.en} as {second.as_object}.",
    )


@pattern
def this_cheaper_than_that(r: Random) -> Drawn:
    """这个比那个: 这件衬衫比那件便宜。 This shirt is cheaper than that one."""
    thing, how = described(r)
    one = f"that {thing.unit}" if thing.unit else "that one"
    return (
        f"这{thing.measure}{thing.zh}比那{thing.measure}{how.zh}。",
        f"this {thing.single()} is {english.comparative(how.en)} than {one}.",
    )


@pattern
def mine_newer_than_yours(r: Random) -> Drawn:
    """Owners compared: 我的包比你的重。 My bag is heavier than yours."""
    thing, how = described(r, "borrow", "wear", "puton")
    be = english.AM[thing.agreement]
    owners = [
        ("我", "my", "你", "yours"),
        ("你", "your", "我", "mine"),
        ("他", "his", "我", "mine"),
    ]
    owners += [("她", "her", "我", "mine"), ("他", "his", "你", "yours"), ("我", "my", "他", "his")]
    zh, en, zh_other, other = r.choice(owners)
    return (
        f"{zh}的{thing.zh}比{zh_other}的{how.zh}。",
        f"{en} {thing.en} {be} {english.comparative(how.en)} than {other}.",
    )


# Kinds of things that are compared in general, and how: matters of taste, true in any order.
COMPARED = [
    ("fruit", ["好吃", "甜"]),
    ("dish", ["好吃", "便宜"]),
    ("animal", ["可爱", "聪明"]),
    ("wear", ["贵", "便宜", "漂亮"]),
]


@pattern
def kinds_compared(r: Random) -> Drawn:
    """Kinds in general: 苹果比橘子便宜。 Apples are cheaper than oranges."""
    tag, qualities = r.choice(COMPARED)
    first, second = r.sample(lexicon.tagged(lexicon.NOUNS, tag), 2)
    how = r.choice([a for a in lexicon.ADJECTIVES if a.zh in qualities])
    be = "is" if first.unit and first.agreement == "it" else "are"
    return (
        f"{first.zh}比{second.zh}{how.zh}。",
        f"{first.bare} {be} {english.comparative(how.en)} than {second.bare}.",
    )


@pattern
def that_one_even_more(r: Random) -> Drawn:
    """更: 这个苹果很甜，那个更甜。 This apple is very sweet, and that one is even sweeter."""
    thing, how = described(r)
    one = f"that {thing.unit}" if thing.unit else "that one"
    return (
        f"这{thing.measure}{thing.zh}很{how.zh}，那{thing.measure}更{how.zh}。",
        f"this {thing.single()} is very {how.en}, and {one} is even {english.comparative(how.en)}.",
    )


@pattern
def other_person_even_more(r: Random) -> Drawn:
    """更: 我很忙，我妈妈更忙。 I am very busy, and my mother is even busier."""
    first, second = two_people(r)
    how = trait(r, first, second, kind="trait")
    return (
        f"{first.zh}很{how.zh}，{second.zh}更{how.zh}。",
        f"{first.en} {first.be} very {how.en}, and {second.en} {second.be} even "
        f"{english.comparative(how.en)}.",
    )


GROUPS = [("我们班", "in our class"), ("我们家", "in our family"), ("这里", "here")]


@pattern
def tallest_person(r: Random) -> Drawn:
    """最: 小明是我们班最高的。 Xiao Ming is the tallest in our class."""
    zh, en = r.choice([("我们班", "in our class"), ("我们家", "in our family"), ("这里", "here")])
    who = r.choice([I, YOU, HE, SHE, named(r), named(r)]) if zh == "我们班" else one_person(r)
    if zh == "我们家" and not who.zh.startswith("我"):
        return None
    how = trait(r, who, kind="trait")
    return (
        f"{who.zh}是{zh}最{how.zh}的。",
        f"{who.en} {who.be} the {english.superlative(how.en)} {en}.",
    )


@pattern
def best_thing(r: Random) -> Drawn:
    """最 before a noun: 这是最便宜的衬衫。 This is the cheapest shirt."""
    thing, how = described(r, "buy", "story", "animal")
    zh, en = r.choice([("这", "this"), ("那", "that")])
    return (
        f"{zh}是最{how.zh}的{thing.zh}。",
        f"{en} is the {english.superlative(how.en)} {thing.single()}.",
    )


@pattern
def wants_the_best(r: Random) -> Drawn:
    """想买最…的: 我想买最大的西瓜。 I want to buy the biggest watermelon."""
    who, (thing, how) = someone(r), described(r, "buy", bought=True)
    if "drink" in thing.tags or how.zh in ("贵", "重", "辣", "慢"):
        return None
    return (
        f"{who.zh}想买最{how.zh}的{thing.zh}。",
        f"{who.en} {who.does('want')} to buy the {english.superlative(how.en)} {thing.single()}.",
    )


@pattern
def more_and_more(r: Random) -> Drawn:
    """越来越: 她越来越漂亮了。 She is getting more and more beautiful."""
    who = someone(r)
    how = trait(r, who)
    if how.zh in ("矮", "年轻") or (how.zh == "高" and "child" not in who.tags):
        return None
    more = english.comparative(how.en)
    doubled = f"more and {more}" if more.startswith("more ") else f"{more} and {more}"
    return f"{who.zh}越来越{how.zh}了。", f"{who.en} {who.be} getting {doubled}."


@pattern
def likes_that_one_more(r: Random) -> Drawn:
    """更喜欢 + choice: 我更喜欢那顶红色的帽子。 I like that red hat more."""
    who, thing, color = someone(r), noun(r, "wear", "puton"), r.choice(lexicon.COLORS)
    if "color" not in thing.tags:
        return None
    zh, en = r.choice([("这", "this"), ("那", "that")])
    return (
        f"{who.zh}更喜欢{zh}{thing.measure}{color.zh}{thing.zh}。",
        f"{who.en} {who.does('like')} {en} {thing.single(color.en)} more.",
    )


@pattern
def who_is_taller(r: Random) -> Drawn:
    """谁更: 你和你哥哥谁更高？ Who is taller, you or your older brother?"""
    first, second = two_people(r)
    how = trait(r, first, second, kind="trait")
    return (
        f"{first.zh}和{second.zh}谁更{how.zh}？",
        f"who is {english.comparative(how.en)}, {first.as_object} or {second.as_object}?",
    )
