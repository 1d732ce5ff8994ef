"""English morphology: what an English word looks like in its place in a sentence.

Verbs may be phrases ("play the piano"): only the first word is inflected. The tables hold
irregular forms; everything else follows the spelling rules.
"""

from __future__ import annotations

VOWELS = "aeiou"

# lemma: (past, participle)
IRREGULAR_VERBS = {
    "be": ("was", "been"),
    "begin": ("began", "begun"),
    "break": ("broke", "broken"),
    "bring": ("brought", "brought"),
    "build": ("built", "built"),
    "buy": ("bought", "bought"),
    "catch": ("caught", "caught"),
    "come": ("came", "come"),
    "cut": ("cut", "cut"),
    "do": ("did", "done"),
    "draw": ("drew", "drawn"),
    "drink": ("drank", "drunk"),
    "drive": ("drove", "driven"),
    "eat": ("ate", "eaten"),
    "fall": ("fell", "fallen"),
    "feed": ("fed", "fed"),
    "feel": ("felt", "felt"),
    "find": ("found", "found"),
    "fly": ("flew", "flown"),
    "forget": ("forgot", "forgotten"),
    "get": ("got", "gotten"),
    "give": ("gave", "given"),
    "go": ("went", "gone"),
    "hang": ("hung", "hung"),
    "have": ("had", "had"),
    "hear": ("heard", "heard"),
    "hold": ("held", "held"),
    "know": ("knew", "known"),
    "leave": ("left", "left"),
    "lend": ("lent", "lent"),
    "lie": ("lay", "lain"),
    "lose": ("lost", "lost"),
    "make": ("made", "made"),
    "meet": ("met", "met"),
    "put": ("put", "put"),
    "read": ("read", "read"),
    "ride": ("rode", "ridden"),
    "run": ("ran", "run"),
    "say": ("said", "said"),
    "see": ("saw", "seen"),
    "sell": ("sold", "sold"),
    "send": ("sent", "sent"),
    "sing": ("sang", "sung"),
    "sit": ("sat", "sat"),
    "sleep": ("slept", "slept"),
    "speak": ("spoke", "spoken"),
    "spend": ("spent", "spent"),
    "stand": ("stood", "stood"),
    "steal": ("stole", "stolen"),
    "swim": ("swam", "swum"),
    "take": ("took", "taken"),
    "teach": ("taught", "taught"),
    "tell": ("told", "told"),
    "wear": ("wore", "worn"),
    "write": ("wrote", "written"),
}
# Verbs that double the last consonant before -ed and -ing. Stress decides, so they are listed.
DOUBLING_VERBS = frozenset({
    "begin", "chat", "cut", "forget", "get", "put", "run", "shop", "sit", "stop", "swim",
})  # fmt: skip

IRREGULAR_PLURALS = {
    "child": "children",
    "fish": "fish",
    "knife": "knives",
    "person": "people",
    "scarf": "scarves",
    "sheep": "sheep",
}

# positive: (comparative, superlative)
IRREGULAR_ADJECTIVES = {
    "bad": ("worse", "worst"),
    "far": ("farther", "farthest"),
    "good": ("better", "best"),
    "well": ("better", "best"),
    "early": ("earlier", "earliest"),
}
# Two syllables, and -er all the same.
SHORT_ADJECTIVES = frozenset({"clever", "narrow", "quiet", "simple"})
# One syllable, and "more" all the same.
LONG_ADJECTIVES = frozenset({"bored", "tired"})

UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen"
).split()
TENS = "- ten twenty thirty forty fifty sixty seventy eighty ninety".split()
MONTHS = (
    "January February March April May June July August September October November December"
).split()


def _head(phrase: str) -> tuple[str, str]:
    """Splits "play the piano" into "play" and " the piano"."""
    word, space, rest = phrase.partition(" ")
    return word, space + rest


def _s_form(word: str) -> str:
    """Adds the -s of plurals and of the third person: cat -> cats, watch -> watches."""
    if word.endswith(("s", "x", "z", "ch", "sh")):
        return word + "es"
    if word.endswith("y") and word[-2] not in VOWELS:
        return word[:-1] + "ies"
    return word + "s"


# The agreement of a subject: I, he/she/it, or we/you/they.
AM = {"I": "am", "it": "is", "they": "are"}
WAS = {"I": "was", "it": "was", "they": "were"}


def third_person(phrase: str) -> str:
    """The form after he, she, it: go home -> goes home."""
    word, rest = _head(phrase)
    special = {"have": "has", "be": "is", "do": "does", "go": "goes"}
    return special.get(word, _s_form(word)) + rest


