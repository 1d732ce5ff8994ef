"""What `make compare` prints: the runs, repeats of a setting, differences to a baseline."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from zhen.runs.comparison import Column, Group, differences, has_value
from zhen.runs.record import Run
from zhen.runs.repeats import repeats, setting_of, spread
from zhen.viewer.comparison_text import Head, Table

if TYPE_CHECKING:
    from zhen.runs.significance import Difference

# By run, test part and metric.
Differences = Mapping[Run, Mapping[str, "Mapping[str, Difference]"]]


def of_runs(group: Group, title: str) -> Table:
    """A row for each run; a column that none of them fills is left out."""
    columns = [
        each
        for each in group.columns
        if each.key in ("run", "state") or any(each.text(run) for run in group.runs)
    ]
    return Table(
        title,
        [Head(each.key, _short(each, columns), _is_number(each, group.runs)) for each in columns],
        [[each.text(run) for each in columns] for run in group.runs],
        [[each.text(run, for_people=True) for each in columns] for run in group.runs],
        frozenset(
            (row, at) for at, each in enumerate(columns) for row in _best_rows(each, group.runs)
        ),
    )


def of_repeats(group: Group, base: Run | None) -> list[Table]:
    """A row for each setting that was tried, if one was with several seeds; else no table.

    Args:
        base: the run whose setting the means are compared with; None: with none.
    """
    settings = repeats(group.runs)
    if all(len(runs) < 2 for runs in settings.values()):
        return []
    own = differences([runs[0] for runs in settings.values()], ignore=["seed"])
    scores = [each for each in group.columns if _is_score(each)]
    baseline = settings.get(setting_of(base)) if base is not None else None
    heads = [Head(each.key, _short(each, own)) for each in own] or [Head("setting", "setting")]
    heads.append(Head("seeds", "seeds", True))
    for each in scores:
        heads += [Head(f"{each.key} mean", each.title, True), Head(f"{each.key} deviation")]
        if baseline:
            heads += [Head(f"{each.key} difference", "Δ", True)]
            heads += [Head(f"{each.key} error of difference")]
    rows, shown = [], []
    for runs in settings.values():
        name = [each.text(runs[0]) for each in own] or ["all runs"]
        row, seen = [*name, str(len(runs))], [*name, str(len(runs))]
        for each in scores:
            here = spread(runs, each)
            there = spread(baseline, each) if baseline and runs is not baseline else None
            numbers: list[tuple[float | None, float | None]]
            numbers = [(here.mean, here.deviation) if here else (None, None)]
            if baseline:
                numbers.append(here.delta(there) if here and there else (None, None))
            for i, (number, error) in enumerate(numbers):
                row += [_number(number, each), _number(error, each)]
                seen += [_with_error(number, error, each, sign=i > 0), ""]
        rows.append(row)
        shown.append(seen)
    title = "Over seeds: mean ± standard deviation"
    if baseline:
        title += "; Δ to the baseline's mean ± standard error"
    return [Table(title, heads, rows, shown)]


def of_differences(found: Differences, base: Run) -> list[Table]:
    """A row for each run and test part: its scores, less the baseline's, and how sure that is."""
    if not found:
        return []
    from zhen.runs.significance import RESAMPLES, SEED

    heads = [Head("run", "run"), Head("test", "test")]
    for metric in ("BLEU", "chrF"):
        key = metric.lower()
        heads += [
            Head(key, metric, True),
            Head(f"{key} difference", "Δ", True),
            Head(f"{key} p", "p", True),
            Head(f"{key} significant", " "),
        ]
    rows, shown = [], []
    for run, parts in found.items():
        for part, metrics in parts.items():
            row = [run.name, part]
            for each in metrics.values():
                mark = "*" if each.is_significant else ""
                row += [f"{each.score:.2f}", f"{each.delta:+.2f}", f"{each.p:.4f}", mark]
            rows.append(row)
            shown.append([*row[:4], _p(row[4]), *row[5:8], _p(row[8]), row[9]])
    title = (
        f"Against {base.name}: paired bootstrap, {RESAMPLES:,} resamples, seed {SEED};"
        " * is p < 0.05"
    )
    return [Table(title, heads, rows, shown)]


def _p(text: str) -> str:
    return text[:-1]  # three decimals say enough


def _short(column: Column, columns: Sequence[Column]) -> str:
    """The last part of a setting's key, where no other column has it."""
    last = column.title.rpartition(".")[2]
    same = [each for each in columns if each.title.rpartition(".")[2] == last]
    return last if len(same) == 1 else column.title.replace(".", ".\n", 1)


def _is_number(column: Column, runs: Sequence[Run]) -> bool:
    def is_one(value: object) -> bool:
        try:
            float(str(value))
        except ValueError:
            return False
        return True

    values = [value for run in runs if (value := column.value(run)) is not None]
    return column.key != "run" and all(map(is_one, values))


def _is_score(column: Column) -> bool:
    return column.more_is_better is not None and "/" in column.key


def _best_rows(column: Column, runs: Sequence[Run]) -> list[int]:
    """Of scores and losses, where there is a choice."""
    if not _is_score(column):
        return []
    values = {i: column.value(run) for i, run in enumerate(runs)}
    there = {i: float(value) for i, value in values.items() if has_value(value)}
    if len(there) < 2:
        return []
    best = (max if column.more_is_better else min)(there.values())
    return [i for i, value in there.items() if value == best]


def _number(number: float | None, column: Column) -> str:
    return "" if number is None else f"{number:.{column.decimals}f}"


def _with_error(number: float | None, error: float | None, column: Column, sign: bool) -> str:
    if number is None:
        return ""
    text = f"{number:{'+' if sign else ''}.{column.decimals}f}"
    return text if error is None else f"{text} ± {error:.{column.decimals}f}"
