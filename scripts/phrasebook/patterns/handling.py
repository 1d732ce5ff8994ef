"""What is done to things: 把, 被, and verbs with two objects (送给, 借给, 给…买)."""

from __future__ import annotations

from random import Random

from .. import english, lexicon
from ..grammar import Drawn, pattern
from ..phrases import (
    HE,
    SHE,
    SINGLE_PRONOUNS,
    WE,
    I,
    Subject,
    attributed,
    noun,
    one_person,
    someone,
    time,
)
from .describing import this_or_that


def result(r: Random) -> tuple[lexicon.Result, lexicon.Noun]:
    """A verb with its result and a thing it can happen to: 打破了, 杯子."""
    done = r.choice(lexicon.RESULTS)
    return done, noun(r, *sorted(done.takes))


def phrase(done: lexicon.Result, thing: str) -> str:
    """Puts the object into the verb phrase: ("take _ away", "the bag") -> take the bag away."""
    return done.en.replace("_", thing)


@pattern
def ba_the_thing(r: Random) -> Drawn:
    """把 + known thing: 我把杯子打破了。 I broke the cup."""
    who, (done, thing) = someone(r), result(r)
    return (
        f"{who.zh}把{thing.zh}{done.zh}。",
        f"{who.en} {english.past(phrase(done, 'the ' + thing.en))}.",
    )


@pattern
def ba_this_thing(r: Random) -> Drawn:
    """把 + 这/那: 他把那扇窗户打破了。 He broke that window."""
    who, (done, thing) = someone(r), result(r)
    zh, en = this_or_that(r, thing)
    return f"{who.zh}把{zh}{done.zh}。", f"{who.en} {english.past(phrase(done, en))}."


# What others do to one's things. The passive of the rest (washed by me) is grammar, not speech.
SUFFERED = (
    "吃完了",
    "喝完了",
    "打破了",
    "弄丢了",
    "弄坏了",
    "卖掉了",
    "借走了",
    "拿走了",
    "修好了",
)


def suffered(r: Random) -> tuple[lexicon.Result, lexicon.Noun]:
    """A result for a passive sentence."""
    done, thing = result(r)
    return (done, thing) if done.zh in SUFFERED else suffered(r)


@pattern
def ba_my_thing(r: Random) -> Drawn:
    """把 + owned thing: 他把我的手机弄丢了。 He lost my phone."""
    who, owner, (done, thing) = someone(r), r.choice(SINGLE_PRONOUNS), suffered(r)
    if not {"borrow", "lose", "break"} & thing.tags or owner == who:
        return None
    past = english.past(phrase(done, f"{owner.poss} {thing.en}"))
    return f"{who.zh}把{owner.zh}的{thing.zh}{done.zh}。", f"{who.en} {past}."


@pattern
def ba_not(r: Random) -> Drawn:
    """没把: 他没把门关上。 He didn't close the door."""
    who, (done, thing) = someone(r), result(r)
    return (
        f"{who.zh}没把{thing.zh}{done.zh[:-1]}。",
        f"{who.en} didn't {phrase(done, 'the ' + thing.en)}.",
    )


@pattern
def ba_put(r: Random) -> Drawn:
    """把 A 放在 B: 我把书放在桌子上了。 I put the book on the table."""
    who, spot = someone(r), r.choice([s for s in lexicon.SPOTS if s.zh != "墙上"])
    thing = noun(r, *sorted(spot.holds))
    return (
        f"{who.zh}把{thing.zh}放在{spot.zh}了。",
        f"{who.en} put the {thing.en} {spot.en}.",
    )


REQUESTS = [
    ("关上", "close", "shut"),
    ("打开", "open", "shut"),
    ("洗干净", "wash", "wash"),
    ("修好", "fix", "machine"),
    ("拿给我", "bring me", "small"),
]


@pattern
def ba_please(r: Random) -> Drawn:
    """请把: 请把门关上。 Please close the door."""
    zh, en, tag = r.choice(REQUESTS)
    thing = noun(r, tag)
    zh_thing, en_thing = thing.zh, f"the {thing.en}"
    if r.random() < 0.5:
        zh_thing, en_thing = this_or_that(r, thing)
    if thing.zh == "邮件":
        return None
    return f"请把{zh_thing}{zh}。", f"please {en} {en_thing}."


def another(r: Random, who: Subject) -> Subject:
    """Somebody else, who is not named with a pronoun of `who` (not 他 and 他妈妈)."""
    other = someone(r)
    return another(r, who) if other.zh_pronoun[0] == who.zh_pronoun[0] else other


