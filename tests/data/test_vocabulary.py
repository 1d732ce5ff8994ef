"""Any text comes back as it was, and no text becomes a control piece."""

import itertools
import json
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.data.hard_texts import ODD, TEXTS, TRAINING, TRAPS
from tests.toy_tokenizer import learn
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, normalizers, pre_tokenizers

from zhen.data.vocabulary import BYTES, CONTROLS, UNK, Vocabulary

KINDS = ["bpe", "unigram", "char"]
# The traps are the most frequent words there are.
TRAPPED = [*TRAINING, *[" ".join(TRAPS), "".join(TRAPS), *TRAPS] * 200]


def vocabulary(texts: list[str], **options) -> Vocabulary:
    return learn(texts, **{"vocab_size": 400, **options}).source


VOCABULARIES = {
    f"{kind}, {name}": vocabulary(texts, kind=kind, vocab_size=600, **options)
    for kind in KINDS
    for name, texts, options in [
        ("plain", TRAINING, {}),
        ("nothing", [], {}),
        ("traps", TRAPPED, {}),
        ("nfc", TRAPPED, {"normalization": "nfc"}),
        ("nfkc", TRAPPED, {"normalization": "nfkc"}),
        ("rare", TRAPPED, {"character_coverage": 0.8}),
    ]
}
WITHOUT_BYTES = {
    f"{kind}, {normalization}": vocabulary(
        TRAPPED, kind=kind, byte_fallback=False, normalization=normalization
    )
    for kind in KINDS
    for normalization in (None, "nfkc")
}
BPE = VOCABULARIES["bpe, plain"]
EACH = pytest.mark.parametrize("vocabulary", VOCABULARIES.values(), ids=VOCABULARIES)
EACH_WITHOUT_BYTES = pytest.mark.parametrize(
    "vocabulary", WITHOUT_BYTES.values(), ids=WITHOUT_BYTES
)


def pieces(vocabulary: Vocabulary, text: str) -> list[str]:
    return vocabulary.pieces(vocabulary.encode([text])[0])


@EACH
@given(TEXTS)
@settings(max_examples=100, deadline=None)
@example("<pad><s></s><0x41> <unk> <pad> a<s>b")
def test_exact_round_trip_without_control_pieces(vocabulary: Vocabulary, text: str) -> None:
    (ids,) = vocabulary.encode([text])
    assert vocabulary.decode([ids]) == vocabulary.normalise([text])
    assert all(len(CONTROLS) <= i < len(vocabulary) for i in ids)


@EACH
@pytest.mark.parametrize("text", ODD)
def test_odd_texts(vocabulary: Vocabulary, text: str) -> None:
    (ids,) = vocabulary.encode([text])
    assert vocabulary.decode([ids]) == vocabulary.normalise([text])
    assert all(i >= len(CONTROLS) for i in ids)


@EACH
def test_every_character_of_the_basic_plane(vocabulary: Vocabulary) -> None:
    blocks = [range(start, start + 256) for start in range(0, 0x10000, 256)]
    texts = ["".join(chr(c) for c in block if not 0xD800 <= c < 0xE000) for block in blocks]
    assert vocabulary.decode(vocabulary.encode(texts)) == vocabulary.normalise(texts)


@pytest.mark.parametrize("kind", KINDS)
@given(TEXTS)
@settings(max_examples=100, deadline=None)
def test_what_is_not_asked_for_is_not_normalised(kind: str, text: str) -> None:
    assert VOCABULARIES[f"{kind}, plain"].normalise([text]) == [text]


@pytest.mark.parametrize("form", ["nfc", "nfkc"])
@pytest.mark.parametrize("text", [text for text in ODD if "\U0010ffff" not in text])
def test_normalisation_is_that_of_unicode(form: str, text: str) -> None:
    expected = unicodedata.normalize(form.upper(), text)  # type: ignore[arg-type]
    assert VOCABULARIES[f"bpe, {form}"].normalise([text]) == [expected]


