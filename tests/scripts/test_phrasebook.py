"""The embedded corpus is what its grammar makes, says what its datasheet claims, and is clean."""

import re
import subprocess
import sys
import unicodedata
from collections import Counter
from pathlib import Path

import pytest
from scripts.phrasebook import build, english, lexicon
from scripts.phrasebook import chinese as zh_forms
from scripts.phrasebook.grammar import PATTERNS, Pair, key

ROOT = Path(__file__).parents[2]
DATA = ROOT / "data" / "phrasebook"
SPLITS = ["train", "val", "test.seen", "test.heldout", "test.handwritten"]

# Every construction the corpus promises, as it looks in Chinese.
CONSTRUCTIONS = {
    "measure words": r"[一两三四五六七八九十几这那][个本件条张只把双杯碗块支顶封辆台部]",
    "是": r"是",
    "有": r"(?<!没)有(?!点|时)",
    "在 place": r"在(桌子上|家|公园|厨房|学校|图书馆|办公室|床上|沙发上)",
    "了": r"了",
    "过": r"(去|看|听|用|学)过",
    "正在": r"正在",
    "着": r"(穿|戴|拿|放|挂)着",
    "不": r"不",
    "没": r"没",
    "吗": r"吗？",
    "什么": r"(?<!为)什么",
    "谁": r"谁",
    "哪里": r"哪里",
    "几": r"几",
    "多少": r"多少",
    "为什么": r"为什么",
    "怎么": r"怎么",
    "比": r"比",
    "更": r"更",
    "最": r"最",
    "会": r"会",
    "能": r"能",
    "可以": r"可以",
    "应该": r"应该",
    "必须": r"必须",
    "把": r"把.+(了|上|开|干净|好|给我)",
    "被": r"被.+(走|破|丢|坏|好|掉|完)了",
    "relative clause": r"(买|做|画|借|送给.{1,2}|看)的.|的(人|朋友|地方)",
    "因为…所以": r"因为.+所以",
    "如果…就": r"如果.+就",
    "虽然…但是": r"虽然.+但是",
    "place words": r"(旁边|前面|后面|对面)",
    "clock times": r"点(半|一刻|.{1,3}分)?[^儿]",
    "dates": r"月.{1,3}号",
    "years": r"[零一二三四五六七八九]{4}年",
    "money": r"块钱",
    "它 refers back": r"，.*它",
    "他 or 她 refers back": r"，(大家都喜欢)?[他她](是|很喜欢)?",
    "preference": r"更喜欢",
    "很": r"很",
    "真": r"真",
    "太…了": r"太.+了",
    "非常": r"非常",
}

# What no English sentence may contain: agreement, articles and plurals gone wrong.
ENGLISH_FAULTS = [
    r"\b(he|she|it) (have|do|are|were|like|want|go|don't|haven't)\b(?! to have)",
    r"\b(I|you|we|they) (has|does|is|was not like|likes|wants|goes|doesn't|hasn't)\b",
    r"\b(you|we|they) (am|was)\b",
    r"\bI (is|are|were)\b",
    r"\ban? (apples|oranges|books|shoes|pants|glasses|gloves)\b",
    r"\b(two|three|four|five|six|seven|eight|nine) (\w+ )?(book|apple|cup|pair|brother)\b",
    r"\b(these|those) (\w+ )?(apple|book|shirt|is)\b",
    r"\b(this|that) (apples|books|shirts|are)\b",
    r"\bmore (\w+er)\b(?<!more clever)(?<!flower)",
    r"\bmost \w+est\b",
    r"\b(didn't|don't|doesn't|can't|won't|must|should) (\w+ed|went|bought|ate|had|was)\b",
    r"\b(much|many) (much|many)\b|\b(\w+) \2\b(?<!that that)(?<!had had)",
    r"\bto (went|goes|going to go)\b",
    r" [.,?!]|  |\.\.",
]


@pytest.fixture(scope="module")
def built() -> dict[str, list[Pair]]:
    return build.build()


@pytest.fixture(scope="module")
def generated(built) -> list[Pair]:
    return [pair for pairs in built.values() for pair in pairs if pair.pattern]


