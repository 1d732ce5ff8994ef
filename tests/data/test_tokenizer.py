"""The two sides' vocabularies: one for both, or one for each; where they come from."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.data.hard_texts import ODD, TRAINING
from tests.toy_tokenizer import Lists

from zhen.data import Tokenizer, TokenizerOptions
from zhen.errors import UserError

ZH = [text for text in TRAINING if text.endswith(("。", "！"))]
EN = [text for text in TRAINING if text not in ZH]
PAIRS = Lists(ZH[:9], EN[:9])


def train(**options) -> Tokenizer:
    return Tokenizer.train(PAIRS, TokenizerOptions(**{"vocab_size": 330, **options}))


JOINT, EACH = train(), train(joint=False)


def learned(tokenizer: Tokenizer, side: str) -> set[str]:
    vocabulary = getattr(tokenizer, side)
    return set(vocabulary.pieces(range(len(vocabulary))))


def test_one_vocabulary_knows_both_languages() -> None:
    assert JOINT.joint and JOINT.source is JOINT.target
    assert {"漂", "Y"} <= learned(JOINT, "source")
    assert JOINT.vocab_sizes == {"vocab_size": len(JOINT.target)}


@pytest.mark.parametrize("kind", ["bpe", "unigram", "char"])
def test_each_side_knows_its_own_language(kind: str) -> None:
    each = train(kind=kind, joint=False)
    assert not each.joint
    assert "漂" in learned(each, "source") - learned(each, "target")
    assert "Y" in learned(each, "target") - learned(each, "source")
    assert each.vocab_sizes == {
        "vocab_size": len(each.target),
        "source_vocab_size": len(each.source),
    }
    for side in (each.source, each.target):
        assert (side.pad_id, side.bos_id, side.eos_id) == (each.pad_id, each.bos_id, each.eos_id)
        assert side.decode(side.encode(ODD)) == ODD


def test_each_side_has_a_size_of_its_own() -> None:
    found = train(joint=False, vocab_size={"source": 300, "target": 290})
    assert (len(found.source), len(found.target)) == (300, 290)


@pytest.mark.parametrize("tokenizer", [JOINT, EACH], ids=["joint", "each"])
def test_json_round_trip(tokenizer: Tokenizer, tmp_path: Path) -> None:
    again = Tokenizer.from_json(tokenizer.to_json())
    assert again.to_json() == tokenizer.to_json()
    assert again.joint == tokenizer.joint
    assert again.source.encode(ODD) == tokenizer.source.encode(ODD)
    assert again.target.encode(ODD) == tokenizer.target.encode(ODD)
    path = tmp_path / "tokenizer.json"
    path.write_text(tokenizer.to_json(), encoding="utf-8")
    loaded = Tokenizer.load(path)
    assert loaded.to_json() == tokenizer.to_json()


def test_a_file_for_each_side(tmp_path: Path) -> None:
    for side in ("source", "target"):
        (tmp_path / side).write_text(getattr(EACH, side).to_json(), encoding="utf-8")
    path = {side: str(tmp_path / side) for side in ("source", "target")}
    assert Tokenizer.load(path).to_json() == EACH.to_json()


def test_one_vocabulary_is_a_file_of_the_library(tmp_path: Path) -> None:
    from tokenizers import Tokenizer as Backend

    (tmp_path / "tokenizer.json").write_text(JOINT.to_json(), encoding="utf-8")
    theirs = Backend.from_file(str(tmp_path / "tokenizer.json"))
    assert [theirs.encode(text).ids for text in ODD] == JOINT.source.encode(ODD)


VOCABULARY = JOINT.source.to_json()
BROKEN: dict[str, bytes] = {
    "empty": b"",
    "no UTF-8": b"\xff\xfe\x00",
    "truncated": VOCABULARY.encode()[:500],
    "another's": b'{"version": "1.0", "model": {"type": "BPE", "vocab": {}, "merges": []}}',
    "one side": f'{{"source": {VOCABULARY}}}'.encode(),
    "a side of another kind": f'{{"source": {VOCABULARY}, "target": {{"a": 1}}}}'.encode(),
    "a side that is no mapping": f'{{"source": {VOCABULARY}, "target": 5}}'.encode(),
}


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
def test_another_file_is_refused_in_one_line(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_bytes(content)
    with pytest.raises(UserError) as caught:
        Tokenizer.load(path)
    message = str(caught.value)
    assert message.startswith(f"tokenizer.path: {path}: ")
    assert "\n" not in message and len(message) < 400
    (tmp_path / "good.json").write_text(VOCABULARY, encoding="utf-8")
    with pytest.raises(UserError, match=r"^tokenizer\.path\.target: "):
        Tokenizer.load({"source": str(tmp_path / "good.json"), "target": str(path)})


@pytest.mark.parametrize("name", ["missing.json", "."])
def test_a_path_that_cannot_be_read(name: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"tokenizer\.path: cannot read"):
        Tokenizer.load(tmp_path / name)


def test_dropout_needs_merges(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(train(kind="unigram").to_json(), encoding="utf-8")
    with pytest.raises(UserError, match=r"has no merges.*take dropout=0"):
        Tokenizer.load(path, dropout=0.1)
    path.write_text(VOCABULARY, encoding="utf-8")
    loaded = Tokenizer.load(path, dropout=0.1)
    assert loaded.source.encode(TRAINING, 0.5, np.random.default_rng(0))


def test_both_files_are_plain_json() -> None:
    assert json.loads(JOINT.to_json())["model"]["type"] == "BPE"
    assert set(json.loads(EACH.to_json())) == {"source", "target"}
