"""Pairs that a test gives, in place of files."""

from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path

from zhen.data.corpus import Corpus
from zhen.data.source import Chunk, Fault


class Given:
    """A source of these pairs, each on its line of `name`, `size` in a chunk."""

    def __init__(
        self,
        pairs: Sequence[tuple[str, str]],
        *,
        name: str = "given.tsv",
        size: int = 10_000,
        faults: Sequence[Fault] = (),
    ) -> None:
        self.pairs, self.name, self.size, self.faults = list(pairs), name, size, list(faults)
        self.readings = 0  # how often it was read

    def fingerprint(self) -> str:
        return sha256(repr((self.pairs, self.size)).encode()).hexdigest()

    def chunks(self) -> Iterator[Chunk]:
        self.readings += 1
        for start in range(0, len(self.pairs), self.size):
            some = self.pairs[start : start + self.size]
            yield Chunk(
                self.name,
                list(range(start + 1, start + 1 + len(some))),
                [source for source, _ in some],
                [target for _, target in some],
                self.faults if start == 0 else [],
            )
        if not self.pairs:
            yield Chunk(self.name, faults=self.faults)


def corpus(pairs: Sequence[tuple[str, str]], cache: Path, **options: int) -> Corpus:
    """These pairs as a corpus in `cache`."""
    return read(Given(pairs, **options), cache)  # type: ignore[arg-type]


def read(source: Given, cache: Path) -> Corpus:
    return Corpus.cached(source, cache, key="data.train", source_lang="zh", target_lang="en")
