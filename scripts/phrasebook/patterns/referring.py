"""Pronouns that refer back (它 他 她), and preferences (喜欢…，更喜欢…)."""

from __future__ import annotations

from random import Random

from .. import english, lexicon
from ..grammar import Drawn, pattern
from ..phrases import (
    activity,
    adjectives_for,
    amount,
    attributed,
    described,
    done_at,
    noun,
    someone,
    speaker,
    third,
    time,
    trait,
    two_activities,
    two_nouns,
)
from .being import job_of
from .clauses import bare_color

SCENES = [(zh_noun, zh, en) for zh_noun, zh, en in lexicon.read_table("scenes")]

NOUN = {noun.zh: noun for noun in lexicon.NOUNS}

LIKING = [
    ("我很喜欢它", "I like it very much"),
    ("我们都喜欢它", "we all like it"),
    ("我女儿很喜欢它", "my daughter likes it very much"),
    ("我弟弟很喜欢它", "my younger brother likes it very much"),
    ("她很喜欢它", "she likes it very much"),
    ("他很喜欢它", "he likes it very much"),
]

DEGREES = [("真", "really"), ("很", "very"), ("非常", "extremely")]


def animal_adjective(r: Random, animal: lexicon.Noun) -> lexicon.Adjective:
    """What one says of an animal one likes."""
    return r.choice([a for a in adjectives_for(animal) if a.zh != "慢"])


@pattern
def butterfly(r: Random) -> Drawn:
    """Scene and 它: 这只蝴蝶真漂亮，停在花上，我很喜欢它。"""
    zh_noun, zh_scene, scene = r.choice(SCENES)
    animal = NOUN[zh_noun]
    how, (zh_degree, degree) = animal_adjective(r, animal), r.choice(DEGREES)
    zh_like, like = r.choice(LIKING)
    return (
        f"这{animal.measure}{animal.zh}{zh_degree}{how.zh}，{zh_scene}，{zh_like}。",
        f"this {animal.en} is {degree} {how.en}. It is {scene}. {english.sentence(like)}.",
    )


@pattern
def animal_and_it(r: Random) -> Drawn:
    """它 as object: 那只狗很聪明，我很喜欢它。 That dog is very clever. I like it very much."""
    animal = noun(r, "animal")
    how, (zh_degree, degree) = animal_adjective(r, animal), r.choice(DEGREES)
    zh_like, like = r.choice(LIKING)
    zh, en = r.choice([("这", "this"), ("那", "that")])
    return (
        f"{zh}{animal.measure}{animal.zh}{zh_degree}{how.zh}，{zh_like}。",
        f"{en} {animal.en} is {degree} {how.en}. {english.sentence(like)}.",
    )


@pattern
def have_a_pet(r: Random) -> Drawn:
    """它 as subject: 我有一只猫，它很可爱。 I have a cat. It is very cute."""
    who, pet, (zh_degree, degree) = someone(r), noun(r, "pet", "borrow"), r.choice(DEGREES)
    how = r.choice(adjectives_for(pet))
    return (
        f"{who.zh}有一{pet.measure}{pet.zh}，它{zh_degree}{how.zh}。",
        f"{who.en} {who.have} {pet.one()}. It is {degree} {how.en}.",
    )


@pattern
def bought_and_it(r: Random) -> Drawn:
    """它 for a thing: 他昨天买了一部手机，它很贵。 He bought a phone yesterday. It is very ..."""
    who, when, (thing, how) = someone(r), time(r, "past"), described(r, "buy", bought=True)
    if thing.unit:
        return None
    return (
        f"{who.zh}{when.zh}买了一{thing.measure}{thing.zh}，它很{how.zh}。",
        f"{who.en} bought {thing.one()} {when.en}. It is very {how.en}.",
    )


