"""是, 有 and 在: what something is, who has what, and where things are."""

from __future__ import annotations

from random import Random

from .. import chinese, english, lexicon
from ..grammar import Drawn, pattern
from ..phrases import (
    HE,
    PRONOUNS,
    SHE,
    SINGLE_PRONOUNS,
    I,
    Subject,
    amount,
    attributed,
    kin,
    named,
    noun,
    one_person,
    place,
    someone,
)

DEMONSTRATIVES = [("这", "this", "these"), ("那", "that", "those")]

POSSESSIVE_PRONOUNS = {
    "my": "mine",
    "your": "yours",
    "his": "his",
    "her": "hers",
    "our": "ours",
    "their": "theirs",
}


def spot_and_things(r: Random) -> tuple[lexicon.Spot, lexicon.Noun]:
    """A place such as 桌子上 and a thing that may be there."""
    spot = r.choice(lexicon.SPOTS)
    return spot, noun(r, *sorted(spot.holds))


def job_of(r: Random, who: Subject) -> lexicon.Person | None:
    """A job for somebody, or None: the doctor has one already, and grandmothers are no students."""
    work = r.choice(lexicon.tagged(lexicon.PEOPLE, "job"))
    if who.en.startswith("the ") or (work.zh == "学生") != ("child" in who.tags):
        return None
    return work


@pattern
def is_job(r: Random) -> Drawn:
    """X 是 job: 我妈妈是医生。 My mother is a doctor."""
    who = one_person(r)
    work = job_of(r, who)
    if work is None:
        return None
    return f"{who.zh}是{work.zh}。", f"{who.en} {who.be} {english.a(work.en)}."


@pattern
def is_not_job(r: Random) -> Drawn:
    """X 不是 job: 他不是老师。 He is not a teacher."""
    who = one_person(r)
    work = job_of(r, who)
    if work is None:
        return None
    return f"{who.zh}不是{work.zh}。", f"{who.en} {who.be} not {english.a(work.en)}."


@pattern
def this_is_a(r: Random) -> Drawn:
    """这是一 + measure word: 这是一个苹果。 This is an apple."""
    thing = r.choice(lexicon.NOUNS)
    zh, en, _ = r.choice(DEMONSTRATIVES)
    be = r.choice(["是", "不是"])
    not_ = " not" if be == "不是" else ""
    return f"{zh}{be}一{thing.measure}{thing.zh}。", f"{en} is{not_} {thing.one()}."


@pattern
def this_is_an_adjective_one(r: Random) -> Drawn:
    """With an adjective before the noun: 那是一条漂亮的裙子。 That is a beautiful skirt."""
    thing, zh_adjective, adjective = attributed(r)
    zh, en, _ = r.choice(DEMONSTRATIVES)
    return (
        f"{zh}是一{thing.measure}{zh_adjective}{thing.zh}。",
        f"{en} is {thing.one(adjective)}.",
    )


@pattern
def this_is_mine(r: Random) -> Drawn:
    """这是 owner 的: 这是我妈妈的包。 This is my mother's bag."""
    owner, thing = one_person(r), noun(r, "borrow", "lose", "wear", "puton")
    zh, this, these = r.choice(DEMONSTRATIVES)
    plural = thing.agreement == "they"
    be = f"{these} are" if plural else f"{this} is"
    name = thing.en if plural else thing.single()
    return f"{zh}是{owner.zh}的{thing.zh}。", f"{be} {owner.whose} {name}."


@pattern
def this_thing_is_mine(r: Random) -> Drawn:
    """这 + measure word + noun 是 X 的: 这把雨伞是我的。 This umbrella is mine."""
    owner, thing = r.choice(PRONOUNS), noun(r, "borrow", "lose", "wear", "puton")
    zh, en, _ = r.choice(DEMONSTRATIVES)
    be, not_ = r.choice([("是", ""), ("不是", " not")])
    return (
        f"{zh}{thing.measure}{thing.zh}{be}{owner.zh}的。",
        f"{en} {thing.single()} is{not_} {POSSESSIVE_PRONOUNS[owner.poss]}.",
    )


