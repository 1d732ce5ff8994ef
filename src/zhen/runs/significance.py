"""Whether one run is better than another, or only luckier.

The paired bootstrap (Koehn 2004, "Statistical Significance Tests for Machine Translation
Evaluation") asks that of two translations of one test set, and is sacreBLEU's own. It knows nothing
of other seeds: what the luck of a training is worth, only repeats tell (`zhen.runs.repeats`).
"""

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.metrics.base import Metric
from sacrebleu.significance import PairedTest

from zhen.runs.directory import stem_of
from zhen.runs.record import Run

SEED, RESAMPLES = 12345, 1000  # sacreBLEU's own defaults
METRICS = ("bleu", "chrf")
LEVEL = 0.05  # below it, a p-value is called significant


class NotComparable(Exception):
    """Two runs whose scores must not be compared; says why."""


@dataclass(frozen=True)
class Difference:
    """A score of one run against that of the baseline."""

    score: float
    delta: float
    p: float  # how often a resampled test set would show such a difference if there were none

    @property
    def is_significant(self) -> bool:
        return self.p < LEVEL


@dataclass(frozen=True)
class Sentences:
    """A test part of a run, as its files hold it."""

    sources: list[str]
    hypotheses: list[str]
    references: list[str]


def sentences(run: Run, part: str) -> Sentences:
    """The sentences of a test part, N lines being N sentences.

    Raises:
        NotComparable: a file is missing, damaged or of another length.
    """
    read = []
    for ending in ("src", "hyp", "ref"):
        path = run.path / f"{stem_of(part)}.{ending}"
        try:
            # Only `\n` ends a line: a sentence may have U+2028 in it.
            read.append(path.read_bytes().decode("utf-8").split("\n")[:-1])
        except (OSError, ValueError) as error:
            raise NotComparable(f"{path.name} of {run.name} cannot be read") from error
    found = Sentences(*read)
    if not len(found.sources) == len(found.hypotheses) == len(found.references) > 0:
        raise NotComparable(f"{stem_of(part)}.* of {run.name} are not of one length")
    return found


def difference(run: Run, base: Run, part: str) -> dict[str, Difference]:
    """The scores of a test part against those of the baseline, by metric.

    Raises:
        NotComparable: the test set or a signature differs, or the stored translations do not give
            the stored score; says which, and where.
    """
    for each in (base, run):
        if part not in each.tests:
            raise NotComparable(f"{each.name} has no test part {part!r}")
    texts = sentences(base, part), sentences(run, part)
    _check_same_test(*texts, stem_of(part))
    for name in METRICS:
        one, other = (each.tests[part].get(f"{name}_signature") for each in (run, base))
        if one != other:
            raise NotComparable(f"its {name} of {part!r} has the signature {one}, not {other}")
    # Read as the test is made, and otherwise whatever the user's environment says.
    os.environ["SACREBLEU_SEED"] = str(SEED)
    logging.getLogger("sacrebleu").setLevel(logging.ERROR)
    test = PairedTest(
        [(each, _stripped(text.hypotheses)) for each, text in zip("br", texts, strict=True)],
        {name: _metric(name, base, part) for name in METRICS},
        [_stripped(texts[0].references)],
        test_type="bs",
        n_samples=RESAMPLES,
    )
    results: list[Any] = [found for name, found in test()[1].items() if name != "System"]
    found = {}
    for name, pair in zip(METRICS, results, strict=True):
        for each, result in zip((base, run), pair, strict=True):
            stored = each.tests[part].get(name)
            if stored is None or abs(result.score - stored) > 1e-6:
                raise NotComparable(
                    f"{stem_of(part)}.hyp of {each.name} was changed: it has a {name} of"
                    f" {result.score:.4f}, and results.json says {stored}"
                )
        delta = pair[1].score - pair[0].score
        # Of two equal scores sacreBLEU would call the difference, 0, significant.
        found[name] = Difference(pair[1].score, delta, pair[1].p_value if delta else 1.0)
    return found


def _check_same_test(base: Sentences, ours: Sentences, stem: str) -> None:
    for ending, one, other in (
        ("src", ours.sources, base.sources),
        ("ref", ours.references, base.references),
    ):
        file = f"{stem}.{ending}"
        if len(one) != len(other):
            raise NotComparable(f"another test set: {file} has {len(one)} lines, not {len(other)}")
        differing = [
            i for i, pair in enumerate(zip(one, other, strict=True), 1) if len({*pair}) > 1
        ]
        if differing:
            raise NotComparable(f"another test set: line {differing[0]} of {file} differs")


def _metric(name: str, run: Run, part: str) -> Metric:
    """The metric that a signature describes; both are made by `zhen.training.scores`."""
    signature = str(run.tests[part].get(f"{name}_signature"))
    fields = dict(each.partition(":")[::2] for each in signature.split("|"))
    if name == "bleu":
        return BLEU(tokenize=fields.get("tok", "13a"), force=True)
    return CHRF()


def _stripped(lines: Sequence[str]) -> list[str]:
    """As `zhen.training.scores` and sacreBLEU's reader of files have them."""
    return [line.rstrip() for line in lines]


def sentence_chrf(hypothesis: str, reference: str) -> float:
    """chrF of one sentence, from 0 to 100: too coarse to score by, good enough to sort by."""
    return float(CHRF().sentence_score(hypothesis, [reference]).score)