@pattern
def lost_and_looking(r: Random) -> Drawn:
    """它 as the object sought: 我的钥匙丢了，我在找它。 My key is lost. I am looking for it."""
    who, thing = speaker(r), noun(r, "lose")
    be = english.AM[thing.agreement]
    return (
        f"{who.zh}的{thing.zh}丢了，{who.zh_pronoun}在找它。",
        f"{who.whose} {thing.en} {be} lost. {english.sentence(who.pronoun)} {who.be} looking for "
        f"{thing.it}.",
    )


@pattern
def know_him(r: Random) -> Drawn:
    """他/她 as subject: 我认识小王，他是老师。 I know Xiao Wang. He is a teacher."""
    who, other = someone(r), third(r)
    work = job_of(r, other)
    if work is None or who.zh_pronoun[0] == other.zh_pronoun[0]:
        return None
    return (
        f"{who.zh}认识{other.zh}，{other.zh_pronoun}是{work.zh}。",
        f"{who.en} {who.does('know')} {other.en}. {english.sentence(other.pronoun)} is "
        f"{english.a(work.en)}.",
    )


@pattern
def everyone_likes_her(r: Random) -> Drawn:
    """他/她 as object: 小红很聪明，大家都喜欢她。 Xiao Hong is very clever. Everyone likes her."""
    who = third(r)
    how = trait(r, who, kind="trait", worth="good")
    zh_degree, degree = r.choice(DEGREES)
    if how.zh in ("高", "年轻", "高兴"):  # no reasons to like somebody
        return None
    return (
        f"{who.zh}{zh_degree}{how.zh}，大家都喜欢{who.zh_pronoun}。",
        f"{who.en} is {degree} {how.en}. Everyone likes {who.obj}.",
    )


@pattern
def his_own_thing(r: Random) -> Drawn:
    """他的/她的: 我哥哥很喜欢他的新自行车。 My older brother likes his new bicycle very much."""
    who = third(r)
    thing, zh_adjective, adjective = attributed(r, "borrow", "wear", "puton", bought=True)
    if adjective == "good":
        return None
    return (
        f"{who.zh}很喜欢{who.zh_pronoun}的{bare_color(zh_adjective)}{thing.zh}。",
        f"{who.en} likes {who.poss} {adjective} {thing.en} very much.",
    )


TROUBLES = [("难过", "sad"), ("忙", "busy"), ("累", "tired"), ("紧张", "nervous")]


@pattern
def is_sad_help_her(r: Random) -> Drawn:
    """Two people: 小红很难过，我想帮她。 Xiao Hong is very sad. I want to help her."""
    who, other, how = third(r), someone(r), r.choice(TROUBLES)
    if who.zh_pronoun[0] == other.zh_pronoun[0]:
        return None
    zh, en = r.choice([("帮{}", "help"), ("给{}打电话", "call")])
    return (
        f"{who.zh}很{how[0]}，{other.zh}想{zh.format(who.zh_pronoun)}。",
        f"{who.en} is very {how[1]}. {english.sentence(other.en)} {other.does('want')} to {en} "
        f"{who.obj}.",
    )


@pattern
def gave_and_likes_it(r: Random) -> Drawn:
    """他 and 它 at once: 我送给小明一个球，他很喜欢它。 I gave Xiao Ming a ball. He likes it ..."""
    who, other, thing = someone(r), third(r), noun(r, "gift")
    if who.zh_pronoun[0] == other.zh_pronoun[0]:
        return None
    return (
        f"{who.zh}送给{other.zh}一{thing.measure}{thing.zh}，{other.zh_pronoun}很喜欢它。",
        f"{who.en} gave {other.en} {thing.one()}. {english.sentence(other.pronoun)} likes "
        f"{thing.it} very much.",
    )


SELVES = {
    "me": "myself",
    "you": "yourself",
    "him": "himself",
    "her": "herself",
    "us": "ourselves",
    "them": "themselves",
}

# Not done by oneself.
TOGETHER = ("聊天", "开会", "下棋", "打乒乓球", "打网球", "打篮球", "踢足球", "打电话", "钓鱼")


