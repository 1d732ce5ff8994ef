"""Clock times, dates, weekdays, years and durations."""

from __future__ import annotations

from random import Random

from .. import chinese, english, lexicon
from ..grammar import Drawn, pattern
from ..phrases import (
    activity,
    clock,
    place,
    someone,
    time,
)

WEEKDAYS = [
    ("星期一", "Monday"),
    ("星期二", "Tuesday"),
    ("星期三", "Wednesday"),
    ("星期四", "Thursday"),
    ("星期五", "Friday"),
    ("星期六", "Saturday"),
    ("星期天", "Sunday"),
]

DAY_PARTS = [
    ("早上", "in the morning", 6, 11),
    ("下午", "in the afternoon", 1, 5),
    ("晚上", "in the evening", 6, 10),
]

HOURS = [
    ("morning", "每天早上", "every morning", 6, 8),
    ("evening", "每天晚上", "every night", 6, 9),
    ("hobby", "每天下午", "every afternoon", 2, 5),
]


@pattern
def gets_up_at(r: Random) -> Drawn:
    """几点 answered: 我每天早上七点半起床。 I get up at half past seven every morning."""
    who = someone(r)
    kind, zh, en, first, last = r.choice(HOURS)
    doing = activity(r, *kind.split())
    zh_clock, en_clock = clock(r, first, last)
    return (
        f"{who.zh}{zh}{zh_clock}{doing.zh}。",
        f"{who.en} {who.does(doing.habit)} at {en_clock} {en}.",
    )


@pattern
def will_at(r: Random) -> Drawn:
    """A future time: 我明天下午三点要开会。 I am going to have a meeting at three ..."""
    who, doing = someone(r), activity(r, "chore", "hobby")
    zh, en, first, last = r.choice(
        [
            ("明天早上", "tomorrow morning", 8, 11),
            ("明天下午", "tomorrow afternoon", 1, 5),
            ("明天晚上", "tomorrow night", 6, 10),
        ]
    )
    zh_clock, en_clock = clock(r, first, last)
    return (
        f"{who.zh}{zh}{zh_clock}要{doing.zh}。",
        f"{who.en} {who.be} going to {doing.en} at {en_clock} {en}.",
    )


@pattern
def it_is_now(r: Random) -> Drawn:
    """现在: 现在是早上八点半。 It is half past eight in the morning now."""
    zh, en, first, last = r.choice(DAY_PARTS)
    zh_clock, en_clock = clock(r, first, last)
    return f"现在是{zh}{zh_clock}。", f"it is {en_clock} {en} now."


# Places without closing hours.
NEVER_SHUT = ("火车站", "机场", "医院", "酒店", "学校")


@pattern
def opens_at(r: Random) -> Drawn:
    """Opening hours: 超市早上八点开门。 The supermarket opens at eight o'clock in the morning."""
    where = r.choice([p for p in lexicon.PLACES if "named" in p.tags and p.zh not in NEVER_SHUT])
    zh, en, first, last, zh_verb, verb = r.choice(
        [
            ("早上", "in the morning", 6, 10, "开门", "opens"),
            ("晚上", "in the evening", 6, 10, "关门", "closes"),
        ]
    )
    zh_clock, en_clock = clock(r, first, last, exact=False)
    return f"{where.zh}{zh}{zh_clock}{zh_verb}。", f"the {where.en} {verb} at {en_clock} {en}."


PLANE = ("飞机", "起飞"), ("plane", "takes off")


@pattern
def train_leaves(r: Random) -> Drawn:
    """Departures: 去北京的火车下午三点出发。 The train to Beijing leaves at three o'clock ..."""
    city = r.choice(lexicon.CITIES)
    zh, en, first, last = r.choice(DAY_PARTS)
    zh_clock, en_clock = clock(r, first, last)
    vehicle, en_vehicle = r.choice([(("火车", "出发"), ("train", "leaves")), PLANE])
    if en_vehicle[0] == "train" and city.where == "abroad":
        return None
    return (
        f"去{city.zh}的{vehicle[0]}{zh}{zh_clock}{vehicle[1]}。",
        f"the {en_vehicle[0]} to {city.en} {en_vehicle[1]} at {en_clock} {en}.",
    )


