"""The cache of encoded pairs, and the batches made from it."""

import gc
import pickle
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from tests.data.given import corpus
from tests.toy_tokenizer import learn

from zhen.data import pairs as pairs_module
from zhen.data.cleaning import Cleaned
from zhen.data.pairs import EncodedPairs
from zhen.data.ragged import pad
from zhen.data.tokenizer import Tokenizer
from zhen.data.vocabulary import Vocabulary

PAIRS = [(" 我喜欢茶。", "I like tea."), ("花", "flowers"), ("他看见黑猫。", "he ")]
SOURCES, TARGETS = map(list, zip(*PAIRS, strict=True))


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return learn([*SOURCES, *TARGETS], vocab_size=300)


def encoded(
    tokenizer: Tokenizer, cache: Path, given: Sequence[tuple[str, str]] = PAIRS, **options: Any
) -> EncodedPairs:
    return EncodedPairs.cached(corpus(given, cache), tokenizer, cache, **options)


def some(*rows: int, fingerprint: str = "some") -> Cleaned:
    return Cleaned(np.array(rows), {}, fingerprint)


@pytest.fixture(scope="module")
def pairs(tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> EncodedPairs:
    return encoded(tokenizer, tmp_path_factory.mktemp("cache"))


def test_batch_is_padded_and_labels_are_the_target_shifted(
    pairs: EncodedPairs, tokenizer: Tokenizer
) -> None:
    batch = pairs[np.array([2, 1])]
    assert batch.indices == [2, 1]
    for row, i in enumerate(batch.indices):
        (source,) = tokenizer.source.encode([SOURCES[i].strip()])
        (target,) = tokenizer.target.encode([TARGETS[i].strip()])
        for tensor, ids in (
            (batch.source, [*source, tokenizer.eos_id]),
            (batch.target, [tokenizer.bos_id, *target]),
            (batch.labels, [*target, tokenizer.eos_id]),
        ):
            padding = tensor.size(1) - len(ids)
            assert tensor[row].tolist() == ids + [tokenizer.pad_id] * padding
    assert batch.source.dtype == batch.target.dtype == batch.labels.dtype == torch.int64
    assert batch.target.shape == batch.labels.shape
    assert (batch.source != 0).all(dim=0).any() and (batch.source[:, -1] != 0).any()  # no waste
    assert batch.tokens == int((batch.labels != tokenizer.pad_id).sum())


def test_lengths_are_those_of_the_batch(pairs: EncodedPairs) -> None:
    assert len(pairs) == 3
    for i in range(3):
        batch = pairs[[i]]
        assert pairs.lengths[i].tolist() == [batch.source.size(1), batch.labels.size(1)]


def test_text_is_kept_as_it_is(pairs: EncodedPairs) -> None:
    assert (pairs.sources, pairs.targets) == (SOURCES, TARGETS)
    assert [pairs.where(i) for i in range(3)] == ["given.tsv:1", "given.tsv:2", "given.tsv:3"]


def test_to_moves_the_tensors_alone(pairs: EncodedPairs) -> None:
    moved = pairs[[0, 1]].to(torch.device("meta"))
    assert {moved.source.device.type, moved.target.device.type, moved.labels.device.type} == {
        "meta"
    }
    assert (moved.indices, moved.tokens) == ([0, 1], pairs[[0, 1]].tokens)


def test_pad() -> None:
    assert pad([[1], [2, 3]], 7).tolist() == [[1, 7], [2, 3]]


def test_cache_is_read_not_made_again(
    tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = encoded(tokenizer, tmp_path)
    monkeypatch.delattr(pairs_module, "_write")
    again = encoded(tokenizer, tmp_path)
    assert torch.equal(again[[0, 1, 2]].labels, first[[0, 1, 2]].labels)


def test_the_same_pairs_give_the_same_bytes(tokenizer: Tokenizer, tmp_path: Path) -> None:
    files = []
    for name in ("a", "b"):
        encoded(tokenizer, tmp_path / name)
        (file,) = (tmp_path / name).glob("pairs/*/pairs.arrow")
        files.append(file)
    assert files[0].parent.name == files[1].parent.name
    assert files[0].read_bytes() == files[1].read_bytes()


def test_chosen_rows_keep_their_numbers(tokenizer: Tokenizer, tmp_path: Path) -> None:
    whole = encoded(tokenizer, tmp_path)
    two = encoded(tokenizer, tmp_path, cleaned=some(0, 2))
    assert two.rows.tolist() == [0, 2] and two.too_long == 0
    assert (two.sources, two.where(1)) == ([SOURCES[0], SOURCES[2]], "given.tsv:3")
    assert two.lengths.tolist() == whole.lengths[[0, 2]].tolist()
    assert two[[1]].labels.tolist() == whole[[2]].labels.tolist()


def test_pairs_beyond_the_limit_are_left_out(tokenizer: Tokenizer, tmp_path: Path) -> None:
    whole = encoded(tokenizer, tmp_path).lengths.max(axis=1) - 1
    for limit in range(1, whole.max() + 1):
        kept = np.flatnonzero(whole <= limit)
        short = encoded(tokenizer, tmp_path, max_length=limit)
        assert short.rows.tolist() == kept.tolist()
        assert len(short) + short.too_long == 3
        for place, row in enumerate(kept):
            assert short.where(place) == f"given.tsv:{row + 1}"


def test_changed_texts_are_counted_and_listed(tmp_path: Path) -> None:
    pairs = [
        (" 我喜欢茶。", "I like tea.\u3000"),  # one pair, two texts
        ("花，", "flowers"),
        ("ｅ", " cafe\u0301"),
        ("猫", "cat"),
        ("，" + "1234567890" * 3, "too long"),
    ]
    letters = [text for pair in pairs for text in pair]
    unchanged = encoded(learn(letters, vocab_size=300), tmp_path, pairs[3:])
    assert unchanged.changed == {"space around": 0, "tokenizer.normalization": 0}
    assert list(unchanged.changes()) == []
    nfkc = learn([*letters, "é,e" * 9], vocab_size=300, normalization="nfkc")
    found = encoded(nfkc, tmp_path, pairs, max_length=20)
    assert found.changed == {"space around": 2, "tokenizer.normalization": 2}  # of what is kept
    assert list(found.changes()) == [
        ("given.tsv:1", "space around", " 我喜欢茶。", "我喜欢茶。"),
        ("given.tsv:1", "space around", "I like tea.\u3000", "I like tea."),
        ("given.tsv:2", "tokenizer.normalization", "花，", "花,"),
        ("given.tsv:3", "tokenizer.normalization", "ｅ", "e"),
        ("given.tsv:3", "space around", " cafe\u0301", "cafe\u0301"),
        ("given.tsv:3", "tokenizer.normalization", "cafe\u0301", "café"),
    ]
    assert found.targets[2] == " cafe\u0301"  # references stay as they are
    batch = found[[1]]
    assert nfkc.source.decode(batch.source.tolist()) == ["花,"]


def test_each_part_of_the_key_counts(tokenizer: Tokenizer, tmp_path: Path) -> None:
    other = learn(["he he"], vocab_size=261)
    encoded(tokenizer, tmp_path)
    encoded(other, tmp_path)
    encoded(tokenizer, tmp_path, [*PAIRS, ("a", "b")])
    encoded(tokenizer, tmp_path, max_length=100)
    encoded(tokenizer, tmp_path, cleaned=some(0, 1, fingerprint="rules"))
    encoded(tokenizer, tmp_path, cleaned=some(0, 1, fingerprint="other rules"))
    assert len(list(tmp_path.glob("pairs/*/pairs.arrow"))) == 6
    encoded(tokenizer, tmp_path, what="another word for it")
    assert len(list(tmp_path.glob("pairs/*/pairs.arrow"))) == 6


def test_large_vocabularies_fit(
    tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = encoded(tokenizer, tmp_path / "small")
    monkeypatch.setattr(Vocabulary, "__len__", lambda _: 1 << 16 | 1)
    large = encoded(tokenizer, tmp_path / "large")
    assert torch.equal(large[[0, 1, 2]].source, small[[0, 1, 2]].source)
    for name, wide in (("small", pa.uint16()), ("large", pa.int32())):
        (file,) = (tmp_path / name).glob("pairs/*/pairs.arrow")
        schema = pa.ipc.open_file(str(file)).schema
        assert schema.field("target").type.value_type == wide


def test_another_process_gets_them_by_their_path(pairs: EncodedPairs) -> None:
    content = pickle.dumps(pairs)
    assert torch.equal(pickle.loads(content)[[2, 0]].source, pairs[[2, 0]].source)


def test_pieces_stay_in_the_mapped_file(tokenizer: Tokenizer, tmp_path: Path) -> None:
    # More pairs than one Arrow chunk, so that finding a row across chunks is seen too.
    numbers = [" ".join([str(i)] * 50) for i in range(2500)]
    given = corpus([(each, each) for each in numbers], tmp_path, size=1000)
    EncodedPairs.cached(given, tokenizer, tmp_path)
    gc.collect()
    tracemalloc.start()
    try:
        mapped = EncodedPairs.cached(given, tokenizer, tmp_path)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < mapped.lengths.sum() * 2 / 3  # bytes of the pieces, uint16
    assert len(pickle.dumps(mapped)) < mapped.lengths.sum() * 2 / 3  # another process maps it too
    for i in (0, 999, 1000, 1001, 2499):
        batch = mapped[[i]]
        assert tokenizer.target.decode(batch.labels.tolist()) == [numbers[i]]
