"""The pairs of one split as they were written, kept in an Arrow file and read where they lie.

Nothing here holds more than a chunk of text in memory: each call maps the file for as long as it
needs it, and keeps the part that it read last.
"""

import hashlib
import json
import logging
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zhen.data.cache import entry, key_of
from zhen.data.progress import counted
from zhen.data.source import CHUNK, Chunk, Source
from zhen.errors import UserError

log = logging.getLogger(__name__)

# Part of every key; raise it when the form of the file or the meaning of a column changes.
VERSION = 2
PAIRS, EMPTY, ABOUT = "pairs.arrow", "empty.npy", "about.json"
SCHEMA = pa.schema(
    {
        "source": pa.large_string(),
        "target": pa.large_string(),
        "file": pa.int32(),  # its number in about.json
        "line": pa.int64(),
    }
)


class Corpus:
    """Pairs in file order; `Corpus.cached` makes one.

    Args:
        path: the entry of the cache.
    """

    def __init__(self, path: Path) -> None:
        about = json.loads((path / ABOUT).read_text(encoding="utf-8"))
        self._entry, self._path = path, path / PAIRS
        # Rows of pairs with a side that is empty or nothing but space.
        self.empty: NDArray[np.int64] = np.load(path / EMPTY)
        self._files: list[str] = about["files"]
        self._first = np.cumsum([0, *about["rows"]])  # pair that each record batch begins with
        self._latest: tuple[tuple[int, int], pa.Table] | None = None
        self.fingerprint: str = about["fingerprint"]
        self.source_lang: str = about["source_lang"]
        self.target_lang: str = about["target_lang"]

    def __reduce__(self) -> tuple[Any, ...]:
        return Corpus, (self._entry,)  # another process maps the file by itself

    @classmethod
    def cached(
        cls, source: Source, cache_dir: Path, *, key: str, source_lang: str, target_lang: str
    ) -> "Corpus":
        """The pairs of `source`, read once and kept.

        Args:
            source: where the pairs lie.
            cache_dir: the cache.
            key: the configuration key that names them, for messages.
            source_lang: what `source` gives as sources.
            target_lang: what it gives as targets.

        Raises:
            UserError: a line is no pair (names file and line), there are none, or the cache cannot
                be written.
        """
        fingerprint = source.fingerprint()
        name = key_of(VERSION, fingerprint, source.name, source_lang, target_lang)
        about = {"source_lang": source_lang, "target_lang": target_lang}
        return cls(
            entry(
                cache_dir / "corpora",
                name,
                lambda folder: _write(folder, source, fingerprint, key, about),
                what=f"{key}: reading",
            )
        )

    def __len__(self) -> int:
        return int(self._first[-1])

    def texts(self, start: int, stop: int) -> tuple[list[str], list[str]]:
        """Sources and targets of the pairs from `start` to before `stop`, raw."""
        table = self._rows(start, stop)
        return table.column("source").to_pylist(), table.column("target").to_pylist()

    def chunks(
        self, rows: NDArray[np.int64] | None = None
    ) -> Iterator[tuple[NDArray[np.int64], list[str], list[str]]]:
        """Rows, their sources and their targets, a chunk at a time.

        Args:
            rows: those wanted, ascending; None: all.
        """
        for start in range(0, len(self), CHUNK):
            stop = min(start + CHUNK, len(self))
            sources, targets = self.texts(start, stop)
            if rows is None:
                yield np.arange(start, stop), sources, targets
            else:
                low, high = np.searchsorted(rows, [start, stop])
                wanted = (rows[low:high] - start).tolist()
                yield rows[low:high], [sources[i] for i in wanted], [targets[i] for i in wanted]

    def again(self, rows: NDArray[np.int64]) -> Iterator[Chunk]:
        """The pairs of ascending `rows` as their reader gave them, for a corpus of their own."""
        for wanted, sources, targets in self.chunks(rows):
            places = self._rows(*_span(wanted)).take(wanted - wanted[:1])
            files, lines = places.column("file").to_pylist(), places.column("line").to_pylist()
            for file, of_file in groupby(range(len(wanted)), files.__getitem__):
                part = list(of_file)
                some = slice(part[0], part[-1] + 1)
                yield Chunk(self._files[file], lines[some], sources[some], targets[some])

    @property
    def sources(self) -> list[str]:
        """All sources, raw: for a split that is small."""
        return self.texts(0, len(self))[0]

    @property
    def targets(self) -> list[str]:
        """All targets, raw: the references."""
        return self.texts(0, len(self))[1]

    def where(self, row: int) -> str:
        """`file:line` of a pair, the file as the user named it."""
        (found,) = self._rows(row, row + 1).select(["file", "line"]).to_pylist()
        return f"{self._files[found['file']]}:{found['line']}"

    def _rows(self, start: int, stop: int) -> pa.Table:
        if not 0 <= start <= stop <= len(self):
            raise IndexError(f"rows {start} to {stop} of {len(self)}")
        first, last = np.searchsorted(self._first, [start, stop - 1], side="right") - 1
        if self._latest is None or self._latest[0] != (first, last):
            with pa.memory_map(str(self._path)) as mapped:
                reader = pa.ipc.open_file(mapped)
                batches = [reader.get_batch(i) for i in range(first, last + 1)]
            # Kept, and with it the mapping of these pages: who reads a few rows often reads on.
            self._latest = (first, last), pa.Table.from_batches(batches, SCHEMA)
        return self._latest[1].slice(start - self._first[first], stop - start)


