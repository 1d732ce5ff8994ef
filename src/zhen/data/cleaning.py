"""What is taken out of the training pairs: rules by name, each of them counted.

Nothing here changes a text, and nothing is dropped that no option asks for. A pair counts for the
first rule that it breaks, in the order of `CleanOptions`.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from zhen.data import checks
from zhen.data.cache import entry, key_of
from zhen.data.checks import Check, Sides
from zhen.data.corpus import Corpus
from zhen.data.progress import counted
from zhen.data.repeats import hash_pairs, hash_texts, repeated
from zhen.errors import UserError

# Part of every key; raise it when a rule changes what it drops.
VERSION = 3

DUPLICATES = "duplicates"


@dataclass(frozen=True)
class CleanOptions:
    """Which training pairs are dropped; validation and test are never cleaned.

    Lengths are in the measure of `zhen.data.checks.length`: a Han or kana character counts 1, and
    so does every run of other characters without space.

    Args:
        empty: drop pairs with an empty side; otherwise such a pair is an error.
        controls: drop pairs with NUL and other characters that show nothing.
        separators: drop pairs with characters that end a line for some programs, as U+2028 does.
        identical: drop pairs whose sides are the same text.
        script: the share of a side's letters that must be of its language's script; None: any.
        mixed: drop pairs that mix traditional with simplified Chinese in one text.
        writing: drop pairs whose Chinese is written in the other way; None: keep both.
        min_words: drop pairs with a shorter side; None: no limit.
        max_words: drop pairs with a longer side; None: no limit.
        max_ratio: drop pairs with a side so many times as long as the other; None: no limit.
        duplicates: keep the first of equal pairs alone.

    Raises:
        ValueError: a number is out of range, or no pair could pass.
    """

    empty: bool = False
    controls: bool = False
    separators: bool = False
    identical: bool = False
    script: float | None = None
    mixed: bool = False
    writing: Literal["simplified", "traditional"] | None = None
    min_words: int | None = None
    max_words: int | None = None
    max_ratio: float | None = None
    duplicates: bool = False

    def __post_init__(self) -> None:
        if self.script is not None and not 0 < self.script <= 1:
            raise ValueError(f"`script` must be above 0 and at most 1, but is {self.script}")
        for name in ("min_words", "max_words", "max_ratio"):
            value = getattr(self, name)
            if value is not None and not value >= 1:
                raise ValueError(f"`{name}` must be at least 1, but is {value}")
        if (self.min_words or 1) > (self.max_words or np.inf):
            raise ValueError(
                f"`max_words` must be at least `min_words` ({self.min_words}), but is"
                f" {self.max_words}"
            )


@dataclass(frozen=True)
class Cleaned:
    """What is left of a corpus.

    Args:
        rows: ascending rows of the pairs that are kept.
        counts: how many pairs each rule dropped, by its name and in order; with the kept they add
            up to all that were read.
        fingerprint: follows from the corpus and the options.
    """

    rows: NDArray[np.int64]
    counts: dict[str, int]
    fingerprint: str

    @classmethod
    def cached(
        cls, corpus: Corpus, options: CleanOptions, cache_dir: Path, *, what: str, key: str
    ) -> "Cleaned":
        """What `clean` leaves, found once and kept.

        Args:
            corpus: the training pairs.
            options: the rules.
            cache_dir: the cache.
            what: the step, for messages.
            key: the configuration key of the options, for messages.

        Raises:
            UserError: no pair is left, or the cache cannot be written.
        """

        def make(folder: Path) -> None:
            found = clean(corpus, options)
            if not len(found.rows):
                raise UserError(
                    f"{key}: none of the {len(corpus):,} training pairs is left:"
                    f" {listed(found.counts)}; loosen a rule"
                )
            np.save(folder / "rows.npy", found.rows)
            (folder / "counts.json").write_text(json.dumps(found.counts), encoding="utf-8")

        fingerprint = _fingerprint(corpus, options)
        path = entry(cache_dir / "cleaned", fingerprint, make, what=what)
        counts = json.loads((path / "counts.json").read_text(encoding="utf-8"))
        return cls(np.load(path / "rows.npy", mmap_mode="r"), counts, fingerprint)


class Dropped(NamedTuple):
    """A pair that cleaning drops, and the rule that it counts for."""

    where: str  # file:line
    rule: str
    source: str
    target: str


def rules(options: CleanOptions) -> dict[str, Check]:
    """The checks that are on and look at one pair alone, by the option's name and in order."""
    on = {
        name: value
        for name, value in asdict(options).items()
        if name != DUPLICATES and value is not None and value is not False
    }
    return {name: _with_limit(getattr(checks, name), value) for name, value in on.items()}


