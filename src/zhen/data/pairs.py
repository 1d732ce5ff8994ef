"""Encoded pairs in a memory-mapped Arrow file, and the padded batches made from them.

Shapes: B batch, S source length, T target length.
"""

import logging
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from datasets import Dataset, Features, List, Value, disable_progress_bars, load_from_disk
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset as TorchDataset

from zhen.data.corpus import Corpus
from zhen.data.tokenizer import Tokenizer
from zhen.errors import one_line
from zhen.files import make_directory

log = logging.getLogger(__name__)

disable_progress_bars()  # they would flicker for every split, at every start

FEATURES = Features(
    {
        "source_text": Value("string"),
        "target_text": Value("string"),
        "source": List(Value("int32")),
        "target": List(Value("int32")),
    }
)


@dataclass
class Batch:
    """Pairs padded to a common length.

    `target` is what the decoder reads (<s> a b c) and `labels` what it must say (a b c </s>), both
    (B, T); `source` is (B, S) and ends with </s>. `indices` are the pairs' numbers in their split;
    `tokens` counts the labels that are no padding.
    """

    indices: list[int]
    source: Tensor
    target: Tensor
    labels: Tensor
    tokens: int

    def to(self, device: torch.device) -> "Batch":
        """The same batch on another device; Lightning calls this."""
        moved = {name: getattr(self, name).to(device) for name in ("source", "target", "labels")}
        return replace(self, **moved)


class EncodedPairs(TorchDataset[Batch]):
    """One split, ready to train on: an item is the batch of a list of indices."""

    def __init__(self, table: Dataset, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._table = table
        self._source = _Ragged(table, "source")
        self._target = _Ragged(table, "target")
        # Both sides carry one control piece: the source its end, the target its start or its end.
        self.lengths = np.stack([self._source.lengths, self._target.lengths], axis=1) + 1

    @classmethod
    def cached(cls, corpus: Corpus, tokenizer: Tokenizer, path: Path) -> "EncodedPairs":
        """The pairs of `corpus`, encoded once and kept at `path`, a directory.

        The directory appears complete or not at all: it is written aside, then renamed. One that
        was damaged later is made anew.
        """
        if path.exists():
            try:
                return cls(load_from_disk(str(path)), tokenizer)
            except (OSError, ValueError, KeyError) as error:
                log.warning("%s is damaged (%s): made anew", path, one_line(error))
                shutil.rmtree(path, ignore_errors=True)
        make_directory(path.parent, key="paths.cache")
        aside = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
        try:
            encode(corpus, tokenizer).save_to_disk(aside)
            aside.rename(path)
        except OSError:
            shutil.rmtree(aside, ignore_errors=True)
            if not path.exists():  # another process may have been first, with the same content
                raise
        return cls(load_from_disk(str(path)), tokenizer)

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, indices: Sequence[int] | NDArray[np.int64]) -> Batch:
        tokenizer = self._tokenizer
        bos, eos = [tokenizer.bos_id], [tokenizer.eos_id]
        sources = [self._source[i] for i in indices]
        targets = [self._target[i] for i in indices]
        return Batch(
            indices=[int(i) for i in indices],
            source=pad([np.concatenate([ids, eos]) for ids in sources], tokenizer.pad_id),
            target=pad([np.concatenate([bos, ids]) for ids in targets], tokenizer.pad_id),
            labels=pad([np.concatenate([ids, eos]) for ids in targets], tokenizer.pad_id),
            tokens=sum(len(ids) + 1 for ids in targets),
        )

    @property
    def sources(self) -> list[str]:
        """The raw source sentences, in file order."""
        return list(self._table["source_text"])

    @property
    def targets(self) -> list[str]:
        """The raw target sentences, in file order: the references."""
        return list(self._table["target_text"])


def encode(corpus: Corpus, tokenizer: Tokenizer) -> Dataset:
    """The pairs as a table of raw text and of piece ids, without control pieces.

    Space around a sentence is not encoded: `Translator.translate` takes it off as well.
    """
    return Dataset.from_dict(
        {
            "source_text": corpus.sources,
            "target_text": corpus.targets,
            "source": tokenizer.source.encode([text.strip() for text in corpus.sources]),
            "target": tokenizer.target.encode([text.strip() for text in corpus.targets]),
        },
        features=FEATURES,
    )


def pad(rows: Sequence[NDArray[np.int64] | Sequence[int]], pad_id: int) -> Tensor:
    """Sequences of ids as one tensor (B, longest), filled up at the end with `pad_id`."""
    padded = np.full((len(rows), max(len(row) for row in rows)), pad_id, dtype=np.int64)
    for i, row in enumerate(rows):
        padded[i, : len(row)] = row
    return torch.from_numpy(padded)


class _Ragged:
    """A column of lists, read where it lies in the mapped file; only the lengths are copied."""

    def __init__(self, table: Dataset, name: str) -> None:
        chunks = table.data.column(name).chunks
        self._first = np.cumsum([0, *(len(chunk) for chunk in chunks)])  # row of each chunk
        self._offsets = [chunk.offsets.to_numpy() for chunk in chunks]
        self._values = [chunk.values.to_numpy() for chunk in chunks]
        self.lengths = np.concatenate([np.diff(each) for each in self._offsets]).astype(np.int64)

    def __getitem__(self, i: int) -> NDArray[np.int32]:
        chunk = np.searchsorted(self._first, i, side="right") - 1
        start, end = self._offsets[chunk][i - self._first[chunk] :][:2]
        return self._values[chunk][start:end]
