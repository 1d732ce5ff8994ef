"""Reads the splits of a corpus from beginning to end and reports what is odd in them.

Findings are reported as they come. What stays in memory is some 25 bytes a pair: hashes to know
repeats by, and line numbers to say where they are. To find the repeats takes about four times that
for a moment.
"""

import contextlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from zhen.data.checks import Check, length
from zhen.data.cleaning import DUPLICATES, CleanOptions, broken, rules
from zhen.data.progress import counted
from zhen.data.repeats import Hashes, Rows, hash_pairs, hash_texts, repeated, shared
from zhen.data.scripts import is_chinese, writing_of
from zhen.data.source import Chunk, Fault, Source
from zhen.errors import UserError

# Takes the key of a split and something found in it.
Report = Callable[[str, Fault], None]

SAMPLE = 10  # pairs to show
WRITINGS = ("simplified", "traditional")
_CODES: Mapping[str | None, int] = {way: code for code, way in enumerate(WRITINGS, start=1)}


class Side:
    """What is known of the texts on one side of a split.

    Args:
        language: they are in.
    """

    def __init__(self, language: str) -> None:
        self.language = language
        self.lengths: Counter[int] = Counter()  # how many texts have each length
        self.characters: Counter[str] = Counter()  # how often each occurs
        self._hashes = [np.empty(0, np.uint64)]
        self._writings = [np.empty(0, np.int8)]  # from _CODES; 0 for others

    def take(self, texts: Sequence[str]) -> None:
        """Learn of some more texts."""
        self.lengths.update(map(length, texts))
        self.characters.update("".join(texts))
        self._hashes.append(hash_texts(texts))
        if is_chinese(self.language):
            codes = [_CODES.get(writing_of(text), 0) for text in texts]
            self._writings.append(np.array(codes, np.int8))

    def hashes(self) -> Hashes:
        """Of all texts, see `zhen.data.repeats`."""
        return np.concatenate(self._hashes)

    def in_writing(self, wanted: str) -> Rows:
        """The rows of the texts that are wholly "simplified" or "traditional" Chinese."""
        return np.flatnonzero(np.concatenate(self._writings) == _CODES[wanted])


class Survey:
    """What is known of one split.

    Args:
        source: where its pairs lie.
        key: the configuration key that names it.
        languages: of sources and of targets.
        rng: chooses the pairs to show.
    """

    def __init__(
        self, source: Source, key: str, languages: tuple[str, str], rng: np.random.Generator
    ) -> None:
        self.source, self.key = source, key
        self.sides = Side(languages[0]), Side(languages[1])
        self.pairs = 0
        self.sample: list[tuple[int, str, str]] = []  # row, source, target
        self._rng, self._drawn = rng, np.empty(0)
        self._files: list[tuple[int, str]] = []  # the row that each stretch of a file begins with
        self._lines: list[NDArray[np.int32]] = []

    def read(self, rules: Mapping[str, Check], refused: Collection[str], report: Report) -> None:
        """Read all pairs, and report what the reader and the rules find.

        Args:
            rules: from `zhen.data.cleaning.rules`.
            refused: those of them that training stops at.
            report: takes the findings.
        """
        one, other = (side.language for side in self.sides)
        chunks = counted(
            self.source.chunks(), f"{self.key}: checking", size=lambda chunk: len(chunk.lines)
        )
        for chunk in chunks:
            for fault in chunk.faults:
                report(self.key, fault)
            pairs = zip(chunk.lines, chunk.sources, chunk.targets, strict=True)
            for line, source, target in pairs:
                for kind, message in broken(((one, source), (other, target)), rules):
                    report(self.key, Fault(kind, chunk.file, line, message, kind in refused))
                    if kind == "empty":
                        break  # what else could be said of nothing
            self._take(chunk)

    def _take(self, chunk: Chunk) -> None:
        if not chunk.lines:
            return
        self._files.append((self.pairs, chunk.file))
        self._lines.append(np.array(chunk.lines, np.int32))
        for side, texts in zip(self.sides, (chunk.sources, chunk.targets), strict=True):
            side.take(texts)
        self._draw(chunk)
        self.pairs += len(chunk.lines)

    def _draw(self, chunk: Chunk) -> None:
        """Keep the pairs with the smallest of random numbers, one for each pair."""
        drawn = np.concatenate([self._drawn, self._rng.random(len(chunk.lines))])
        best = np.argsort(drawn)[:SAMPLE]
        seen = len(self.sample)
        self.sample = [
            self.sample[i] if i < seen else self._pair(chunk, i - seen) for i in best.tolist()
        ]
        self._drawn = drawn[best]

    def _pair(self, chunk: Chunk, i: int) -> tuple[int, str, str]:
        return self.pairs + i, chunk.sources[i], chunk.targets[i]

    def where(self, row: int) -> tuple[str, int]:
        """File and line of a pair."""
        at = bisect_right(self._files, row, key=lambda begin: begin[0]) - 1
        first, file = self._files[at]
        return file, int(self._lines[at][row - first])

    def hashes(self) -> Hashes:
        """Of all pairs, see `zhen.data.repeats`."""
        return hash_pairs(*(side.hashes() for side in self.sides))