def read(name: str) -> list[tuple[str, str]]:
    lines = (DATA / f"{name}.tsv").read_text(encoding="utf-8").split("\n")
    assert lines[-1] == ""
    return [tuple(line.split("\t")) for line in lines[:-1]]


def english_words(pairs: list[Pair]) -> set[str]:
    return {word for pair in pairs for word in re.findall(r"[a-z']+", pair.en.lower())}


# The files


@pytest.mark.parametrize("name", SPLITS)
def test_files_are_what_the_grammar_makes(built, name):
    assert (DATA / f"{name}.tsv").read_bytes() == build.render(built[name])


def test_check_reports_a_difference(monkeypatch, tmp_path, built, capsys):
    for name, pairs in built.items():
        (tmp_path / f"{name}.tsv").write_bytes(build.render(pairs))
    monkeypatch.setattr(build, "DATA", tmp_path)
    monkeypatch.setattr(build, "build", lambda: built)
    monkeypatch.setattr(sys, "argv", ["build.py", "--check"])
    assert build.main() == 0
    (tmp_path / "val.tsv").write_bytes(b"")
    assert build.main() == 1
    assert "val.tsv differs" in capsys.readouterr().err


@pytest.mark.slow
def test_the_command_needs_only_the_standard_library():
    command = [sys.executable, "-I", "-S", "scripts/phrasebook/build.py", "--check"]
    assert subprocess.run(command, cwd=ROOT).returncode == 0


@pytest.mark.parametrize("name", SPLITS)
def test_format(name):
    raw = (DATA / f"{name}.tsv").read_bytes()
    assert b"\r" not in raw and not raw.startswith(b"\xef\xbb\xbf")
    for line in raw.decode("utf-8").split("\n")[:-1]:
        assert line.count("\t") == 1, line
        zh, en = line.split("\t")
        assert zh and en and zh == zh.strip() and en == en.strip(), line
        assert unicodedata.normalize("NFC", line) == line
        assert not any(unicodedata.category(char) == "Cc" for char in zh + en), line
        assert en.isascii() and "  " not in en, line
        assert re.search(r"[\u4e00-\u9fff]", zh), line
        assert not re.search(r"""[,.?!:;"'()]""", zh.replace("...", "")), line


def test_no_sentence_is_in_two_splits_on_either_side():
    for side in (0, 1):
        seen: dict[str, str] = {}
        for name in SPLITS:
            for pair in read(name):
                assert seen.setdefault(key(pair[side]), name) == name, pair


def test_no_pair_shares_a_side_with_another(built):
    pairs = [pair for split in built.values() for pair in split]
    assert len({key(pair.zh) for pair in pairs}) == len(pairs)
    assert len({key(pair.en) for pair in pairs}) == len(pairs)


# The counts


def test_sizes(built, generated):
    assert 20_000 <= len(generated) <= 26_000
    assert sum(not pair.pattern for pairs in built.values() for pair in pairs) >= 1500
    assert len(built["test.seen"]) == 500
    assert 250 <= len(built["test.heldout"]) <= 350
    assert len(built["test.handwritten"]) == 200
    assert len(built["val"]) == 500
    assert sum(not pair.pattern for pair in built["train"]) >= 1200


def test_datasheet_counts(built, generated):
    sheet = " ".join((DATA / "README.md").read_text(encoding="utf-8").split())
    for name, pairs in built.items():
        by_hand = sum(not pair.pattern for pair in pairs)
        row = f"| `{name}.tsv` | {len(pairs):,} | {len(pairs) - by_hand:,} | {by_hand:,} |"
        assert row in sheet, f"missing in the datasheet: {row}"
    total = sum(map(len, built.values()))
    held_out = sum(item.held_out for item in PATTERNS)
    assert f"**{total:,} pairs**" in sheet
    assert f"{len(generated):,} of the pairs" in sheet
    assert f"{total - len(generated):,} were written by hand" in sheet
    assert f"{len(PATTERNS)} patterns" in sheet and f"{held_out} of them" in sheet
    assert f"{len(english_words(generated)):,} English word forms" in sheet


