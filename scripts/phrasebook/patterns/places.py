"""Numbers, money, ways of travelling, weather, and where places are."""

from __future__ import annotations

from random import Random

from .. import chinese, english, lexicon
from ..grammar import Drawn, pattern
from ..phrases import (
    noun,
    place,
    someone,
    time,
)
from .describing import this_or_that

WEATHER = [
    ("冷", "cold"),
    ("热", "hot"),
    ("暖和", "warm"),
    ("凉快", "cool"),
]

TRANSPORT = [
    ("坐火车", "by train"),
    ("坐公共汽车", "by bus"),
    ("坐出租车", "by taxi"),
    ("坐飞机", "by plane"),
    ("坐地铁", "by subway"),
    ("骑自行车", "by bike"),
    ("开车", "by car"),
    ("走路", "on foot"),
]

LOCAL_TRANSPORT = [t for t in TRANSPORT if t[0] not in ("坐火车", "坐飞机")]

FAR_TRANSPORT = [t for t in TRANSPORT if t[0] in ("坐火车", "坐飞机", "开车")]

# Airports are not next to anything.
IN_TOWN = [p for p in lexicon.PLACES if "named" in p.tags and p.zh != "机场"]
SIDES = [("旁边", "next to"), ("前面", "in front of"), ("后面", "behind"), ("对面", "across from")]


def price(r: Random, thing: lexicon.Noun) -> int:
    """A likely price in yuan."""
    if thing.tags & {"food", "drink", "penny"}:
        return r.randrange(2, 20)
    if "machine" in thing.tags:
        return 100 * r.randrange(2, 40)
    return r.randrange(5, 60) if "small" in thing.tags else 10 * r.randrange(5, 70)


@pattern
def costs(r: Random) -> Drawn:
    """块钱: 这件衬衫八十块钱。 This shirt is eighty yuan."""
    thing = noun(r, "buy", "penny")
    yuan = price(r, thing)
    if "vehicle" in thing.tags:
        return None
    zh, en = this_or_that(r, thing)
    return f"{zh}{chinese.count(yuan)}块钱。", f"{en} is {english.number(yuan)} yuan."


@pattern
def cost_in_all(r: Random) -> Drawn:
    """一共: 三个苹果一共六块钱。 Three apples are six yuan in all."""
    thing, n = noun(r, "buy", "penny"), r.randrange(2, 10)
    total = n * price(r, thing)
    if thing.tags & {"vehicle", "machine"}:
        return None
    return (
        f"{chinese.count(n)}{thing.measure}{thing.zh}一共{chinese.number(total)}块钱。",
        f"{thing.several(english.number(n))} are {english.number(total)} yuan in all.",
    )


STUDENTS = ("学生", "students")

CHILDREN = ("孩子", "children")

PEOPLE = ("人", "people")

CROWDS = [
    ("我们班", "in our class", [STUDENTS]),
    ("他们班", "in their class", [STUDENTS]),
    ("教室里", "in the classroom", [STUDENTS, CHILDREN, PEOPLE]),
    ("图书馆里", "in the library", [STUDENTS, CHILDREN, PEOPLE]),
    ("公园里", "in the park", [CHILDREN, PEOPLE]),
]


@pattern
def people_in_class(r: Random) -> Drawn:
    """Numbers of people: 我们班有二十五个学生。 There are twenty-five students in our class."""
    zh, en, people = r.choice(CROWDS)
    zh_who, who = r.choice(people)
    n = r.randrange(11, 60)
    return f"{zh}有{chinese.number(n)}个{zh_who}。", f"there are {english.number(n)} {who} {en}."


@pattern
def goes_by(r: Random) -> Drawn:
    """Ways of going: 我每天坐公共汽车去学校。 I go to school by bus every day."""
    who, where, (zh, en) = someone(r), place(r, "named"), r.choice(LOCAL_TRANSPORT)
    if r.random() < 0.5:
        return (
            f"{who.zh}常常{zh}去{where.zh}。",
            f"{who.en} often {who.does('go')} {where.to} {en}.",
        )
    return (
        f"{who.zh}每天{zh}去{where.zh}。",
        f"{who.en} {who.does('go')} {where.to} {en} every day.",
    )


