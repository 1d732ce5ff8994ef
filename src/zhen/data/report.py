"""What `make data-check` has to say, as sections that a terminal and a page both can show."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO, NamedTuple

from zhen.data.checks import WRONG_WAY_ROUND
from zhen.data.source import Fault
from zhen.data.survey import Survey

FIRST = 5  # findings of a kind that are shown; the listing has them all
BINS = 20  # of a histogram


@dataclass(frozen=True)
class Table:
    """Rows of text.

    Args:
        head: names of the columns.
        align: for each column `<`, text, or `>`, a number.
        rows: as many cells each as there are columns.
    """

    head: Sequence[str]
    align: str
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Histogram:
    """Bars, each with its label and its height."""

    title: str
    bars: Sequence[tuple[str, int]]


@dataclass(frozen=True)
class Section:
    title: str
    blocks: Sequence[str | Table | Histogram]


class Cut(NamedTuple):
    """How the tokenizer cuts one side of a split."""

    split: str
    language: str
    sentences: int
    pieces: int
    rare: int  # characters without a piece


class Listing:
    """Takes findings, counts them, keeps the first few of each kind, and writes down all.

    Args:
        file: gets a line of tab-separated fields for each finding.
    """

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self.counts: dict[str, Counter[str]] = defaultdict(Counter)  # by split and kind
        self.first: dict[tuple[str, str], list[Fault]] = defaultdict(list)
        self.refusals: Counter[str] = Counter()  # what training stops at, by split
        self.first_refused: dict[str, Fault] = {}
        print("split", "file", "line", "kind", "refused", "finding", sep="\t", file=file)

    def __call__(self, key: str, fault: Fault) -> None:
        self.counts[key][fault.kind] += 1
        if len(self.first[key, fault.kind]) < FIRST:
            self.first[key, fault.kind].append(fault)
        if fault.refused:
            self.refusals[key] += 1
            self.first_refused.setdefault(key, fault)
        line = "" if fault.line is None else fault.line
        refused = "yes" if fault.refused else "no"
        fields = (key, shown(fault.file), line, fault.kind, refused, shown(fault.message))
        print(*fields, sep="\t", file=self._file)


def splits(surveys: Sequence[Survey], listing: Listing) -> Section:
    """How many pairs each split has, and how much was found in it."""
    rows = [
        [
            each.key,
            f"{each.pairs:,}",
            f"{listing.refusals[each.key]:,}",
            f"{listing.counts[each.key].total() - listing.refusals[each.key]:,}",
            shown(each.source.name),
        ]
        for each in surveys
    ]
    return Section("Splits", [Table(["split", "pairs", "refused", "odd", "from"], "<>>><", rows)])


def findings(surveys: Sequence[Survey], listing: Listing) -> Section:
    """Each kind of what was found in each split, with its first few."""
    rows = []
    for survey in surveys:
        for kind, count in listing.counts[survey.key].items():
            first = listing.first[survey.key, kind]
            name = f"{kind} (refused)" if first[0].refused else kind
            for i, fault in enumerate(first):
                about = ["", "", ""] if i else [survey.key, name, f"{count:,}"]
                rows.append([*about, shown(str(fault))])
            if count > len(first):
                rows.append(["", "", "", f"... and {count - len(first):,} more"])
    if not rows:
        return Section("Found", ["Nothing odd."])
    note = "docs/data.md says what each kind is, and what to do about it."
    return Section("Found", [note, Table(["split", "kind", "count", "first"], "<<><", rows)])


def cleaning(read: int, counts: Mapping[str, int], too_long: int | None, kept: int) -> Section:
    """What happens to the training pairs; the rows add up.

    Args:
        read: pairs read.
        counts: those that each rule dropped.
        too_long: those beyond `data.max_length`; None where that was not found out.
        kept: those left.
    """
    rows = [["read", f"{read:,}"], *([f"- {rule}", f"{n:,}"] for rule, n in counts.items())]
    if too_long is not None:
        rows.append(["- longer than data.max_length", f"{too_long:,}"])
    rows.append(["kept", f"{kept:,}"])
    blocks: list[str | Table | Histogram] = [Table(["training pairs", "count"], "<>", rows)]
    if not counts:
        blocks.append("No rule of data.clean is on; data/clean=usual turns the usual ones on.")
    return Section("Cleaning", blocks)


def lengths(surveys: Sequence[Survey]) -> Section:
    """How long the sentences are, in the measure of `zhen.data.checks.length`."""
    rows, histograms = [], []
    for survey in surveys:
        for language, counts in ((side.language, side.lengths) for side in survey.sides):
            if counts:
                at = [quantile(counts, share) for share in (0.5, 0.95, 0.99, 1.0)]
                rows.append([survey.key, language, *(f"{value:,}" for value in at)])
                if survey is surveys[0]:
                    histograms.append(Histogram(f"{survey.key}, {language}", bins(counts)))
    head = ["split", "language", "half", "95 %", "99 %", "longest"]
    note = (
        "A Han or kana character counts 1, and so does every run of other characters without"
        " space. Half, 95 % and 99 % of the sentences are at most so long."
    )
    return Section("Lengths", [note, Table(head, "<<>>>>", rows), *histograms])


def characters(surveys: Sequence[Survey]) -> Section:
    """Which characters of each later split the first one lacks."""
    first, *others = surveys
    known = sum((side.characters for side in first.sides), Counter())
    singles = sum(count == 1 for count in known.values())
    rows = []
    for survey in others:
        for language, counts in ((side.language, side.characters) for side in survey.sides):
            new = Counter({each: n for each, n in counts.items() if each not in known})
            which = " ".join(shown(each) for each, _ in new.most_common(BINS))
            total = max(counts.total(), 1)
            share = f"{100 * new.total() / total:.3f} %"
            rows.append(
                [survey.key, language, f"{counts.total():,}", f"{new.total():,}", share, which]
            )
    note = f"{first.key} has {len(known):,} different characters, {singles:,} of them once."
    head = ["split", "language", "characters", "new", "share", "which, the most frequent first"]
    return Section("Characters", [note, *([Table(head, "<<>>><", rows)] if rows else [])])


def changes(counts: Mapping[str, Mapping[str, int]]) -> Section:
    """In how many pairs of each split each rule changed a text before it was cut.

    Args:
        counts: by split and rule.
    """
    rows = [
        [key, rule, f"{count:,}"]
        for key, found in counts.items()
        for rule, count in found.items()
        if count
    ]
    note = "What is scored is the text as it was read."
    table = Table(["split", "changed", "pairs"], "<<>", rows) if rows else "No text."
    return Section("Changed before it is cut into pieces", [note, table])


def vocabulary(cuts: Sequence[Cut]) -> Section:
    """How the tokenizer cuts the splits up."""
    cells = [
        [
            cut.split,
            cut.language,
            f"{cut.sentences:,}",
            f"{cut.pieces / max(cut.sentences, 1):.1f}",
            f"{cut.rare:,}",
        ]
        for cut in cuts
    ]
    note = (
        "A rare character has no piece: its bytes stand for it, or <unk>. The pieces that begin and"
        " end a sentence are not counted."
    )
    head = ["split", "language", "sentences", "pieces in each", "rare characters"]
    return Section("Vocabulary", [note, Table(head, "<<>>>", cells)])


def sample(survey: Survey) -> Section:
    """Some pairs, to read."""
    head, rows = ["where", *(side.language for side in survey.sides)], []
    for row, source, target in sorted(survey.sample):
        file, line = survey.where(row)
        rows.append([f"{shown(file)}:{line}", shown(source), shown(target)])
    return Section("Random pairs", [Table(head, "<<<", rows)])


def doubts(surveys: Sequence[Survey], listing: Listing) -> list[str]:
    """What is so odd about a whole split that the user should hear of it beside the verdict."""
    found = []
    for survey in surveys:
        count = listing.counts[survey.key]["script"]
        if 2 * count > survey.pairs:
            found.append(
                f"Of {survey.pairs:,} pairs of {survey.key}, {count:,} are not in the scripts"
                f" of their languages: {WRONG_WAY_ROUND}."
            )
    return found


def verdict(reasons: Sequence[str], doubts: Sequence[str] = (), *, encoded: bool = True) -> Section:
    """Whether training would accept the corpus.

    Args:
        reasons: why not.
        doubts: why the user might not want it to.
        encoded: the pairs were encoded, too, which may find some too long for the model.
    """
    if not reasons:
        accepted = "Training would accept this corpus."
        if not encoded:
            accepted = (
                "Training would accept this corpus, as far as reading and cleaning can tell:"
                " sentences too long for the model show in their pieces alone."
            )
        return Section("Verdict", [accepted, *doubts])
    said = "Training would refuse this corpus:"
    return Section("Verdict", [said, *(f"- {shown(reason)}" for reason in reasons), *doubts])


def quantile(counts: Mapping[int, int], share: float) -> int:
    """The smallest value that at least this share of all does not exceed."""
    total, below = sum(counts.values()), 0
    for value in sorted(counts):
        below += counts[value]
        if below >= share * total:
            return value
    return 0


def bins(counts: Mapping[int, int]) -> list[tuple[str, int]]:
    """Bars of equal width, about `BINS` for nearly all values, and one for all larger ones."""
    most, nearly = max(counts), quantile(counts, 0.995)
    width = max(1, -(-(nearly + 1) // BINS))
    last = min(most // width, nearly // width + 1)
    bars = Counter({i: 0 for i in range(last + 1)})
    for value, count in counts.items():
        bars[min(value // width, last)] += count
    labels = [str(i) if width == 1 else f"{i * width}-{i * width + width - 1}" for i in bars]
    labels[last] = f"{last * width}-{most}" if most > last * width else str(most)
    return list(zip(labels, bars.values(), strict=True))


def shown(text: str) -> str:
    """A text with what a terminal cannot show, or would obey, as escapes."""
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )
