"""Any text comes back as it was, and no text becomes a control piece."""

import json
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, normalizers, pre_tokenizers

from zhen.data.tokenizer import BYTES, CONTROLS, Tokenizer, TokenizerOptions
from zhen.errors import UserError

TRAINING = [
    "你很漂亮。",
    "这只蝴蝶真漂亮，停在花朵上，我很喜欢它。",
    "我喜欢踢足球，更喜欢打篮球！",
    "You are beautiful.",
    "I like playing football, and I like playing basketball even more.",
    "It's 10:30; don't be late!",
    "他在 GitHub 上写 Python 代码。",
] * 3
TRAPS = ["<pad>", "<s>", "</s>", "<unk>", "<0x41>", "<0xE4>", "<", "</", "s>"]
ODD = [
    "",
    " ",
    "   a    b  ",
    "\t\n\r\x0b\x0c\x1c\x85\u2028\u2029\u00a0\u3000\u200b\ufeff",
    "\x00\x01\x1f\x7f",
    "，。！？；：“”‘’（）《》、……——％＄ＡＢＣ１２３",
    ",.!?;:\"'()<>...--%$ABC123",
    "扫帚㐂𠮷𪚥〇々〆ヶ⺀",
    "👍🏽👨‍👩‍👧‍👦🇨🇳🏴󠁧󠁢󠁥󠁮󠁧󠁿",
    "e\u0301 é n\u0303 ñ ﬁ ① ㎏ ½ Å \u0301 a\u0301\u0302\u0303",
    "中文English混排123和https://example.com/a?b=c&d=e。",
    "don't ''quoted'' rock'n'roll 'tis",
    "한국어 日本語 ไทย العربية עברית हिन्दी",
    "\U0010ffff\ufffd\ufffe\ue000",
    *TRAPS,
]
PIECES = st.sampled_from(
    [*ODD, *TRAINING[:7], " ", "  ", "你", "好", "，", "a", "B", "7", "'", "\u0301"]
)
TEXTS = (
    st.text() | st.lists(PIECES, max_size=6).map("".join) | st.text(st.characters(codec="utf-8"))
)


def train(texts: list[str], vocab_size: int = 400, min_frequency: int = 2) -> Tokenizer:
    return Tokenizer.train(texts, TokenizerOptions(vocab_size, min_frequency))


def pieces(tokenizer: Tokenizer, text: str) -> list[str]:
    return tokenizer.pieces(tokenizer.encode([text])[0])


TOKENIZERS = {
    "plain": train(TRAINING),
    "nothing": train([]),
    # The traps are the most frequent words there are.
    "traps": train([*TRAINING, *[" ".join(TRAPS), "".join(TRAPS), *TRAPS] * 200], 600),
}
EACH = pytest.mark.parametrize("tokenizer", TOKENIZERS.values(), ids=TOKENIZERS)


@EACH
@given(TEXTS)
@settings(max_examples=200, deadline=None)
@example("<pad><s></s><0x41> <pad> a<s>b")
def test_exact_round_trip_without_control_pieces(tokenizer: Tokenizer, text: str) -> None:
    text = text.encode("utf-8", "ignore").decode()  # half of a surrogate pair is no text
    (ids,) = tokenizer.encode([text])
    assert tokenizer.decode([ids]) == [text]
    assert all(len(CONTROLS) <= i < tokenizer.vocab_size for i in ids)


@EACH
@pytest.mark.parametrize("text", ODD)
def test_odd_texts(tokenizer: Tokenizer, text: str) -> None:
    (ids,) = tokenizer.encode([text])
    assert tokenizer.decode([ids]) == [text]
    assert all(i >= len(CONTROLS) for i in ids)


@EACH
def test_every_character_of_the_basic_plane(tokenizer: Tokenizer) -> None:
    blocks = [range(start, start + 256) for start in range(0, 0x10000, 256)]
    texts = ["".join(chr(c) for c in block if not 0xD800 <= c < 0xE000) for block in blocks]
    assert tokenizer.decode(tokenizer.encode(texts)) == texts


def test_bytes_stand_in_for_what_was_never_seen() -> None:
    tokenizer = TOKENIZERS["plain"]
    assert pieces(tokenizer, "帚") == ["<0xE5>", "<0xB8>", "<0x9A>"]
    assert pieces(tokenizer, "漂亮") == ["漂亮"]
    assert tokenizer.pieces([tokenizer.bos_id, tokenizer.eos_id]) == ["<s>", "</s>"]
    (ids,) = tokenizer.encode(["帚a扫"])
    assert [tokenizer.begins(i) for i in ids] == [True, False, False, True, True, False, False]


def test_a_batch_is_each_of_its_texts() -> None:
    tokenizer = TOKENIZERS["plain"]
    assert tokenizer.encode(ODD) == [tokenizer.encode([text])[0] for text in ODD]
    assert tokenizer.encode([]) == []
    assert tokenizer.decode([]) == []


def test_control_pieces_are_left_out_of_the_text() -> None:
    tokenizer = TOKENIZERS["plain"]
    (ids,) = tokenizer.encode(["你很漂亮。"])
    padded = [tokenizer.bos_id, *ids, tokenizer.eos_id, tokenizer.pad_id, tokenizer.pad_id]
    assert tokenizer.decode([padded]) == ["你很漂亮。"]
    assert (tokenizer.pad_id, tokenizer.bos_id, tokenizer.eos_id) == (0, 1, 2)


@given(st.lists(st.integers(3, TOKENIZERS["plain"].vocab_size - 1), max_size=12))
@settings(max_examples=100, deadline=None)
def test_any_pieces_make_a_text(ids: list[int]) -> None:
    """A model may say half a character: it becomes a replacement sign, not an error."""
    (text,) = TOKENIZERS["plain"].decode([ids])
    text.encode("utf-8")