def test_datasheet_examples_are_in_the_corpus(built):
    sheet = (DATA / "README.md").read_text(encoding="utf-8")
    examples = re.findall(r"^\| ([^|`]*[。？！]) \| ([^|]*) \|$", sheet, flags=re.M)
    corpus = {(pair.zh, pair.en) for pairs in built.values() for pair in pairs}
    assert len(examples) >= 8
    assert set(examples) <= corpus


def test_patterns_are_even(generated):
    counts = Counter(pair.pattern for pair in generated)
    assert set(counts) == {item.name for item in PATTERNS}
    assert len({item.name for item in PATTERNS}) == len(PATTERNS)
    assert max(counts.values()) <= len(generated) * 0.01


# The splits


def test_held_out_patterns_are_only_in_their_test(built):
    held_out = {item.name for item in PATTERNS if item.held_out}
    assert {pair.pattern for pair in built["test.heldout"]} <= held_out
    for name in SPLITS:
        if name != "test.heldout":
            assert not held_out & {pair.pattern for pair in built[name]}


def test_seen_patterns_are_all_in_train(built):
    assert {p.pattern for p in built["test.seen"]} <= {p.pattern for p in built["train"]}


@pytest.mark.parametrize("name", ["test.seen", "test.heldout"])
def test_every_tested_word_is_in_train(built, name):
    assert english_words(built[name]) <= english_words(built["train"])
    train = "".join(pair.zh for pair in built["train"])
    tested = "".join(pair.zh for pair in built[name])
    assert set(tested) <= set(train)
    tables = [lexicon.NOUNS, lexicon.ADJECTIVES, lexicon.ACTIVITIES, lexicon.PLACES]
    for entry in [entry for table in tables for entry in table]:
        assert entry.zh in train or entry.zh not in tested, entry


@pytest.mark.parametrize("name", ["test.seen", "test.heldout"])
def test_tests_have_no_hand_written_pairs(built, name):
    assert all(pair.pattern for pair in built[name])


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
def test_train_shows_the_construction(built, construction):
    shape = re.compile(CONSTRUCTIONS[construction])
    assert sum(bool(shape.search(p.zh)) for p in built["train"] if p.pattern) >= 100


# The language


@pytest.mark.parametrize("fault", ENGLISH_FAULTS)
def test_english_fault_is_absent(generated, fault):
    shape = re.compile(fault)
    # "Does he like ...", "Can she go ..." and "help her do ..." rightly have the bare verb.
    questions = re.compile(r"^(What|Where|How|Why|Do|Does|Did|Can|May|Have|Has|Is|Are|Who)\b")
    bad = [p for p in generated if not questions.search(p.en) and shape.search(p.en)]
    assert not bad, bad[:5]


def test_articles_follow_the_sound(generated):
    for pair in generated:
        for article, word in re.findall(r"(?<!')\b(an?) ([A-Za-z]+)", pair.en):
            assert (article == "an") == (word[0].lower() in "aeiou"), pair


def test_sentences_begin_with_a_capital_and_end_with_the_same_mark(generated):
    for pair in generated:
        assert pair.en[0].isupper(), pair
        assert {"。": ".", "？": "?", "！": "!"}[pair.zh[-1]] == pair.en[-1], pair
        assert " i " not in pair.en, pair


def test_measure_words_match_their_nouns(generated):
    measures = "".join(sorted({noun.measure for noun in lexicon.NOUNS}))
    nouns = sorted(lexicon.NOUNS, key=lambda noun: -len(noun.zh))
    allowed: dict[str, set[str]] = {}
    for noun in nouns:
        allowed.setdefault(noun.zh, set()).add(noun.measure)
    shape = re.compile(f"[一两三四五六七八九这那]([{measures}])({'|'.join(n.zh for n in nouns)})")
    found = [(p, *match) for p in generated for match in shape.findall(p.zh)]
    assert len(found) > 3000
    for pair, measure, noun in found:
        assert measure in allowed[noun] or measure == "个", pair