def test_nfkc_takes_full_width_punctuation() -> None:
    """Which is why nothing is normalised unless asked for."""
    assert VOCABULARIES["bpe, nfkc"].normalise(["你，ＡＢ？"]) == ["你,AB?"]


@EACH_WITHOUT_BYTES
@given(TEXTS)
@settings(max_examples=100, deadline=None)
@example("<unk>")
@example("<unk><pad>𠮷<unk>")
def test_without_bytes_known_characters_come_back(vocabulary: Vocabulary, text: str) -> None:
    (text,) = vocabulary.normalise([text])
    known = "".join(c for c in text if UNK not in pieces(vocabulary, c))
    (ids,) = vocabulary.encode([known])
    assert vocabulary.decode([ids]) == [known]
    assert all(i > len(CONTROLS) for i in ids)  # neither a control piece nor <unk>
    # With unknown ones among them, the known ones do, and no unknown one goes without a sign.
    (ids,) = vocabulary.encode([text])
    assert all(len(CONTROLS) <= i < len(vocabulary) for i in ids)
    (found,) = vocabulary.decode([ids])
    assert found.replace("\ufffd", "") == known.replace("\ufffd", "")
    runs = [key for key, _ in itertools.groupby(text, lambda c: UNK in pieces(vocabulary, c))]
    assert found.count("\ufffd") >= sum(runs)


def test_a_character_without_a_piece_is_unknown() -> None:
    for kind in KINDS:
        vocabulary = WITHOUT_BYTES[f"{kind}, None"]
        assert pieces(vocabulary, "很𠮷很") == ["很", UNK, "很"]
        assert vocabulary.decode(vocabulary.encode(["很𠮷很"])) == ["很\ufffd很"]
        assert all(vocabulary.begins(i) for i in range(len(vocabulary)))
        assert not set(BYTES) & set(vocabulary.pieces(range(len(vocabulary))))


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_stand_in_for_what_was_never_seen(kind: str) -> None:
    vocabulary = VOCABULARIES[f"{kind}, plain"]
    assert pieces(vocabulary, "帚") == ["<0xE5>", "<0xB8>", "<0x9A>"]
    assert pieces(vocabulary, "帚𠮷")[:4] == ["<0xE5>", "<0xB8>", "<0x9A>", "<0xF0>"]
    assert vocabulary.pieces([vocabulary.bos_id, vocabulary.eos_id]) == ["<s>", "</s>"]
    (ids,) = vocabulary.encode(["帚a扫"])
    assert [vocabulary.begins(i) for i in ids] == [True, False, False, True, True, False, False]


@pytest.mark.parametrize("kind", KINDS)
def test_characters_without_a_piece_are_counted(kind: str) -> None:
    for vocabulary in (VOCABULARIES[f"{kind}, plain"], WITHOUT_BYTES[f"{kind}, None"]):
        ids = [BPE.bos_id, *vocabulary.encode(["漂亮𠮷很é"])[0], BPE.eos_id]
        assert vocabulary.fallbacks(ids) == 2
        assert vocabulary.fallbacks(vocabulary.encode(TRAINING[:1])[0]) == 0


def test_kinds_cut_in_their_own_way() -> None:
    assert pieces(BPE, "漂亮") == ["漂亮"]
    assert pieces(VOCABULARIES["unigram, plain"], "漂亮") == ["漂亮"]
    assert pieces(VOCABULARIES["char, plain"], "漂亮 a") == ["漂", "亮", " ", "a"]
    for name, each in VOCABULARIES.items():
        if name.startswith("char"):
            known = set(each.pieces(range(len(each)))) - {*CONTROLS, *BYTES}
            assert all(len(piece) == 1 for piece in known)


@EACH
def test_a_batch_is_each_of_its_texts(vocabulary: Vocabulary) -> None:
    assert vocabulary.encode(ODD) == [vocabulary.encode([text])[0] for text in ODD]
    assert vocabulary.encode([]) == []
    assert vocabulary.decode([]) == []