@pattern
def by_oneself(r: Random) -> Drawn:
    """自己: 她喜欢自己做饭。 She likes cooking by herself."""
    who, doing = speaker(r), activity(r, "chore", "hobby")
    if doing.zh in TOGETHER:
        return None
    return (
        f"{who.zh}喜欢自己{doing.zh}。",
        f"{who.en} {who.does('like')} {english.gerund(doing.habit)} by {SELVES[who.obj]}.",
    )


@pattern
def like_more(r: Random) -> Drawn:
    """更喜欢 + verb: 我喜欢唱歌，更喜欢跳舞。 I like singing, but I like dancing even more."""
    who, (first, second) = speaker(r), two_activities(r, "hobby")
    like = who.does("like")
    return (
        f"{who.zh}喜欢{first.zh}，更喜欢{second.zh}。",
        f"{who.en} {like} {english.gerund(first.habit)}, but {who.pronoun} {like} "
        f"{english.gerund(second.habit)} even more.",
    )


@pattern
def like_but_not(r: Random) -> Drawn:
    """喜欢…，不喜欢: 我喜欢跳舞，不喜欢唱歌。 I like dancing, but I don't like singing."""
    who, (first, second) = speaker(r), two_activities(r, "hobby")
    return (
        f"{who.zh}喜欢{first.zh}，不喜欢{second.zh}。",
        f"{who.en} {who.does('like')} {english.gerund(first.habit)}, but {who.pronoun} "
        f"{who.do}n't like {english.gerund(second.habit)}.",
    )


@pattern
def prefer_things(r: Random) -> Drawn:
    """比起 A，更喜欢 B: 比起茶，我更喜欢咖啡。 I prefer coffee to tea."""
    who, tag = someone(r), r.choice(["fruit", "drink", "dish", "pet", "zoo", "puton"])
    first, second = two_nouns(r, tag)
    return (
        f"比起{first.zh}，{who.zh}更喜欢{second.zh}。",
        f"{who.en} {who.does('prefer')} {second.bare} to {first.bare}.",
    )


@pattern
def like_a_not_b(r: Random) -> Drawn:
    """喜欢 A，更喜欢 B: 我喜欢苹果，更喜欢香蕉。 I like apples, but I like bananas even more."""
    who, tag = speaker(r), r.choice(["fruit", "drink", "dish", "pet", "zoo", "farm"])
    first, second = two_nouns(r, tag)
    like = who.does("like")
    return (
        f"{who.zh}喜欢{first.zh}，更喜欢{second.zh}。",
        f"{who.en} {like} {first.bare}, but {who.pronoun} {like} {second.bare} even more.",
    )


QUALITIES = {"big": ("大", "big"), "quiet": ("安静", "quiet"), "fun": ("有名", "famous")}


@pattern
def place_and_there(r: Random) -> Drawn:
    """那里: 那个公园很大，我们常常去那里散步。 That park is very big. We often go there to ..."""
    who, (where, doing) = someone(r), done_at(r, "goal")
    fitting = [QUALITIES[tag] for tag in sorted(QUALITIES) if tag in where.tags]
    if not fitting or "named" not in where.tags or doing.zh == "工作":
        return None
    zh, en = r.choice(fitting)
    return (
        f"那个{where.zh}很{zh}，{who.zh}常常去那里{doing.zh}。",
        f"that {where.en} is very {en}. {english.sentence(who.en)} often {who.does('go')} there "
        f"to {doing.en}.",
    )


@pattern
def bought_and_they(r: Random) -> Drawn:
    """它们: 我买了三个苹果，它们很甜。 I bought three apples. They are very sweet."""
    who, (thing, how) = someone(r), described(r, "buy", bought=True)
    zh, en = amount(r, thing, 2, 6)
    if "drink" in thing.tags or "vehicle" in thing.tags:
        return None
    return f"{who.zh}买了{zh}，它们很{how.zh}。", f"{who.en} bought {en}. They are very {how.en}."