def test_two_is_liang_before_a_measure_word(generated):
    assert not [p for p in generated if re.search(r"(?<![十百零])二[个本件条张只把双杯碗]", p.zh)]


def test_gender_agrees(generated):
    for pair in generated:
        words = set(re.findall(r"[a-z]+", pair.en.lower()))
        if words & {"he", "him", "his", "himself"}:
            assert re.search(r"他|爸爸|哥哥|弟弟|爷爷|叔叔|儿子|小王|小明", pair.zh), pair
        if words & {"she", "her", "hers", "herself"}:
            assert re.search(r"她|妈妈|姐姐|妹妹|奶奶|阿姨|女儿|小李|小红", pair.zh), pair


def test_past_time_words_have_past_verbs(generated):
    for pair in generated:
        if "yesterday" in pair.en and "tomorrow" not in pair.en:
            assert re.search(r"昨天|前天", pair.zh), pair
            assert not re.search(r"\b(will|going to)\b", pair.en), pair


# The morphology


@pytest.mark.parametrize(
    ("form", "word", "expected"),
    [
        (english.third_person, "study Chinese", "studies Chinese"),
        (english.third_person, "watch TV", "watches TV"),
        (english.third_person, "have lunch", "has lunch"),
        (english.third_person, "play chess", "plays chess"),
        (english.past, "go home", "went home"),
        (english.past, "chat", "chatted"),
        (english.past, "dance", "danced"),
        (english.past, "study", "studied"),
        (english.participle, "take photos", "taken photos"),
        (english.participle, "swim", "swum"),
        (english.gerund, "take a walk", "taking a walk"),
        (english.gerund, "run", "running"),
        (english.gerund, "lie", "lying"),
        (english.gerund, "see", "seeing"),
        (english.plural, "knife", "knives"),
        (english.plural, "strawberry", "strawberries"),
        (english.plural, "washing machine", "washing machines"),
        (english.plural, "box", "boxes"),
        (english.comparative, "big", "bigger"),
        (english.comparative, "cute", "cuter"),
        (english.comparative, "heavy", "heavier"),
        (english.comparative, "tired", "more tired"),
        (english.comparative, "famous", "more famous"),
        (english.superlative, "good", "best"),
        (english.superlative, "clever", "cleverest"),
        (english.superlative, "interesting", "most interesting"),
        (english.a, "apple", "an apple"),
        (english.a, "university", "a university"),
        (english.a, "hour", "an hour"),
        (english.number, 0, "zero"),
        (english.number, 21, "twenty-one"),
        (english.number, 305, "three hundred and five"),
        (english.number, 4240, "four thousand two hundred and forty"),
        (zh_forms.number, 10, "十"),
        (zh_forms.number, 12, "十二"),
        (zh_forms.number, 215, "二百一十五"),
        (zh_forms.number, 1005, "一千零五"),
        (zh_forms.number, 2500, "两千五百"),
        (zh_forms.count, 2, "两"),
        (zh_forms.count, 12, "十二"),
        (zh_forms.year, 2015, "二零一五年"),
    ],
)
def test_form(form, word, expected):
    assert form(word) == expected


def test_noun_forms():
    nouns = {noun.en: noun for noun in lexicon.NOUNS}
    assert nouns["apple"].one() == "an apple"
    assert nouns["tea"].several("two", "hot") == "two cups of hot tea"
    assert nouns["shoes"].one("black") == "a pair of black shoes"
    assert nouns["shoes"].agreement == "they" and nouns["tea"].agreement == "it"
    assert [nouns[en].bare for en in ("apple", "tea", "shoes")] == ["apples", "tea", "shoes"]


def test_lexicon_entries_are_whole():
    for noun in lexicon.NOUNS:
        assert len(noun.measure) == 1 and noun.en.isascii() and noun.tags, noun
    for place in lexicon.PLACES:
        assert set(place.activities) <= set(lexicon.ACTIVITY), place
    for adjective in lexicon.ADJECTIVES:
        assert adjective.worth in ("good", "bad", "plain"), adjective
        assert lexicon.tagged(lexicon.NOUNS, *adjective.fits), adjective