@pattern
def ba_give(r: Random) -> Drawn:
    """把 A 送给, 还给, 借给 B: 他把那本书还给老师了。 He returned that book to the teacher."""
    who = someone(r)
    other = another(r, who)
    zh_verb, en, tag = r.choice(
        [("送给", "gave", "gift"), ("还给", "returned", "return"), ("借给", "lent", "borrow")]
    )
    thing = noun(r, tag)
    zh, en_thing = this_or_that(r, thing)
    return (
        f"{who.zh}把{zh}{zh_verb}{other.zh}了。",
        f"{who.en} {en} {en_thing} to {other.as_object}.",
    )


@pattern
def bei_by(r: Random) -> Drawn:
    """被: 杯子被我弟弟打破了。 The cup was broken by my younger brother."""
    who, (done, thing) = someone(r), suffered(r)
    zh, en, was = thing.zh, f"the {thing.en}", english.WAS[thing.agreement]
    if r.random() < 0.5:
        (zh, en), was = this_or_that(r, thing), "was"
    if who == I:
        return None
    return f"{zh}被{who.zh}{done.zh}。", f"{en} {was} {done.participle} by {who.as_object}."


@pattern
def bei_mine_by(r: Random) -> Drawn:
    """Owned thing 被: 我的手机被他弄坏了。 My phone was damaged by him."""
    owner, (done, thing) = r.choice(SINGLE_PRONOUNS), suffered(r)
    who = another(r, owner)
    if not {"borrow", "lose", "break"} & thing.tags or who == I:
        return None
    return (
        f"{owner.zh}的{thing.zh}被{who.zh}{done.zh}。",
        f"{owner.poss} {thing.en} {english.WAS[thing.agreement]} {done.participle} "
        f"by {who.as_object}.",
    )


@pattern
def bei_nobody(r: Random) -> Drawn:
    """被 without the doer: 我的自行车昨天被偷走了。 My bicycle was stolen yesterday."""
    owner, thing, when = someone(r), noun(r, "lose", "borrow"), time(r, "past")
    zh, en = r.choice([("偷走了", "stolen"), ("拿走了", "taken away"), ("借走了", "borrowed")])
    be = english.WAS[thing.agreement]
    return (
        f"{owner.zh}的{thing.zh}{when.zh}被{zh}。",
        f"{owner.whose} {thing.en} {be} {en} {when.en}.",
    )


@pattern
def gave(r: Random) -> Drawn:
    """送给 + two objects: 我送给她一条围巾。 I gave her a scarf."""
    who, thing = someone(r), noun(r, "gift")
    other = another(r, who)
    return (
        f"{who.zh}送给{other.zh}一{thing.measure}{thing.zh}。",
        f"{who.en} gave {other.as_object} {thing.one()}.",
    )


@pattern
def bought_for(r: Random) -> Drawn:
    """给…买了: 我给妹妹买了一个玩具。 I bought a toy for my younger sister."""
    who, (thing, zh_adjective, adjective) = someone(r), attributed(r, "gift", bought=True)
    other = another(r, who)
    if r.random() < 0.5:
        zh_adjective = adjective = ""
    return (
        f"{who.zh}给{other.zh}买了一{thing.measure}{zh_adjective}{thing.zh}。",
        f"{who.en} bought {thing.one(adjective)} for {other.as_object}.",
    )


@pattern
def lent(r: Random) -> Drawn:
    """借给 + two objects: 他借给我一本书。 He lent me a book."""
    who, thing = someone(r), noun(r, "borrow")
    other = another(r, who)
    return (
        f"{who.zh}借给{other.zh}一{thing.measure}{thing.zh}。",
        f"{who.en} lent {other.as_object} {thing.one()}.",
    )


@pattern
def received_from(r: Random) -> Drawn:
    """收到: 我收到了小王送的一份礼物。 I received a gift from Xiao Wang."""
    who, thing = someone(r), noun(r, "receive")
    other = another(r, who)
    zh_verb = {"信": "写", "邮件": "写"}.get(thing.zh, "送")
    return (
        f"{who.zh}收到了{other.zh}{zh_verb}的一{thing.measure}{thing.zh}。",
        f"{who.en} received {thing.one()} from {other.as_object}.",
    )


@pattern
def cook_for(r: Random) -> Drawn:
    """给…做了: 我妈妈给我们做了饺子。 My mother made dumplings for us."""
    who, thing = one_person(r), noun(r, "make")
    other = another(r, who)
    return (
        f"{who.zh}给{other.zh}做了{thing.zh}。",
        f"{who.en} made {thing.bare} for {other.as_object}.",
    )


@pattern
def show(r: Random) -> Drawn:
    """给…看看: 请给我看看那张照片。 Please show me that photo."""
    who = r.choice([I, WE, HE, SHE])
    thing = noun(r, "show", "wear", "puton", "borrow", "small")
    if thing.tags & {"vehicle", "food"}:
        return None
    zh, en = this_or_that(r, thing)
    return f"请给{who.zh}看看{zh}。", f"please show {who.obj} {en}."
