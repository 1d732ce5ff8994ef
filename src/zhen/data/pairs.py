"""Encoded pairs in a memory-mapped Arrow file, and the padded batches made from them.

Shapes: B batch, S source length, T target length.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from operator import ne
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset as TorchDataset

from zhen.data.batching import Indices, PlannedBatch
from zhen.data.cache import entry, key_of
from zhen.data.cleaning import Cleaned
from zhen.data.corpus import Corpus
from zhen.data.progress import counted
from zhen.data.ragged import Ragged, pad_rows
from zhen.data.tokenizer import Tokenizer
from zhen.data.vocabulary import Vocabulary

# Part of every key; raise it when encoding or the form of the file changes.
VERSION = 3
PAIRS, ABOUT = "pairs.arrow", "about.json"
# What is done to a text before it is cut, in this order.
CHANGES = ("space around", "tokenizer.normalization")


@dataclass
class Batch:
    """Pairs padded to a common length.

    `target` is what the decoder reads (<s> a b c) and `labels` what it must say (a b c </s>), both
    (B, T); `source` is (B, S) and ends with </s>. `indices` are the pairs' numbers in their split;
    `tokens` counts the labels that are no padding, and `update_tokens` those of the whole update,
    over all ranks and micro-batches. A batch that no plan made is an update of its own.
    """

    indices: list[int]
    source: Tensor
    target: Tensor
    labels: Tensor
    tokens: int
    update_tokens: int

    def to(self, device: torch.device) -> "Batch":
        """The same batch on another device; Lightning calls this."""
        moved = {name: getattr(self, name).to(device) for name in ("source", "target", "labels")}
        return replace(self, **moved)


class Change(NamedTuple):
    """A text that was changed before it was cut."""

    where: str  # file:line
    rule: str  # from CHANGES
    before: str
    after: str


class EncodedPairs(TorchDataset[Batch]):
    """One split, ready to train on: an item is a whole batch, by the numbers of its pairs.

    Args:
        path: the entry of the cache; `EncodedPairs.cached` makes one.
        corpus: what was encoded.
        tokenizer: what it was encoded with.
    """

    def __init__(self, path: Path, corpus: Corpus, tokenizer: Tokenizer) -> None:
        self._made_of = path, corpus, tokenizer
        self._corpus, self._tokenizer = corpus, tokenizer
        file = pa.memory_map(str(path / PAIRS)).read_buffer()
        self._table = pa.ipc.open_file(file).read_all()
        self._source = Ragged(file, self._table.column("source"))
        self._target = Ragged(file, self._table.column("target"))
        about = json.loads((path / ABOUT).read_text(encoding="utf-8"))
        self.too_long: int = about["too_long"]  # pairs left out, since they are beyond `max_length`
        # How many pairs have a text that each rule of CHANGES has changed.
        self.changed: dict[str, int] = about["changed"]
        # (N, 2). Both sides carry one control piece: the source its end, the target its start or
        # its end. All that is held in memory for each pair.
        self.lengths = np.stack([self._source.lengths, self._target.lengths], axis=1)
        self.lengths += 1

    def __reduce__(self) -> tuple[Any, ...]:
        return EncodedPairs, self._made_of  # another process maps the file by itself

    @classmethod
    def cached(
        cls,
        corpus: Corpus,
        tokenizer: Tokenizer,
        cache_dir: Path,
        *,
        cleaned: Cleaned | None = None,
        max_length: int | None = None,
        what: str = "encoding",
    ) -> "EncodedPairs":
        """The pairs of `corpus`, encoded once and kept.

        Args:
            cache_dir: the cache.
            cleaned: the pairs to take; None: all.
            max_length: pieces a side; longer pairs are left out. None: no limit.
            what: the step, for messages.

        Raises:
            UserError: the cache cannot be written.
        """
        rows, chosen = (None, None) if cleaned is None else (cleaned.rows, cleaned.fingerprint)
        key = key_of(VERSION, corpus.fingerprint, tokenizer.to_json(), max_length, chosen)

        def make(folder: Path) -> None:
            _write(folder, corpus, tokenizer, rows, max_length, what)

        return cls(entry(cache_dir / "pairs", key, make, what=what), corpus, tokenizer)

    def cut_anew(self, folder: Path, dropout: float, rng: np.random.Generator) -> "EncodedPairs":
        """The same pairs with BPE-dropout (Provilkov et al. 2020), kept in `folder`.

        Args:
            folder: empty; it must stay as long as the pairs are used.
            dropout: probability of leaving a merge out.
            rng: what is left out follows from it.

        A text that would become longer than the longest is now is cut as without dropout: budgets
        and positions that are enough stay enough.
        """
        longest = int(self.lengths.max()) - 1

        def cut(vocabulary: Vocabulary, texts: list[str]) -> list[list[int]]:
            ids = vocabulary.encode(texts, dropout, rng)
            beyond = [i for i, each in enumerate(ids) if len(each) > longest]
            for i, whole in zip(beyond, vocabulary.encode([texts[i] for i in beyond]), strict=True):
                ids[i] = whole
            return ids

        _write(folder, self._corpus, self._tokenizer, self.rows, None, "BPE-dropout", cut)
        return EncodedPairs(folder, self._corpus, self._tokenizer)

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, wanted: PlannedBatch | Indices) -> Batch:
        if isinstance(wanted, PlannedBatch):
            return replace(self[wanted.indices], update_tokens=wanted.update_tokens)
        indices = np.asarray(wanted, dtype=np.int64)
        tokenizer = self._tokenizer
        source, target = self._source.rows(indices), self._target.rows(indices)
        tokens = len(target.values) + len(indices)
        return Batch(
            indices=indices.tolist(),
            source=pad_rows(source, tokenizer.pad_id, last=tokenizer.eos_id),
            target=pad_rows(target, tokenizer.pad_id, first=tokenizer.bos_id),
            labels=pad_rows(target, tokenizer.pad_id, last=tokenizer.eos_id),
            tokens=tokens,
            update_tokens=tokens,
        )

    @property
    def rows(self) -> NDArray[np.int64]:
        """Where each pair stands in its corpus."""
        return self._table.column("row").to_numpy()

    @property
    def sources(self) -> list[str]:
        """The raw source sentences, in file order."""
        return [text for _, sources, _ in self._corpus.chunks(self.rows) for text in sources]

    @property
    def targets(self) -> list[str]:
        """The raw target sentences, in file order: the references."""
        return [text for _, _, targets in self._corpus.chunks(self.rows) for text in targets]

    def changes(self) -> Iterator[Change]:
        """The texts that were changed before they were cut, in file order, sources first."""
        chunks = counted(
            self._corpus.again(self.rows),
            "listing what was changed",
            len(self.rows),
            size=lambda chunk: len(chunk.lines),
        )
        for chunk in chunks:
            sides = [
                zip(*_stages(vocabulary, texts), strict=True)
                for vocabulary, texts in (
                    (self._tokenizer.source, chunk.sources),
                    (self._tokenizer.target, chunk.targets),
                )
            ]
            for line, *both in zip(chunk.lines, *sides, strict=True):
                for stages in both:
                    for rule, (before, after) in zip(CHANGES, pairwise(stages), strict=True):
                        if after != before:
                            yield Change(f"{chunk.file}:{line}", rule, before, after)

    def where(self, i: int) -> str:
        """`file:line` of a pair."""
        return self._corpus.where(int(self._table.column("row")[i].as_py()))


def _write(
    folder: Path,
    corpus: Corpus,
    tokenizer: Tokenizer,
    rows: NDArray[np.int64] | None,
    max_length: int | None,
    what: str,
    cut: Callable[[Vocabulary, list[str]], list[list[int]]] = Vocabulary.encode,
) -> None:
    """Encode chunk by chunk: piece ids without control pieces, and the row of each pair."""
    # Two bytes an id are enough for every common vocabulary: half the file, half the reading.
    largest = max(len(tokenizer.source), len(tokenizer.target))
    ids = pa.uint16() if largest <= 1 << 16 else pa.int32()
    lists = pa.list_(ids)
    schema = pa.schema({"row": pa.int64(), "source": lists, "target": lists})
    total = len(corpus) if rows is None else len(rows)
    kept, changed = 0, dict.fromkeys(CHANGES, 0)
    vocabularies = tokenizer.source, tokenizer.target
    with (
        pa.OSFile(str(folder / PAIRS), "wb") as sink,
        pa.ipc.new_file(sink, schema) as writer,
    ):
        for numbers, *texts in counted(
            corpus.chunks(rows), what, total, size=lambda chunk: len(chunk[0])
        ):
            stages = [
                _stages(vocabulary, side)
                for vocabulary, side in zip(vocabularies, texts, strict=True)
            ]
            sides = [
                _as_lists(cut(vocabulary, stage[-1]), ids)
                for vocabulary, stage in zip(vocabularies, stages, strict=True)
            ]
            batch = pa.RecordBatch.from_arrays([pa.array(numbers), *sides], schema=schema)
            stays = np.ones(len(numbers), bool)
            if max_length is not None:
                longest = np.maximum(*(np.diff(side.offsets.to_numpy()) for side in sides))
                stays = longest <= max_length
                batch = batch.filter(pa.array(stays))
            for i, rule in enumerate(CHANGES):
                differ = [_differ(stage[i], stage[i + 1]) for stage in stages]
                changed[rule] += int(np.count_nonzero((differ[0] | differ[1]) & stays))
            kept += batch.num_rows
            writer.write_batch(batch)
    about = {"too_long": total - kept, "changed": changed}
    (folder / ABOUT).write_text(json.dumps(about), encoding="utf-8")


def _stages(vocabulary: Vocabulary, texts: list[str]) -> tuple[list[str], ...]:
    """The texts as written, and after each rule of CHANGES; what comes of the last is cut."""
    # `Translator.translate` takes the space around a sentence off as well.
    stripped = [text.strip() for text in texts]
    return texts, stripped, vocabulary.normalise(stripped)


def _differ(before: list[str], after: list[str]) -> NDArray[np.bool_]:
    return np.fromiter(map(ne, before, after), bool, len(before))


def _as_lists(encoded: list[list[int]], ids: pa.DataType) -> pa.ListArray:
    offsets = np.zeros(len(encoded) + 1, np.int32)
    np.cumsum([len(each) for each in encoded], out=offsets[1:])
    values = np.fromiter(chain.from_iterable(encoded), ids.to_pandas_dtype(), offsets[-1])
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values))