@pattern
def has_things(r: Random) -> Drawn:
    """X 有 + number + measure word: 我有三本书。 I have three books."""
    who = someone(r)
    zh, en = amount(r, noun(r, "pet", "borrow", "puton", "wear"), 1, 5)
    return f"{who.zh}有{zh}。", f"{who.en} {who.have} {en}."


@pattern
def has_no_thing(r: Random) -> Drawn:
    """X 没有: 他没有自行车。 He doesn't have a bicycle."""
    who, thing = someone(r), noun(r, "pet", "borrow", "puton")
    return f"{who.zh}没有{thing.zh}。", f"{who.en} {who.do}n't have {thing.one()}."


COUNTABLE = {"哥哥", "姐姐", "弟弟", "妹妹", "叔叔", "阿姨", "儿子", "女儿"}


@pattern
def has_family(r: Random) -> Drawn:
    """有 with people: 我有两个哥哥。 I have two older brothers."""
    who, n = one_person(r), r.randrange(1, 5)
    relative = r.choice([p for p in lexicon.tagged(lexicon.PEOPLE, "kin") if p.zh in COUNTABLE])
    en = english.a(relative.en)
    if n > 1:
        en = f"{english.number(n)} {english.plural(relative.en)}"
    return f"{who.zh}有{chinese.count(n)}个{relative.zh}。", f"{who.en} {who.have} {en}."


@pattern
def there_are(r: Random) -> Drawn:
    """Place 有 things: 桌子上有两个苹果。 There are two apples on the table."""
    spot, thing = spot_and_things(r)
    n = r.randrange(1, 8)
    zh = f"{spot.zh}有{chinese.count(n)}{thing.measure}{thing.zh}。"
    if n == 1:
        return zh, f"there is {thing.one()} {spot.en}."
    return zh, f"there are {thing.several(english.number(n))} {spot.en}."


@pattern
def there_are_no(r: Random) -> Drawn:
    """Place 没有: 冰箱里没有牛奶。 There is no milk in the fridge."""
    spot, thing = spot_and_things(r)
    be = "is" if thing.is_mass else "are"
    return f"{spot.zh}没有{thing.zh}。", f"there {be} no {thing.bare} {spot.en}."


@pattern
def there_are_a_lot_of(r: Random) -> Drawn:
    """很多: 盒子里有很多照片。 There are a lot of photos in the box."""
    spot, thing = spot_and_things(r)
    be = "is" if thing.is_mass else "are"
    return f"{spot.zh}有很多{thing.zh}。", f"there {be} a lot of {thing.bare} {spot.en}."


@pattern
def thing_is_there(r: Random) -> Drawn:
    """Thing 在 place: 我的书在桌子上。 My book is on the table."""
    owner, (spot, thing) = r.choice(SINGLE_PRONOUNS), spot_and_things(r)
    be, not_ = r.choice([("在", ""), ("不在", " not")])
    return (
        f"{owner.zh}的{thing.zh}{be}{spot.zh}。",
        f"{owner.poss} {thing.en} {english.AM[thing.agreement]}{not_} {spot.en}.",
    )


@pattern
def person_is_there(r: Random) -> Drawn:
    """X 在 place: 我妈妈在厨房。 My mother is in the kitchen. 不在: is not."""
    who, where = someone(r), place(r)
    be, not_ = r.choice([("在", ""), ("不在", " not")])
    return f"{who.zh}{be}{where.zh}。", f"{who.en} {who.be}{not_} {where.at}."


@pattern
def age(r: Random) -> Drawn:
    """Ages need no 是: 我弟弟今年十二岁。 My younger brother is twelve years old this year."""
    who = r.choice([I, HE, SHE, kin(r, "child"), kin(r, "young", "adult", "old"), named(r)])
    n = r.randrange(60, 90) if "old" in who.tags else r.randrange(25, 50)
    if "child" in who.tags or who in (I, HE, SHE):
        n = r.randrange(6, 20)
    return (
        f"{who.zh}今年{chinese.number(n)}岁。",
        f"{who.en} {who.be} {english.number(n)} years old this year.",
    )
