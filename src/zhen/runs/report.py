"""What the report of `make compare` shows, as plain data."""

import json
import math
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from zhen.files import read_rows
from zhen.runs.comparison import Group, differences
from zhen.runs.record import Run
from zhen.runs.significance import NotComparable, Sentences, sentence_chrf, sentences
from zhen.viewer.comparison_text import Table

# What a page can hold: runs with curves, points of a curve, runs and sentences with translations.
CURVES, POINTS, TRANSLATED, SENTENCES = 50, 400, 20, 2000


def content(groups: Sequence[Group], tables: Sequence[Table], base: Run | None) -> dict[str, Any]:
    """Everything on the page.

    Args:
        groups: what was compared.
        tables: what was printed.
        base: the baseline, which translations are first compared with.
    """
    runs = [run for group in groups for run in group.runs]
    first = [*([base] if base else []), *(run for run in runs if run is not base)]
    translations = _translations(groups, base)
    return {
        "tables": [_table(each) for each in tables],
        "settings": _settings(runs[:CURVES]),
        "curves": [{"name": run.name, "series": curves(run)} for run in first[:CURVES]],
        "translations": translations,
        "importances": _importances(runs),
        "notes": _left_out(runs, translations),
    }


def _table(table: Table) -> dict[str, Any]:
    there = [i for i, head in enumerate(table.heads) if head.title]
    return {
        "title": table.title,
        "heads": [table.heads[i].title.replace("\n", " ") for i in there],
        "numbers": [table.heads[i].is_number for i in there],
        "rows": [[row[i] for i in there] for row in table.shown],
        # What a column is sorted by: 9,000 comes before 10,000.
        "values": [[row[i] for i in there] for row in table.rows],
        "best": [[row, there.index(i)] for row, i in sorted(table.best)],
    }


def _settings(runs: Sequence[Run]) -> dict[str, Any]:
    """A row for each setting that differs, a column for each run."""
    rows = [[each.key, *(each.text(run) for run in runs)] for each in differences(runs)]
    heads = ["setting", *(run.name for run in runs)]
    return {
        "title": "",
        "heads": heads,
        "numbers": [False] * len(heads),
        "rows": rows,
        "values": rows,
        "best": [],
    }


def curves(run: Run) -> dict[str, dict[str, list[float | None]]]:
    """What was logged of the training, by its name: y, and the axes update, tokens and seconds.

    The last two are None where the run has no clock.csv.
    """
    try:
        columns, rows = read_rows(run.path / "metrics.csv")
    except OSError:
        return {}
    clock = _clock(run)
    found: dict[str, dict[str, list[float | None]]] = {}
    for at, name in enumerate(columns):
        if name == "step" or name.startswith("test/"):
            continue
        # Lightning counts steps from 0: what it logs at step 0 comes after the first update.
        points = [(int(row[0]) + 1, float(row[at])) for row in rows if row[at]]
        points = [point for point in points if math.isfinite(point[1])]
        points = points[:: math.ceil(len(points) / POINTS) or 1]
        if points:
            updates = [update for update, _ in points]
            found[name] = {
                "y": [_short(y) for _, y in points],
                "update": [*updates],
                "tokens": [_at(update, clock, 1) for update in updates],
                "seconds": [_at(update, clock, 2) for update in updates],
            }
    return found


def _short(number: float) -> float:
    return float(f"{number:.6g}")


def _clock(run: Run) -> list[tuple[float, ...]]:
    try:
        _, rows = read_rows(run.path / "clock.csv")
        return [(0.0, 0.0, 0.0), *(tuple(map(float, row[:3])) for row in rows)]
    except (OSError, ValueError):
        return []


def _at(update: int, clock: Sequence[tuple[float, ...]], axis: int) -> float | None:
    """Where an update lies on another axis, between the rows that are there."""
    if not clock:
        return None
    after = bisect_right(clock, (float(update), math.inf))
    before = clock[after - 1]
    if before[0] == update or after == len(clock):
        return _short(before[axis])
    share = (update - before[0]) / (clock[after][0] - before[0])
    return _short(before[axis] + share * (clock[after][axis] - before[axis]))


def _translations(groups: Sequence[Group], base: Run | None) -> list[dict[str, Any]]:
    """For each test set the sentences, and what each run made of them with its chrF."""
    found = []
    for group in groups:
        tested = [run for run in group.runs if run.tests]
        if base is not None and base in tested:
            tested = [base, *(run for run in tested if run is not base)]
        for part in group.parts:
            read: dict[str, Sentences] = {}
            for run in tested[:TRANSLATED]:
                try:
                    text = sentences(run, part)
                except NotComparable:
                    continue
                same = next(iter(read.values()), text)
                if (text.sources, text.references) == (same.sources, same.references):
                    read[run.name] = text
            if read:
                title = part if len(groups) == 1 else f"{part} ({group.scored.direction})"
                found.append(_translated(title, read))
    return found


def _translated(title: str, read: dict[str, Sentences]) -> dict[str, Any]:
    first = next(iter(read.values()))
    return {
        "title": title,
        "sources": first.sources[:SENTENCES],
        "references": first.references[:SENTENCES],
        "runs": {
            name: {
                "hypotheses": text.hypotheses[:SENTENCES],
                "chrf": [
                    round(sentence_chrf(*pair), 1)
                    for pair in zip(
                        text.hypotheses[:SENTENCES], text.references[:SENTENCES], strict=True
                    )
                ],
            }
            for name, text in read.items()
        },
    }


def _importances(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """How much each parameter of a sweep mattered, where the sweep found out."""
    found = []
    for folder in dict.fromkeys(run.path.parent / run.sweep for run in runs if run.sweep):
        try:
            shares = json.loads((folder / "importances.json").read_bytes())
            ranked = sorted(((str(k), float(v)) for k, v in shares.items()), key=lambda e: -e[1])
        except (OSError, ValueError, TypeError, AttributeError):
            continue
        if not ranked:  # fewer than two of its jobs were finished
            continue
        found.append(
            {
                "sweep": f"{folder.parent.name}/{folder.name}",
                "parameters": [name for name, _ in ranked],
                "shares": [share for _, share in ranked],
            }
        )
    return found


def _left_out(runs: Sequence[Run], translations: Sequence[dict[str, Any]]) -> list[str]:
    notes = []
    if len(runs) > CURVES:
        notes.append(f"Settings and curves are those of the first {CURVES} of {len(runs)} runs.")
    if sum(bool(run.tests) for run in runs) > TRANSLATED:
        notes.append(f"Translations are those of the first {TRANSLATED} runs of each table.")
    if any(len(each["sources"]) == SENTENCES for each in translations):
        notes.append(f"Of a test part there are the first {SENTENCES:,} sentences.")
    return notes
