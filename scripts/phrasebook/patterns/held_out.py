"""Patterns that train and validation never show: known words and pieces, newly put together."""

from __future__ import annotations

from random import Random

from .. import english, lexicon
from ..grammar import Drawn, held_out_pattern
from ..phrases import (
    SINGLE_PRONOUNS,
    I,
    activity,
    described,
    done_at,
    kin,
    noun,
    place,
    someone,
    speaker,
    third,
    time,
    trait,
    worn,
)
from .clauses import bare_color
from .comparing import two_people
from .describing import this_or_that
from .handling import another, result, suffered
from .linking import FLAWS, MERITS
from .yes_no import asked


@held_out_pattern
def bei_because(r: Random) -> Drawn:
    """被 inside 因为…所以: 因为我的手机被他弄坏了，所以我很生气。"""
    owner, (done, thing) = r.choice(SINGLE_PRONOUNS), suffered(r)
    who = another(r, owner)
    if done.zh not in ("弄坏了", "弄丢了", "打破了") or who == I:
        return None
    be = english.WAS[thing.agreement]
    return (
        f"因为{owner.zh}的{thing.zh}被{who.zh}{done.zh}，所以{owner.zh}很生气。",
        f"because {owner.poss} {thing.en} {be} {done.participle} by {who.as_object}, {owner.en} "
        f"{owner.be} very angry.",
    )


@held_out_pattern
def did_you_ba(r: Random) -> Drawn:
    """把 in a question: 你把门关上了吗？ Did you close the door?"""
    who, (done, thing) = someone(r), result(r)
    if who.zh.startswith("我"):
        return None
    return (
        f"{who.zh}把{thing.zh}{done.zh}吗？",
        f"did {who.en} {done.en.replace('_', 'the ' + thing.en)}?",
    )


@held_out_pattern
def should_ba(r: Random) -> Drawn:
    """应该把: 你应该把衬衫洗干净。 You should wash the shirt."""
    who, (done, thing) = someone(r), result(r)
    if done.zh not in ("关上了", "打开了", "洗干净了", "修好了", "吃完了", "喝完了"):
        return None
    zh, en = r.choice([("应该", "should"), ("必须", "must")])
    return (
        f"{who.zh}{zh}把{thing.zh}{done.zh[:-1]}。",
        f"{who.en} {en} {done.en.replace('_', 'the ' + thing.en)}.",
    )


@held_out_pattern
def like_it_because(r: Random) -> Drawn:
    """喜欢 inside 因为…所以: 因为他喜欢游泳，所以他每天游泳。"""
    who, doing = speaker(r), activity(r, "hobby")
    when = time(r, "habit")
    return (
        f"因为{who.zh}喜欢{doing.zh}，所以{who.zh_pronoun}{when.zh}{doing.zh}。",
        f"because {who.en} {who.does('like')} {english.gerund(doing.habit)}, {who.pronoun} "
        f"{who.does(doing.habit)} {when.en}.",
    )


@held_out_pattern
def how_was_what_he_made(r: Random) -> Drawn:
    """A relative clause in a question: 你妈妈做的饺子好吃吗？ Are the dumplings ... tasty?"""
    who, thing = someone(r), noun(r, "make")
    be = "is" if thing.is_mass else "are"
    return (
        f"{who.zh}做的{thing.zh}好吃吗？",
        f"{be} the {thing.bare} {who.en} {who.does('make')} tasty?",
    )


@held_out_pattern
def bought_cheaper(r: Random) -> Drawn:
    """比 between relative clauses: 我妹妹买的包比你买的便宜。"""
    who, other = third(r), r.choice(SINGLE_PRONOUNS)
    thing, how = described(r, "buy", bought=True)
    if who.zh_pronoun == other.zh or thing.unit:
        return None
    return (
        f"{who.zh}买的{thing.zh}比{other.zh}买的{how.zh}。",
        f"the {thing.en} {who.en} bought is {english.comparative(how.en)} than the one "
        f"{other.en} bought.",
    )


@held_out_pattern
def if_cheaper(r: Random) -> Drawn:
    """比 inside 如果…就: 如果这件衬衫比那件便宜，我就买它。"""
    who, (thing, how) = someone(r), described(r, "buy", worth="good", bought=True)
    one = f"that {thing.unit}" if thing.unit else "that one"
    return (
        f"如果这{thing.measure}{thing.zh}比那{thing.measure}{how.zh}，{who.zh}就买它。",
        f"if this {thing.single()} is {english.comparative(how.en)} than {one}, {who.en} will "
        f"buy it.",
    )


@held_out_pattern
def although_lazier(r: Random) -> Drawn:
    """比 inside 虽然…但是: 虽然他比我懒，但是他很聪明。"""
    first, second = two_people(r)
    flaw = r.choice([t for t in lexicon.TRAITS if t.zh in FLAWS])
    merit = r.choice([t for t in lexicon.TRAITS if t.zh in MERITS])
    if (flaw.zh, merit.zh) == ("懒", "努力") or first.pronoun == "they":
        return None
    return (
        f"虽然{first.zh}比{second.zh}{flaw.zh}，但是{first.zh_pronoun}很{merit.zh}。",
        f"although {first.en} {first.be} {english.comparative(flaw.en)} than "
        f"{second.as_object}, {first.pronoun} {first.be} very {merit.en}.",
    )