def broken(sides: Sides, rules: Mapping[str, Check]) -> Iterator[tuple[str, str]]:
    """The rules that a pair breaks, in order, each with what it says of the pair."""
    for name, rule in rules.items():
        message = rule(sides)
        if message is not None:
            yield name, message


def clean(corpus: Corpus, options: CleanOptions) -> Cleaned:
    """The pairs that pass every rule.

    It reads the corpus once, if any rule is on, and holds 8 bytes a pair, or some 60 while it looks
    for duplicates.
    """
    on = rules(options)
    counts = dict.fromkeys(on, 0)
    if not on and not options.duplicates:
        return Cleaned(np.arange(len(corpus)), counts, _fingerprint(corpus, options))
    kept, hashes = [np.empty(0, np.int64)], [np.empty(0, np.uint64)]
    for rows, sources, targets in counted(
        corpus.chunks(), "cleaning", len(corpus), size=lambda chunk: len(chunk[0])
    ):
        passes = np.ones(len(rows), bool)
        for i, sides in enumerate(_sides(corpus, sources, targets)):
            for name, _ in broken(sides, on):
                counts[name] += 1
                passes[i] = False
                break  # the first rule counts
        kept.append(rows[passes])
        if options.duplicates:
            left = np.flatnonzero(passes).tolist()
            hashes.append(
                hash_pairs(
                    hash_texts([sources[i] for i in left]), hash_texts([targets[i] for i in left])
                )
            )
    all_kept = np.concatenate(kept)
    if options.duplicates:
        again, _ = repeated(np.concatenate(hashes))
        all_kept = np.delete(all_kept, again)
        counts[DUPLICATES] = len(again)
    return Cleaned(all_kept, counts, _fingerprint(corpus, options))


def dropped(corpus: Corpus, options: CleanOptions, cleaned: Cleaned) -> Iterator[Dropped]:
    """The pairs that `clean` dropped with these options, in file order."""
    on = rules(options)
    rows = np.delete(np.arange(len(corpus)), cleaned.rows)
    chunks = counted(corpus.again(rows), "listing", len(rows), size=lambda chunk: len(chunk.lines))
    for chunk in chunks:
        for line, sides in zip(
            chunk.lines, _sides(corpus, chunk.sources, chunk.targets), strict=True
        ):
            # What breaks no rule of its own has gone because an equal pair was there before.
            rule, _ = next(broken(sides, on), (DUPLICATES, ""))
            (_, source), (_, target) = sides
            yield Dropped(f"{chunk.file}:{line}", rule, source, target)


def listed(counts: Mapping[str, int]) -> str:
    """`12 empty, 3 duplicates`, without what never happened."""
    return ", ".join(f"{count:,} {rule}" for rule, count in counts.items() if count)


def _fingerprint(corpus: Corpus, options: CleanOptions) -> str:
    return key_of(VERSION, corpus.fingerprint, corpus.source_lang, corpus.target_lang, options)


def _sides(corpus: Corpus, sources: list[str], targets: list[str]) -> Iterator[Sides]:
    for source, target in zip(sources, targets, strict=True):
        yield (corpus.source_lang, source), (corpus.target_lang, target)


def _with_limit(check: Callable[..., str | None], value: Any) -> Check:
    """The check of an option: what is merely on needs no limit."""
    return check if value is True else lambda sides: check(sides, value)