def present(agreement: str, phrase: str) -> str:
    """The simple present: ("it", "go home") -> goes home."""
    return third_person(phrase) if agreement == "it" else phrase


def do(agreement: str) -> str:
    """The helper of questions and negations: do or does."""
    return present(agreement, "do")


def _ed_form(word: str) -> str:
    if word.endswith("e"):
        return word + "d"
    if word.endswith("y") and word[-2] not in VOWELS:
        return word[:-1] + "ied"
    return word + word[-1] + "ed" if word in DOUBLING_VERBS else word + "ed"


def past(phrase: str) -> str:
    """The simple past: buy a book -> bought a book."""
    word, rest = _head(phrase)
    return (IRREGULAR_VERBS[word][0] if word in IRREGULAR_VERBS else _ed_form(word)) + rest


def participle(phrase: str) -> str:
    """The past participle: see a panda -> seen a panda."""
    word, rest = _head(phrase)
    return (IRREGULAR_VERBS[word][1] if word in IRREGULAR_VERBS else _ed_form(word)) + rest


def gerund(phrase: str) -> str:
    """The -ing form: lie down -> lying down, make tea -> making tea."""
    word, rest = _head(phrase)
    if word.endswith("ie"):
        stem = word[:-2] + "y"
    elif word.endswith("e") and not word.endswith("ee") and word != "be":
        stem = word[:-1]
    else:
        stem = word + word[-1] if word in DOUBLING_VERBS else word
    return stem + "ing" + rest


def plural(noun: str) -> str:
    """The plural of a noun; of its last word when it is a phrase: train ticket -> train tickets."""
    first, space, last = noun.rpartition(" ")
    return first + space + IRREGULAR_PLURALS.get(last, _s_form(last))


def a(phrase: str) -> str:
    """Puts a or an before a phrase, by its sound: a university, an hour, an old man."""
    vowel_sound = phrase[0].lower() in VOWELS or phrase.startswith(("hour", "honest"))
    if phrase.startswith(("uni", "use", "one", "euro")):
        vowel_sound = False
    return ("an " if vowel_sound else "a ") + phrase


def _syllables(word: str) -> int:
    """Counts vowel groups, and leaves out a silent final e."""
    stem = word[:-1] if word.endswith("e") and not word.endswith("le") else word
    groups = "".join(c if c in VOWELS + "y" else " " for c in stem).split()
    return max(1, len(groups))


def _takes_er(adjective: str) -> bool:
    if adjective in LONG_ADJECTIVES or " " in adjective:
        return False
    if adjective in SHORT_ADJECTIVES or _syllables(adjective) == 1:
        return True
    return _syllables(adjective) == 2 and adjective.endswith("y")


def _er_stem(adjective: str) -> str:
    """The stem before -er and -est: big -> bigg, happy -> happi, large -> larg."""
    if adjective.endswith("e"):
        return adjective[:-1]
    if adjective.endswith("y") and adjective[-2] not in VOWELS:
        return adjective[:-1] + "i"
    ends_cvc = (
        len(adjective) >= 3
        and adjective[-1] not in VOWELS + "wxy"
        and adjective[-2] in VOWELS
        and adjective[-3] not in VOWELS
    )
    return adjective + adjective[-1] if ends_cvc and _syllables(adjective) == 1 else adjective


def comparative(adjective: str) -> str:
    """big -> bigger, interesting -> more interesting."""
    if adjective in IRREGULAR_ADJECTIVES:
        return IRREGULAR_ADJECTIVES[adjective][0]
    return _er_stem(adjective) + "er" if _takes_er(adjective) else "more " + adjective


def superlative(adjective: str) -> str:
    """big -> biggest, interesting -> most interesting (the article is left to the caller)."""
    if adjective in IRREGULAR_ADJECTIVES:
        return IRREGULAR_ADJECTIVES[adjective][1]
    return _er_stem(adjective) + "est" if _takes_er(adjective) else "most " + adjective


def number(n: int) -> str:
    """Spells 0 to 9,999: 21 -> twenty-one, 350 -> three hundred and fifty."""
    if n < 20:
        return UNITS[n]
    if n < 100:
        return TENS[n // 10] + (f"-{UNITS[n % 10]}" if n % 10 else "")
    size, name = (1000, "thousand") if n >= 1000 else (100, "hundred")
    rest = n % size
    joint = " and " if rest and (size == 100 or rest < 100) else " "
    return f"{number(n // size)} {name}" + (joint + number(rest) if rest else "")


def sentence(text: str) -> str:
    """Begins the sentence with a capital letter."""
    return text[0].upper() + text[1:]