def _span(rows: NDArray[np.int64]) -> tuple[int, int]:
    return (int(rows[0]), int(rows[-1]) + 1) if len(rows) else (0, 0)


def _write(folder: Path, source: Source, fingerprint: str, key: str, about: dict[str, str]) -> None:
    """Read `source` from its beginning to its end, or to its first line that is no pair."""
    digest = hashlib.sha256()
    files: dict[str, int] = {}
    rows: list[int] = []
    empty = [np.empty(0, np.int64)]
    remarks: Counter[str] = Counter()
    with (
        pa.OSFile(str(folder / PAIRS), "wb") as sink,
        pa.ipc.new_file(sink, SCHEMA) as writer,
    ):
        for chunk in counted(source.chunks(), f"{key}: reading", size=lambda c: len(c.lines)):
            for each in chunk.faults:
                if each.refused:
                    raise UserError(f"{key}: {each}")
                remarks[each.kind] += 1
            if chunk.lines:
                writer.write_batch(_batch(chunk, files.setdefault(chunk.file, len(files))))
                digest.update(_hashed(chunk.sources, chunk.targets))
                empty.append(_empty(chunk) + sum(rows))
                rows.append(len(chunk.lines))
    if not rows:
        raise UserError(f"{key}: {source.name} has no pairs")
    if source.fingerprint() != fingerprint:  # or this would be taken for what was there before
        raise UserError(f"{key}: {source.name} changed while it was read; start again")
    if remarks:
        found = ", ".join(f"{kind} {count:,}" for kind, count in sorted(remarks.items()))
        log.info("%s: put right on the way: %s; `make data-check` lists them", key, found)
    content = {"fingerprint": digest.hexdigest(), "rows": rows, "files": list(files), **about}
    np.save(folder / EMPTY, np.concatenate(empty))
    (folder / ABOUT).write_text(json.dumps(content), encoding="utf-8")


def _batch(chunk: Chunk, file: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {
            "source": chunk.sources,
            "target": chunk.targets,
            "file": np.full(len(chunk.lines), file, np.int32),
            "line": chunk.lines,
        },
        SCHEMA,
    )


def _empty(chunk: Chunk) -> NDArray[np.int64]:
    pairs = enumerate(zip(chunk.sources, chunk.targets, strict=True))
    found = [i for i, (source, target) in pairs if not (source.strip() and target.strip())]
    return np.array(found, np.int64)


def _hashed(sources: list[str], targets: list[str]) -> bytes:
    """The bytes that the fingerprint is made of: those of a plain TSV of the pairs.

    A tab or line end inside a sentence, which other formats can hold, becomes a byte that UTF-8
    never has: no two lists of pairs give the same bytes.
    """
    lines = [f"{source}\t{target}\n" for source, target in zip(sources, targets, strict=True)]
    text = "".join(lines)
    if text.count("\t") == text.count("\n") == len(lines):
        return text.encode()
    return b"".join(
        b"\t".join(_marked(side) for side in pair) + b"\n"
        for pair in zip(sources, targets, strict=True)
    )


def _marked(text: str) -> bytes:
    return text.encode().replace(b"\t", b"\xfe").replace(b"\n", b"\xff")