def survey_all(
    sources: Mapping[str, Source],
    languages: tuple[str, str],
    odd: CleanOptions,
    report: Report,
    *,
    may_be_empty: Collection[str] = (),
    seed: int = 0,
) -> list[Survey]:
    """Read the splits one by one, then compare them.

    Args:
        sources: by the configuration key of each split.
        languages: of sources and of targets.
        odd: what is reported as odd; an empty side is in any case.
        report: takes the findings.
        may_be_empty: keys of the splits where training drops pairs with an empty side. In others
            it refuses them.
        seed: of the pairs to show.
    """
    on = rules(replace(odd, empty=True))
    surveys: list[Survey] = []
    for key, source in sources.items():
        survey = Survey(source, key, languages, np.random.default_rng(seed))
        # A file that cannot be read to its end is an error of training's own reading.
        with contextlib.suppress(UserError):
            survey.read(on, () if key in may_be_empty else ("empty",), report)
        if odd.duplicates:
            report_duplicates(survey, report)
        for earlier in surveys:
            report_shared(survey, earlier, report)
        surveys.append(survey)
    for i in range(len(languages)):
        report_writing(surveys, i, report)
    return surveys


def report_duplicates(survey: Survey, report: Report) -> None:
    """Report each pair that was there before in its split."""
    rows, firsts = repeated(survey.hashes())
    for row, first in zip(rows.tolist(), firsts.tolist(), strict=True):
        _report(
            survey, row, DUPLICATES, "the same pair as {}:{}".format(*survey.where(first)), report
        )


def report_shared(survey: Survey, earlier: Survey, report: Report) -> None:
    """Report each pair of a split of which another split has a side, or both together.

    Args:
        survey: the split to report of.
        earlier: the other.
    """
    rows, firsts = shared(survey.hashes(), earlier.hashes())
    whole = set(rows.tolist())
    found = [("pair", rows, firsts)]
    for side, other in zip(survey.sides, earlier.sides, strict=True):
        found.append((f"{side.language} side", *shared(side.hashes(), other.hashes())))
    for what, rows, firsts in found:
        kind = "shared_pairs" if what == "pair" else "shared_sides"
        for row, first in zip(rows.tolist(), firsts.tolist(), strict=True):
            if what == "pair" or row not in whole:
                file, line = earlier.where(first)
                message = f"the {what} is also in {earlier.key}, {file}:{line}"
                _report(survey, row, kind, message, report)


def report_writing(surveys: Sequence[Survey], side: int, report: Report) -> None:
    """Report each Chinese text in the way of writing that fewer texts of its side have.

    Args:
        surveys: all splits.
        side: 0 for the sources, 1 for the targets.
    """
    rows = {way: [each.sides[side].in_writing(way) for each in surveys] for way in WRITINGS}
    counts = {way: sum(map(len, found)) for way, found in rows.items()}
    rare, usual = sorted(WRITINGS, key=counts.__getitem__)
    for survey, found in zip(surveys, rows[rare], strict=True):
        message = (
            f"the {survey.sides[side].language} side is {rare}: of the corpus {counts[rare]:,} are,"
            f" {counts[usual]:,} are {usual}"
        )
        for row in found.tolist():
            _report(survey, row, "writing", message, report)


def _report(survey: Survey, row: int, kind: str, message: str, report: Report) -> None:
    report(survey.key, Fault(kind, *survey.where(row), message, refused=False))