def test_control_pieces_are_left_out_of_the_text() -> None:
    (ids,) = BPE.encode(["你很漂亮。"])
    padded = [BPE.bos_id, *ids, BPE.eos_id, BPE.pad_id, BPE.pad_id]
    assert BPE.decode([padded]) == ["你很漂亮。"]
    assert (BPE.pad_id, BPE.bos_id, BPE.eos_id) == (0, 1, 2)


@EACH
@given(st.lists(st.integers(0, 399), max_size=12))
@settings(max_examples=50, deadline=None)
def test_any_pieces_make_a_text(vocabulary: Vocabulary, ids: list[int]) -> None:
    """A model may say half a character: it becomes a replacement sign, not an error."""
    (text,) = vocabulary.decode([[i for i in ids if i < len(vocabulary)]])
    text.encode("utf-8")


@pytest.mark.parametrize("kind", KINDS)
def test_pieces_do_not_mix_kinds_or_cross_words(kind: str) -> None:
    for name, vocabulary in [*VOCABULARIES.items(), *WITHOUT_BYTES.items()]:
        learned = vocabulary.pieces(range(len(vocabulary)))
        for piece in set(learned) - {*CONTROLS, *BYTES, UNK}:
            assert " " not in piece[1:], name
            letters = [character for character in piece.strip() if character.isalnum()]
            rest = [c for c in piece.strip() if not c.isalnum() and c not in "'"]
            assert not (letters and rest), f"{name}: {piece!r}"
    cut = pieces(VOCABULARIES[f"{kind}, plain"], "更喜欢打篮球！ 10:30")
    text = "|".join(cut)
    assert text.endswith(("| |1|0|:|3|0", "| 1|0|:|3|0"))


@pytest.mark.parametrize(
    "vocabulary",
    [*VOCABULARIES.values(), *WITHOUT_BYTES.values()],
    ids=[*VOCABULARIES, *(f"{name}, no bytes" for name in WITHOUT_BYTES)],
)
def test_json_round_trip(vocabulary: Vocabulary) -> None:
    again = Vocabulary.from_json(vocabulary.to_json())
    assert again.to_json() == vocabulary.to_json()
    assert again.encode(ODD) == vocabulary.encode(ODD)
    # Formatting is not content.
    indented = json.dumps(json.loads(vocabulary.to_json()), indent=2)
    assert Vocabulary.from_json(indented).to_json() == vocabulary.to_json()


def other_kinds() -> dict[str, str]:
    """Valid files of the `tokenizers` library that break what this project relies on."""

    def ours() -> Backend:
        return Backend.from_str(BPE.to_json())

    missing = Backend(models.BPE(vocab={"a": 0, "b": 1}, merges=[]))
    swapped = Backend(models.BPE(vocab={"<s>": 0, "<pad>": 1, "</s>": 2}, merges=[]))
    words = Backend(models.WordLevel(vocab={piece: i for i, piece in enumerate(CONTROLS)}))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.decoder = decoders.WordPiece()
    (special := ours()).add_special_tokens(["<pad>"])  # looks for it in the text
    (lower := ours()).normalizer = normalizers.Lowercase()
    (spaced := ours()).decoder = None  # puts spaces between pieces
    (random := ours()).model.dropout = 0.5  # another cut each time
    kinds = {"missing": missing, "swapped": swapped, "no bytes": words, "special": special}
    kinds |= {"lower": lower, "spaced": spaced, "dropout": random}
    return {name: backend.to_str() for name, backend in kinds.items()}


BROKEN = {
    "empty": "",
    "no json": "hello",
    "a list": "[1, 2]",
    "a number": "5",
    "other json": '{"a": 1}',
    "truncated": BPE.to_json()[:500],
    **other_kinds(),
}


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
def test_a_tokenizer_of_another_kind_is_refused_in_one_line(content: str) -> None:
    with pytest.raises(ValueError) as caught:
        Vocabulary.from_json(content)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 400
