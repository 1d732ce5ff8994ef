"""Look a corpus over before training: what is odd in it, and whether training would accept it.

    python -m zhen.data_check data=files data.train=mine.tsv

Reads configs/data_check.yaml; prints a report and writes it as report.html, with findings.tsv, all
that was found by file and line; dropped.tsv, the training pairs that cleaning drops; and
changed.tsv, the texts that are changed before they are cut into pieces. Exits with status 1 where
training would refuse the corpus.
"""

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from omegaconf import DictConfig

from zhen.config import build, run_command
from zhen.errors import UserError

if TYPE_CHECKING:
    from zhen.data import CleanOptions, TranslationData
    from zhen.data.report import Cut, Listing, Section

LISTINGS = ("dropped.tsv", "changed.tsv")
ENOUGH = 10_000  # pairs of a split that the vocabulary is judged by


def data_check(cfg: DictConfig) -> None:
    """Report on the splits of `cfg.data`; what is odd about a pair, `cfg.odd` says.

    Raises:
        UserError: training would refuse the corpus.
    """
    from zhen.data import report
    from zhen.data.report import Listing
    from zhen.data.survey import survey_all
    from zhen.files import make_directory, whole_file, write_atomic
    from zhen.runs.directory import console
    from zhen.viewer.report_page import report_page
    from zhen.viewer.report_text import report_text

    folder = make_directory(cfg.output, key="output")
    data = build(cfg.data, "data", tokenizer=build(cfg.tokenizer, "tokenizer"), seed=cfg.seed)
    clean, odd = build(cfg.data.clean, "data.clean"), build(cfg.odd, "odd")
    for name in LISTINGS:
        (folder / name).unlink(missing_ok=True)  # of an earlier check
    sources = data.given()
    if "data.train" not in sources:
        raise UserError("`data.train` names no pairs: give data.train")
    with console():
        with whole_file(folder / "findings.tsv", key="output") as file:
            listing = Listing(file)
            surveys = survey_all(
                sources,
                (data.source_lang, data.target_lang),
                odd,
                listing,
                may_be_empty=["data.train"] if clean.empty else [],
                seed=cfg.seed,
            )
        reasons = why_refused(data, sources, listing)
        prepared: list[Section] = []
        if not reasons:
            try:
                prepared = prepare(data, clean, cfg, folder)
            except UserError as error:
                reasons.append(str(error))
    sections = [
        report.splits(surveys, listing),
        report.findings(surveys, listing),
        *prepared,
        report.lengths(surveys),
        report.characters(surveys),
        report.sample(surveys[0]),
    ]
    # What matters comes where the eye is: first on a page, last on a terminal.
    doubts = report.doubts(surveys, listing)
    verdict = report.verdict(reasons, doubts, encoded=cfg.vocabulary)
    title = f"Data check: {surveys[0].source.name}"
    page = report_page(title, [verdict, *sections])
    write_atomic(folder / "report.html", page, key="output")
    print(report_text([*sections, verdict]))
    print()
    for path in (folder / name for name in ("report.html", "findings.tsv", *LISTINGS)):
        if path.exists():
            print(path)
    if reasons:
        more = len(reasons) - 1
        others = f", and for {more} more reason{'s' if more > 1 else ''}" if more else ""
        raise UserError(f"training would refuse this corpus: {reasons[0]}{others}")


def why_refused(data: "TranslationData", given: Collection[str], listing: "Listing") -> list[str]:
    """What training would say of the splits that it does not accept.

    Args:
        given: keys of the splits that have pairs of their own.
        listing: what was found in them.
    """
    reasons = []
    for name in ("train", "val", *data.test_parts):
        key = data.key(name)
        if listing.refusals[key]:
            more = listing.refusals[key] - 1
            others = f" ({more:,} more in findings.tsv)" if more else ""
            reasons.append(f"{key}: {listing.first_refused[key]}{others}")
        elif key in given or "data.train" not in listing.refusals:
            try:
                data.read(name)
            except UserError as error:
                if str(error) not in reasons:  # of a split that is taken from another
                    reasons.append(str(error))
    return reasons


def prepare(
    data: "TranslationData", clean: "CleanOptions", cfg: DictConfig, folder: Path
) -> "list[Section]":
    """Clean the training pairs, and, if `cfg.vocabulary` says so, encode all as training would.

    Writes `dropped.tsv` and, of what is encoded, `changed.tsv`.

    Raises:
        UserError: training would get no further than here.
    """
    from zhen.data import report
    from zhen.data.cleaning import dropped
    from zhen.files import whole_file

    corpus, cleaned = data.read("train"), data.cleaned
    with whole_file(folder / "dropped.tsv", key="output") as file:
        print("where", "rule", corpus.source_lang, corpus.target_lang, sep="\t", file=file)
        for pair in dropped(corpus, clean, cleaned):
            print(*map(report.shown, pair), sep="\t", file=file)
    if not cfg.vocabulary:
        return [report.cleaning(len(corpus), cleaned.counts, None, len(cleaned.rows))]
    cuts: list[Cut] = []
    changed = {}
    with whole_file(folder / "changed.tsv", key="output") as file:
        print("split", "where", "rule", "before", "after", sep="\t", file=file)
        for name in ("train", "val", *data.test_parts):
            data.check_positions(name, cfg.model.max_positions)
            cuts += pieces(data, name)
            key, pairs = data.key(name), data.split(name)
            changed[key] = pairs.changed
            if any(pairs.changed.values()):
                for change in pairs.changes():
                    print(key, *map(report.shown, change), sep="\t", file=file)
    pairs = data.split("train")
    return [
        report.cleaning(len(corpus), cleaned.counts, pairs.too_long, len(pairs)),
        report.changes(changed),
        report.vocabulary(cuts),
    ]


def pieces(data: "TranslationData", name: str) -> "list[Cut]":
    """How each side of a split is cut.

    Of a large split, some pairs are looked at, evenly spread.
    """
    import numpy as np

    from zhen.data.report import Cut
    from zhen.data.vocabulary import CONTROLS

    pairs = data.split(name)
    some = np.unique(np.linspace(0, len(pairs) - 1, min(len(pairs), ENOUGH)).astype(int))
    batches = [pairs[chunk] for chunk in np.array_split(some, len(some) // 100 + 1)]
    rows = []
    for language, vocabulary, ids in (
        (data.source_lang, data.tokenizer.source, [batch.source for batch in batches]),
        (data.target_lang, data.tokenizer.target, [batch.labels for batch in batches]),
    ):
        every = np.concatenate([side.numpy().ravel() for side in ids])
        text = every[every >= len(CONTROLS)].tolist()
        rare = vocabulary.fallbacks(text)
        rows.append(Cut(data.key(name), language, len(some), len(text), rare))
    return rows


if __name__ == "__main__":
    run_command(data_check, config_name="data_check")
