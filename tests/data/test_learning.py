"""What is learned: how much, from which pairs, and always the same."""

import os
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.data.hard_texts import ODD, TEXTS, TRAINING
from tests.toy_tokenizer import Lists, learn

from zhen.data import Tokenizer, TokenizerOptions
from zhen.data.learning import BLOCK, Texts
from zhen.data.vocabulary import BYTES, CONTROLS, UNK, Vocabulary

KINDS = pytest.mark.parametrize("kind", ["bpe", "unigram", "char"])


def vocabulary(texts: list[str], **options) -> Vocabulary:
    return learn(texts, **{"vocab_size": 400, **options}).source


def learned(vocabulary: Vocabulary) -> list[str]:
    return vocabulary.pieces(range(len(vocabulary)))


def pieces(vocabulary: Vocabulary, text: str) -> list[str]:
    return vocabulary.pieces(vocabulary.encode([text])[0])


@KINDS
@given(st.integers(260, 700), st.lists(TEXTS, max_size=20), st.booleans(), st.integers(1, 3))
@settings(max_examples=40, deadline=None)
def test_the_vocabulary_is_no_larger_than_asked(
    kind: str, vocab_size: int, texts: list[str], byte_fallback: bool, min_frequency: int
) -> None:
    found = vocabulary(
        [*TRAINING, *texts], kind=kind, vocab_size=vocab_size, byte_fallback=byte_fallback,
        min_frequency=min_frequency,
    )  # fmt: skip
    assert len(found) <= vocab_size
    fixed = [*CONTROLS, *(BYTES if byte_fallback else [UNK])]
    assert learned(found)[: len(fixed)] == fixed
    assert len(set(learned(found))) == len(found)


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_full_vocabulary_is_reached(kind: str) -> None:
    texts = [f"{a}{b}{c}" for a in "abcdef" for b in "ghijkl" for c in "mnopqr"]
    assert len(vocabulary(texts, kind=kind, vocab_size=300)) == 300


@KINDS
def test_more_characters_than_room(kind: str) -> None:
    """The frequent ones are pieces, the others bytes, and the round trip is exact."""
    common, rare = "的一是" * 50, "".join(chr(0x4E10 + i) for i in range(500))
    found = vocabulary([common, rare], kind=kind, vocab_size=300)
    assert len(found) == 300
    assert all(len(pieces(found, character)) == 1 for character in "的一是")
    assert found.decode(found.encode([rare])) == [rare]


@KINDS
def test_character_coverage(kind: str) -> None:
    """90 % of the text is a, 9 % b and 1 % c."""
    text = "a" * 90 + "b" * 9 + "c"
    for coverage, known in [(0.1, "a"), (0.9, "a"), (0.91, "ab"), (0.99, "ab"), (1.0, "abc")]:
        found = vocabulary([text], kind=kind, character_coverage=coverage)
        assert {c for c in "abc" if c in learned(found)} == set(known)
        assert found.decode(found.encode([text])) == [text]
    found = vocabulary([text], kind=kind, character_coverage=0.99, byte_fallback=False)
    assert pieces(found, "c") == [UNK]


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_min_frequency(kind: str) -> None:
    for texts in (["xy", "xy"], ["xy xy"]):
        assert len(pieces(vocabulary(["xy"] * 2, kind=kind, min_frequency=2), "xy")) == 1
        assert pieces(vocabulary(texts, kind=kind, min_frequency=3), "xy") == ["x", "y"]


@KINDS
def test_it_is_learned_from_the_normalised_text(kind: str) -> None:
    found = vocabulary(["ＡＢ，e\u0301"] * 5, kind=kind, normalization="nfkc")
    assert set("".join(learned(found)[3 + 256 :])) == set("AB,é")


@KINDS
def test_neither_order_nor_repetition_in_one_process_matters(kind: str) -> None:
    texts = [*TRAINING, *ODD]
    assert len({vocabulary(texts, kind=kind).to_json() for _ in range(4)}) == 1
    assert vocabulary(texts, kind=kind).to_json() == vocabulary(texts[::-1], kind=kind).to_json()
    # Where the alphabet alone is too large, ties are broken the same way each time.
    many = [chr(0x4E00 + i) for i in range(600)]
    options = {"kind": kind, "vocab_size": 300}
    assert vocabulary(many, **options).to_json() == vocabulary(many[::-1], **options).to_json()


def everything() -> str:
    """Vocabularies of each kind, from a text with many ties, as one string."""
    words = [f"{a}{b}{c}" for a in "abcdefgh" for b in "aeiou" for c in "bdfg天地人"]
    texts = [*TRAINING, *(" ".join(words[i::9]) for i in range(9)), *ODD]
    return "".join(
        learn(texts, kind=kind, joint=joint, vocab_size=420).to_json()
        for kind in ("bpe", "unigram", "char")
        for joint in (True, False)
    )


def test_processes_and_threads_learn_the_same() -> None:
    code = "from tests.data.test_learning import everything; print(everything())"
    processes = []
    for seed, threads, parallel in [("1", "1", "false"), ("2", "4", "true")]:
        settings = {
            "PYTHONHASHSEED": seed,
            "RAYON_NUM_THREADS": threads,
            "OMP_NUM_THREADS": threads,
            "TOKENIZERS_PARALLELISM": parallel,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "PYTHONIOENCODING": "utf-8",
        }
        command = [sys.executable, "-c", code]
        processes.append(
            subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, **settings})
        )
    for process in processes:
        found, _ = process.communicate(timeout=300)
        assert process.returncode == 0
        assert found.decode() == everything() + "\n"