def test_pieces_do_not_mix_kinds_or_cross_words() -> None:
    for name, tokenizer in TOKENIZERS.items():
        for piece in json.loads(tokenizer.to_json())["model"]["vocab"]:
            if piece in CONTROLS or piece in BYTES:
                continue
            assert " " not in piece[1:], name
            letters = [character for character in piece.strip() if character.isalnum()]
            rest = [c for c in piece.strip() if not c.isalnum() and c not in "'"]
            assert not (letters and rest), f"{name}: {piece!r}"
    found = pieces(TOKENIZERS["plain"], "更喜欢打篮球！ 10:30")
    assert found[-6:] == [" ", "1", "0", ":", "3", "0"] or found[-5:] == [
        " 1",
        "0",
        ":",
        "3",
        "0",
    ]


def test_training_is_deterministic() -> None:
    texts = [*TRAINING, *ODD]
    assert len({train(texts, size).to_json() for size in [350] * 5}) == 1
    # Where the alphabet alone is too large, ties are broken the same way each time.
    many = [chr(0x4E00 + i) for i in range(600)]
    assert train(many, 300).to_json() == train(many[::-1], 300).to_json()


@given(st.integers(260, 700), st.lists(st.text(max_size=30), max_size=20))
@settings(max_examples=40, deadline=None)
def test_the_vocabulary_is_no_larger_than_asked(vocab_size: int, texts: list[str]) -> None:
    texts = [text.encode("utf-8", "ignore").decode() for text in texts]
    tokenizer = train([*TRAINING, *texts], vocab_size, min_frequency=1)
    assert tokenizer.vocab_size <= vocab_size
    ids = range(tokenizer.vocab_size)
    assert sorted(json.loads(tokenizer.to_json())["model"]["vocab"].values()) == list(ids)


def test_more_characters_than_room() -> None:
    """The frequent ones are pieces, the others bytes, and the round trip is exact."""
    common, rare = "的一是" * 50, "".join(chr(0x4E10 + i) for i in range(500))
    tokenizer = train([common, rare], 300)
    assert tokenizer.vocab_size == 300
    assert all(len(pieces(tokenizer, character)) == 1 for character in "的一是")
    assert tokenizer.decode(tokenizer.encode([rare])) == [rare]


def test_a_full_vocabulary_is_reached() -> None:
    texts = [f"{a}{b}{c}" for a in "abcdef" for b in "ghijkl" for c in "mnopqr"]
    assert train(texts, 300).vocab_size == 300


def test_min_frequency() -> None:
    assert pieces(train(["xy", "xy"], min_frequency=2), "xy") == ["xy"]
    assert pieces(train(["xy", "xy"], min_frequency=3), "xy") == ["x", "y"]


@EACH
def test_json_round_trip(tokenizer: Tokenizer, tmp_path: Path) -> None:
    again = Tokenizer.from_json(tokenizer.to_json())
    assert again.to_json() == tokenizer.to_json()
    assert again.encode(ODD) == tokenizer.encode(ODD)
    path = tmp_path / "tokenizer.json"
    path.write_text(tokenizer.to_json(), encoding="utf-8")
    loaded = Tokenizer.train([], TokenizerOptions(path=str(path)))
    assert loaded.to_json() == tokenizer.to_json()


def other_kinds() -> dict[str, str]:
    """Valid files of the `tokenizers` library that break what this project relies on."""
    missing = Backend(models.BPE(vocab={"a": 0, "b": 1}, merges=[]))
    swapped = Backend(models.BPE(vocab={"<s>": 0, "<pad>": 1, "</s>": 2}, merges=[]))
    words = Backend(models.WordLevel(vocab={piece: i for i, piece in enumerate(CONTROLS)}))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.decoder = decoders.WordPiece()
    special = Backend.from_str(TOKENIZERS["plain"].to_json())
    special.add_special_tokens(["<pad>"])  # looks for it in the text
    normalised = Backend.from_str(TOKENIZERS["plain"].to_json())
    normalised.normalizer = normalizers.NFKC()  # "，" becomes ","
    spaced = Backend.from_str(TOKENIZERS["plain"].to_json())
    spaced.decoder = None  # puts spaces between pieces
    kinds = {"missing": missing, "swapped": swapped, "no bytes": words, "special": special}
    kinds |= {"normalised": normalised, "spaced": spaced}
    return {name: backend.to_str() for name, backend in kinds.items()}


BROKEN: dict[str, bytes] = {
    "empty": b"",
    "no json": b"hello",
    "a list": b"[1, 2]",
    "a number": b"5",
    "other json": b'{"a": 1}',
    "truncated": TOKENIZERS["plain"].to_json().encode()[:500],
    "no UTF-8": b"\xff\xfe\x00",
    **{name: text.encode() for name, text in other_kinds().items()},
}


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
def test_a_tokenizer_of_another_kind_is_refused_in_one_line(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_bytes(content)
    with pytest.raises(UserError) as caught:
        Tokenizer.train(TRAINING, TokenizerOptions(path=str(path)))
    message = str(caught.value)
    assert message.startswith(f"tokenizer.path: {path}: ")
    assert "\n" not in message and len(message) < 400


@pytest.mark.parametrize("name", ["missing.json", "."])
def test_a_path_that_cannot_be_read(name: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"tokenizer\.path: cannot read"):
        Tokenizer.load(tmp_path / name)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vocab_size": 259}, "`vocab_size` must be at least 260, but is 259"),
        ({"vocab_size": -1}, "`vocab_size` must be at least 260, but is -1"),
        ({"min_frequency": 0}, "`min_frequency` must be at least 1, but is 0"),
    ],
)
def test_options_out_of_range(options: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TokenizerOptions(**options)