@pattern
def travels_by(r: Random) -> Drawn:
    """To a city: 他们明年要坐飞机去法国。 They are going to France by plane next year."""
    who, city, when = someone(r), r.choice(lexicon.CITIES), time(r, "future", "future-long")
    ways = [t for t in FAR_TRANSPORT if city.where == "home" or t[1] == "by plane"]
    zh, en = r.choice(ways)
    return (
        f"{who.zh}{when.zh}要{zh}去{city.zh}。",
        f"{who.en} {who.be} going to {city.en} {en} {when.en}.",
    )


@pattern
def it_takes(r: Random) -> Drawn:
    """从…到…要: 从我家到学校要二十分钟。 It takes twenty minutes from my home to the school."""
    first, second = r.sample(lexicon.tagged(lexicon.PLACES, "named"), 2)
    minutes, (zh, en) = r.choice([5, 10, 15, 20, 25, 30, 40, 50]), r.choice(LOCAL_TRANSPORT)
    return (
        f"从{first.zh}{zh}到{second.zh}要{chinese.number(minutes)}分钟。",
        f"it takes {english.number(minutes)} minutes to get from the {first.en} to the "
        f"{second.en} {en}.",
    )


@pattern
def far_from(r: Random) -> Drawn:
    """离: 我家离学校很远。 My home is very far from the school."""
    who, where = someone(r), place(r, "named")
    zh, en = r.choice([("远", "far from"), ("近", "close to")])
    zh_degree, degree = r.choice([("很", "very "), ("不太", "not very "), ("非常", "extremely ")])
    if zh == "近" and zh_degree == "不太":
        return None
    return (
        f"{who.zh}家离{where.zh}{zh_degree}{zh}。",
        f"{who.whose} home is {degree}{en} the {where.en}.",
    )


@pattern
def next_to(r: Random) -> Drawn:
    """在…旁边: 邮局在银行旁边。 The post office is next to the bank."""
    first, second = r.sample(IN_TOWN, 2)
    zh, en = r.choice(SIDES)
    return f"{first.zh}在{second.zh}{zh}。", f"the {first.en} is {en} the {second.en}."


@pattern
def there_is_a_place(r: Random) -> Drawn:
    """旁边有: 学校旁边有一个公园。 There is a park next to the school."""
    first, second = r.sample(IN_TOWN, 2)
    zh, en = r.choice(SIDES)
    return (
        f"{first.zh}{zh}有一个{second.zh}。",
        f"there is {english.a(second.en)} {en} the {first.en}.",
    )


@pattern
def lives_in(r: Random) -> Drawn:
    """住在: 我叔叔住在上海。 My uncle lives in Shanghai."""
    who, city = someone(r), r.choice(lexicon.CITIES)
    zh, not_ = r.choice([("住", ""), ("不住", "n't")])
    verb = who.does("live") if not not_ else f"{who.do}n't live"
    return f"{who.zh}{zh}在{city.zh}。", f"{who.en} {verb} in {city.en}."


@pattern
def weather(r: Random) -> Drawn:
    """Weather: 今天北京很冷。 It is very cold in Beijing today."""
    city, (zh, en) = r.choice(lexicon.CITIES), r.choice(WEATHER)
    zh_when, be, when = r.choice(
        [("今天", "is", "today"), ("昨天", "was", "yesterday"), ("现在", "is", "now")]
    )
    zh_degree, degree = r.choice([("很", "very"), ("非常", "extremely"), ("不太", "not very")])
    return (
        f"{zh_when}{city.zh}{zh_degree}{zh}。",
        f"it {be} {degree} {en} in {city.en} {when}.",
    )


@pattern
def works_at(r: Random) -> Drawn:
    """在 with 工作: 我妈妈在银行工作。 My mother works at the bank. 以前: used to."""
    who, where = someone(r), place(r, "employer")
    zh = r.choice(["", "以前", "不"])
    verb = {"": who.does("work"), "以前": "used to work", "不": f"{who.do}n't work"}[zh]
    return f"{who.zh}{zh}在{where.zh}工作。", f"{who.en} {verb} {where.at}."