class Spied(Lists):
    """Remembers which pairs were asked for."""

    def texts(self, start: int, stop: int) -> tuple[list[str], list[str]]:
        ASKED.append((start, stop))
        return super().texts(start, stop)


ASKED: list[tuple[int, int]] = []
NUMBERS = Spied([f"s{i}" for i in range(5000)], [f"t{i}" for i in range(5000)])


@pytest.fixture(autouse=True)
def forget() -> None:
    ASKED.clear()


@pytest.mark.parametrize("sides", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize(
    ("rows", "sample", "expected"),
    [
        (None, None, range(5000)),
        (None, 5000, range(5000)),
        (None, 10**9, range(5000)),
        (None, 1, [0]),
        (None, 5, [0, 1000, 2000, 3000, 4000]),
        (None, 2500, range(0, 5000, 2)),
        ([], None, []),
        ([], 5, []),
        ([3, 4, 4999], None, [3, 4, 4999]),
        (range(1, 5000, 2), 2, [1, 2501]),
        (range(0, 5000, 100), None, range(0, 5000, 100)),
    ],
    ids=str,
)
def test_which_pairs_are_read(sides: tuple[int, ...], rows, sample, expected) -> None:
    rows = None if rows is None else np.array(rows, dtype=np.int64)
    texts = Texts(NUMBERS, rows, sample, sides)
    for _ in range(2):  # as often as needed
        found = list(texts)
        assert sorted(found) == sorted(f"{'st'[side]}{row}" for row in expected for side in sides)
        assert [text for text in found if text[0] == "st"[sides[0]]] == [
            f"{'st'[sides[0]]}{row}" for row in expected
        ]
    assert all(stop - start <= 9 * BLOCK for start, stop in ASKED)


def test_pairs_far_apart_are_read_alone() -> None:
    list(Texts(NUMBERS, None, 50, (0,)))
    assert [(i, i + 1) for i in range(0, 5000, 100)] == ASKED


def test_a_sample_is_what_is_learned_from() -> None:
    pairs = Lists(["aa", "bb"] * 500, ["cc", "dd"] * 500)

    def known(**options) -> set[str]:
        rows = options.pop("rows", None)
        options = {"joint": False, **options}
        found = Tokenizer.train(pairs, TokenizerOptions(**options), rows)
        return set("abcd") & {*learned(found.source), *learned(found.target)}

    assert known() == known(joint=True) == set("abcd")
    assert known(rows=np.arange(1, 1000, 2)) == set("bd")
    assert known(sample=500) == set("ac")
    assert known(sample=1, joint=True) == set("ac")


class Made:
    """Many pairs, made when they are read."""

    def __len__(self) -> int:
        return 12_000

    def texts(self, start: int, stop: int) -> tuple[list[str], list[str]]:
        rows = range(start, stop)
        return [f"{i % 7} " * 60 for i in rows], [f"w{i % 9} " * 60 for i in rows]


def test_the_texts_are_never_all_in_memory() -> None:
    pairs = Made()
    size = sum(len(text) for side in pairs.texts(0, len(pairs)) for text in side)
    tracemalloc.start()
    Tokenizer.train(pairs, TokenizerOptions(vocab_size=270))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert size > 3_000_000 and peak < size / 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vocab_size": 259}, "`vocab_size` must be at least 260, but is 259"),
        ({"vocab_size": -1}, "`vocab_size` must be at least 260, but is -1"),
        (
            {"vocab_size": 4, "byte_fallback": False},
            "`vocab_size` must be at least 5, but is 4",
        ),
        (
            {"vocab_size": {"source": 300, "target": 9}, "joint": False},
            "`vocab_size` must be at least 260, but is 9",
        ),
        (
            {"vocab_size": {"source": 300, "target": 300}},
            "`vocab_size` must be one number where `joint` is true",
        ),
        (
            {"vocab_size": {"zh": 300, "en": 300}, "joint": False},
            "`vocab_size` must have source and target, but has ['en', 'zh']",
        ),
        ({"path": {"source": "a"}}, "`path` must have source and target, but has ['source']"),
        ({"kind": "wordpiece"}, "`kind` must be bpe, unigram or char, but is 'wordpiece'"),
        ({"normalization": "nfd"}, "`normalization` must be nfc, nfkc or null, but is 'nfd'"),
        ({"min_frequency": 0}, "`min_frequency` must be at least 1, but is 0"),
        ({"character_coverage": 0.0}, "`character_coverage` must be above 0 and at most 1"),
        ({"character_coverage": float("nan")}, "`character_coverage` must be above 0"),
        ({"dropout": -0.1}, "`dropout` must be from 0 to 1, but is -0.1"),
        ({"dropout": float("nan")}, "`dropout` must be from 0 to 1, but is nan"),
        ({"dropout": 0.1, "kind": "char"}, "`dropout` leaves out merges of a bpe, but `kind` is"),
        ({"sample": 0}, "`sample` must be at least 1, but is 0"),
    ],
    ids=str,
)
def test_options_out_of_range(options: dict, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        TokenizerOptions(**options)
    assert str(caught.value).startswith(message)
