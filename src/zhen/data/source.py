"""What every reader of pairs gives: pairs in file order, and the lines that are none.

One reader serves training, which refuses a corpus at its first refused line, and `make data-check`,
which lists them all. Nothing here holds more than a chunk in memory.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

# Pairs a chunk holds at most.
CHUNK = 10_000


@dataclass(frozen=True)
class Fault:
    """Something in a file that a reader of it should hear of.

    Args:
        kind: a short name to count it under, such as "encoding" or "columns".
        file: the file, as the user named it.
        line: from 1; None where the whole file is meant.
        message: what is there, what is allowed and what to do.
        refused: the line is no pair, and training must not go on without a word. False for what
            the reader could put right by itself, such as a byte-order mark.
    """

    kind: str
    file: str
    line: int | None
    message: str
    refused: bool = True

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.message}"


@dataclass
class Chunk:
    """A run of pairs of one file, in file order, as written; a side may be empty."""

    file: str
    lines: list[int] = field(default_factory=list)  # where each pair stands, from 1
    sources: list[str] = field(default_factory=list)
    targets: list[str] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)  # found on the way to the last of the pairs


# What a format gives, one after the other: (line, source, target), or what is there instead.
Item = tuple[int, str, str] | Fault


def chunked(file: str, items: Iterable[Item]) -> Iterator[Chunk]:
    """Gather the pairs and faults of a file into chunks."""
    chunk = Chunk(file)
    for item in items:
        # A pair is taken apart at once: a list of tuples would double the time, since Python's
        # garbage collector looks at each of them again and again.
        if isinstance(item, Fault):
            chunk.faults.append(item)
        else:
            line, source, target = item
            chunk.lines.append(line)
            chunk.sources.append(source)
            chunk.targets.append(target)
        if len(chunk.lines) == CHUNK or len(chunk.faults) == CHUNK:
            yield chunk
            chunk = Chunk(file)
    if chunk.lines or chunk.faults:
        yield chunk


def option(key: str, name: str) -> str:
    """An option of the reader as the user writes it, beside the `key` of a split, for messages."""
    return f"data.reader.{name}" if key.startswith("data.") else f"reader.{name}"


class Source(Protocol):
    """The pairs of one split, wherever they lie."""

    @property
    def name(self) -> str:
        """What to call it in messages and logs: the path or paths, or the data set and its part."""

    def fingerprint(self) -> str:
        """SHA-256 of every byte that is read and of every option that decides how.

        Raises:
            UserError: a file is missing or cannot be read.
        """

    def chunks(self) -> Iterator[Chunk]:
        """Read it from the beginning.

        Raises:
            UserError: a file is missing, cannot be read, or is not of its format at all.
        """


class Reader(Protocol):
    """Finds the pairs that a value of `data.train`, `data.val` or `data.test` names."""

    def open(self, what: object, *, key: str, languages: Sequence[str], source_lang: str) -> Source:
        """The split that `what` names, not yet read.

        Args:
            what: as in the configuration: a path, a list of paths, a pattern, or a mapping.
            key: the configuration key that holds it, for messages.
            languages: the two languages, in the order of columns that have no names.
            source_lang: the one of them to translate from.

        Raises:
            UserError: `what` has the wrong form, or nothing is there.
        """
