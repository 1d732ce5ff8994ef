"""The cache of encoded pairs, and the batches made from it."""

import multiprocessing
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.toy_tokenizer import learn

from zhen.data import pairs as pairs_module
from zhen.data.corpus import Corpus
from zhen.data.pairs import EncodedPairs, encode, pad
from zhen.data.tokenizer import Tokenizer
from zhen.errors import UserError

CORPUS = Corpus(["我喜欢茶。", "花", "他看见黑猫。"], ["I like tea.", "flowers", "he"], "x")


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return learn([*CORPUS.sources, *CORPUS.targets], vocab_size=300)


@pytest.fixture(scope="module")
def pairs(tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> EncodedPairs:
    return EncodedPairs.cached(CORPUS, tokenizer, tmp_path_factory.mktemp("cache") / "a")


def test_batch_is_padded_and_labels_are_the_target_shifted(
    pairs: EncodedPairs, tokenizer: Tokenizer
) -> None:
    batch = pairs[np.array([2, 1])]
    assert batch.indices == [2, 1]
    for row, i in enumerate(batch.indices):
        (source,) = tokenizer.source.encode([CORPUS.sources[i]])
        (target,) = tokenizer.target.encode([CORPUS.targets[i]])
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
    assert (pairs.sources, pairs.targets) == (CORPUS.sources, CORPUS.targets)


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
    path = tmp_path / "deep" / "cache"
    first = EncodedPairs.cached(CORPUS, tokenizer, path)
    monkeypatch.delattr(pairs_module, "encode")
    again = EncodedPairs.cached(CORPUS, tokenizer, path)
    assert torch.equal(again[[0, 1, 2]].labels, first[[0, 1, 2]].labels)


def test_a_damaged_cache_is_made_anew(tokenizer: Tokenizer, tmp_path: Path) -> None:
    EncodedPairs.cached(CORPUS, tokenizer, tmp_path / "a")
    for file in (tmp_path / "a").iterdir():
        whole = file.read_bytes()
        for content in (b"", whole[: len(whole) // 2]):
            file.write_bytes(content)
            again = EncodedPairs.cached(CORPUS, tokenizer, tmp_path / "a")
            assert again.targets == CORPUS.targets and len(again.lengths) == 3


def test_a_cache_that_cannot_be_made(tokenizer: Tokenizer, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"^paths.cache: cannot make .*; choose another place with"):
        EncodedPairs.cached(CORPUS, tokenizer, tmp_path / "file" / "a")


def test_failed_writing_leaves_nothing(
    tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pairs_module, "encode", full)
    with pytest.raises(OSError, match="No space left"):
        EncodedPairs.cached(CORPUS, tokenizer, tmp_path / "cache")
    assert list(tmp_path.iterdir()) == []


def test_the_slower_of_two_writers_takes_what_the_faster_wrote(
    tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cache"

    def slow(corpus: Corpus, tokenizer: Tokenizer) -> object:
        assert not path.exists()  # not even half of it, while it is being written
        encode(corpus, tokenizer).save_to_disk(path)  # the other process ends first
        return encode(corpus, tokenizer)

    monkeypatch.setattr(pairs_module, "encode", slow)
    assert len(EncodedPairs.cached(CORPUS, tokenizer, path)) == 3
    assert list(tmp_path.iterdir()) == [path]


def _cache(path: Path, start: "multiprocessing.synchronize.Barrier") -> None:
    tokenizer = learn([*CORPUS.sources, *CORPUS.targets], vocab_size=300)
    start.wait(60)
    assert len(EncodedPairs.cached(CORPUS, tokenizer, path)) == 3


@pytest.mark.slow
def test_two_processes_at_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(2)
    both = [context.Process(target=_cache, args=(tmp_path / "cache", start)) for _ in range(2)]
    for process in both:
        process.start()
    for process in both:
        process.join(120)
    assert [process.exitcode for process in both] == [0, 0]
    assert list(tmp_path.iterdir()) == [tmp_path / "cache"]


def test_pieces_stay_in_the_mapped_file(tokenizer: Tokenizer, tmp_path: Path) -> None:
    # More pairs than one Arrow chunk, so that finding a row across chunks is seen too.
    numbers = [" ".join([str(i)] * 50) for i in range(2500)]
    corpus = Corpus(numbers, numbers, "y")
    path = tmp_path / "cache"
    EncodedPairs.cached(corpus, tokenizer, path)
    tracemalloc.start()
    try:
        mapped = EncodedPairs.cached(corpus, tokenizer, path)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < mapped.lengths.sum() * 4 / 3  # bytes of the pieces, int32
    for i in (0, 999, 1000, 1001, 2499):
        batch = mapped[[i]]
        assert tokenizer.target.decode(batch.labels.tolist()) == [numbers[i]]