@held_out_pattern
def was_it_taken(r: Random) -> Drawn:
    """被 in a question: 你的手机被借走了吗？ Was your phone borrowed?"""
    owner, (done, thing) = r.choice(SINGLE_PRONOUNS), suffered(r)
    if not {"borrow", "lose", "break"} & thing.tags:
        return None
    be = english.WAS[thing.agreement]
    return (
        f"{owner.zh}的{thing.zh}被{done.zh}吗？",
        f"{be} {owner.poss} {thing.en} {done.participle}?",
    )


@held_out_pattern
def person_in_red_is_running(r: Random) -> Drawn:
    """A relative clause with 正在: 戴黄色帽子的人正在公园跑步。"""
    (where, doing), (zh_verb, thing, zh_look, look) = done_at(r), worn(r)
    return (
        f"{zh_verb}{bare_color(zh_look)}{thing.zh}的人正在{where.zh}{doing.zh}。",
        f"the person wearing {thing.worn(look)} is {english.gerund(doing.en)} {where.at}.",
    )


@held_out_pattern
def if_goes_can(r: Random) -> Drawn:
    """能 inside 如果…就: 如果他明天去公园，他就能踢足球。"""
    who, (where, doing), when = speaker(r), done_at(r, "goal"), time(r, "future")
    return (
        f"如果{who.zh}{when.zh}去{where.zh}，{who.zh_pronoun}就能{doing.zh}。",
        f"if {who.en} {who.does('go')} {where.to} {when.en}, {who.pronoun} can {doing.en}.",
    )


@held_out_pattern
def third_is_tallest(r: Random) -> Drawn:
    """比 and 最: 我比你高，但是小明最高。 I am taller than you, but Xiao Ming is the tallest."""
    (first, second), last = two_people(r), third(r)
    how = trait(r, first, second, last, kind="trait")
    if last.zh_pronoun in (first.zh_pronoun, second.zh_pronoun):
        return None
    return (
        f"{first.zh}比{second.zh}{how.zh}，但是{last.zh}最{how.zh}。",
        f"{first.en} {first.be} {english.comparative(how.en)} than {second.as_object}, "
        f"but {last.en} is the {english.superlative(how.en)}.",
    )


@held_out_pattern
def why_did_not(r: Random) -> Drawn:
    """为什么没: 他昨天为什么没去学校？ Why didn't he go to school yesterday?"""
    who, where, when = asked(r), place(r, "named", "fun"), time(r, "past")
    return (
        f"{who.zh}{when.zh}为什么没去{where.zh}？",
        f"why didn't {who.en} go {where.to} {when.en}?",
    )


@held_out_pattern
def please_put(r: Random) -> Drawn:
    """请 with 把 A 放在 B: 请把杯子放在桌子上。 Please put the cup on the table."""
    spot = r.choice([s for s in lexicon.SPOTS if s.zh != "墙上"])
    thing = noun(r, *sorted(spot.holds))
    zh, en = this_or_that(r, thing)
    return f"请把{zh}放在{spot.zh}。", f"please put {en} {spot.en}."


@held_out_pattern
def lost_the_gift(r: Random) -> Drawn:
    """把 with a relative clause: 我把你送给我的手表弄丢了。 I lost the watch you gave me."""
    who, thing = speaker(r), r.choice([n for n in lexicon.NOUNS if {"lose", "gift"} <= n.tags])
    giver = another(r, who)
    return (
        f"{who.zh}把{giver.zh}送给{who.zh_pronoun}的{thing.zh}弄丢了。",
        f"{who.en} lost the {thing.en} {giver.en} gave {who.obj}.",
    )


@held_out_pattern
def sad_because_lost(r: Random) -> Drawn:
    """把 inside 因为…所以: 因为小明把手机弄丢了，所以他很难过。"""
    who, thing = speaker(r), noun(r, "lose")
    how = r.choice([("难过", "sad"), ("生气", "angry"), ("紧张", "nervous")])
    return (
        f"因为{who.zh}把{thing.zh}弄丢了，所以{who.zh_pronoun}很{how[0]}。",
        f"because {who.en} lost the {thing.en}, {who.pronoun} {who.be} very {how[1]}.",
    )


@held_out_pattern
def both_were(r: Random) -> Drawn:
    """都 with 昨天 and 了: 我和我姐姐昨天都去了公园。 My older sister and I both went ..."""
    who, other, where, when = I, kin(r), place(r, "named", "fun"), time(r, "past")
    if other.zh.startswith("你"):
        return None
    return (
        f"{who.zh}和{other.zh}{when.zh}都去了{where.zh}。",
        f"{other.en} and I both went {where.to} {when.en}.",
    )