@pattern
def today_is(r: Random) -> Drawn:
    """Dates: 今天是五月三号，星期六。 Today is Saturday, May 3."""
    month, day = r.randrange(1, 13), r.randrange(1, 29)
    zh_day, day_name = r.choice(WEEKDAYS)
    zh, en = r.choice([("今天", "today is"), ("明天", "tomorrow is"), ("昨天", "yesterday was")])
    return (
        f"{zh}是{chinese.date(month, day)}，{zh_day}。",
        f"{en} {day_name}, {english.MONTHS[month - 1]} {day}.",
    )


@pattern
def birthday(r: Random) -> Drawn:
    """生日: 我妈妈的生日是八月二十号。 My mother's birthday is August 20."""
    who, month, day = someone(r), r.randrange(1, 13), r.randrange(1, 29)
    if who.agreement == "they" and who.zh != "你":
        return None
    return (
        f"{who.zh}的生日是{chinese.date(month, day)}。",
        f"{who.whose} birthday is {english.MONTHS[month - 1]} {day}.",
    )


@pattern
def came_in_year(r: Random) -> Drawn:
    """是…的 with a year: 他是二零一五年来北京的。 He came to Beijing in 2015."""
    who, city, year = someone(r), r.choice(lexicon.CITIES), r.randrange(1990, 2025)
    return (
        f"{who.zh}是{chinese.year(year)}来{city.zh}的。",
        f"{who.en} came to {city.en} in {year}.",
    )


@pattern
def on_weekday(r: Random) -> Drawn:
    """Weekdays: 我们星期六要去海边。 We are going to the seaside on Saturday."""
    who, where, (zh, en) = someone(r), place(r, "named", "fun"), r.choice(WEEKDAYS)
    return f"{who.zh}{zh}要去{where.zh}。", f"{who.en} {who.be} going {where.to} on {en}."


@pattern
def lived_years(r: Random) -> Drawn:
    """了…年: 她在北京住了三年。 She lived in Beijing for three years."""
    who, city, n = someone(r), r.choice(lexicon.CITIES), r.randrange(1, 13)
    years = "one year" if n == 1 else f"{english.number(n)} years"
    zh, en = r.choice([("住", "lived"), ("工作", "worked"), ("学习", "studied")])
    return (
        f"{who.zh}在{city.zh}{zh}了{chinese.count(n)}年。",
        f"{who.en} {en} in {city.en} for {years}.",
    )


# Activities whose verb is their first character; it comes again before a duration.
DOUBLED = (
    "踢足球 打篮球 打网球 打乒乓球 看书 看电视 听音乐 下棋 弹钢琴 弹吉他 唱歌 跑步 散步 "
    "写作业 开会 做饭 游泳 跳舞 打电话 开车 洗衣服"
).split()


@pattern
def hours_long(r: Random) -> Drawn:
    """Duration: 他昨天看书看了两个小时。 He read for two hours yesterday."""
    who, when, n = someone(r), time(r, "past"), r.randrange(1, 5)
    doing = r.choice([a for a in lexicon.ACTIVITIES if a.zh in DOUBLED])
    hours = "one hour" if n == 1 else f"{english.number(n)} hours"
    return (
        f"{who.zh}{when.zh}{doing.zh}{doing.zh[0]}了{chinese.count(n)}个小时。",
        f"{who.en} {english.past(doing.en)} for {hours} {when.en}.",
    )


@pattern
def every_weekday(r: Random) -> Drawn:
    """每个: 他每个星期三打篮球。 He plays basketball every Wednesday."""
    who, doing, (zh, en) = someone(r), activity(r, "hobby", "chore"), r.choice(WEEKDAYS)
    return f"{who.zh}每个{zh}{doing.zh}。", f"{who.en} {who.does(doing.habit)} every {en}."
