"""Runs side by side: what differs in their settings, what they found, and what may be compared."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeGuard

from zhen.errors import UserError, did_you_mean
from zhen.runs.directory import stem_of
from zhen.runs.record import CORPUS, Run
from zhen.schema import within

NAMED = 3  # runs of which a note tells
Value = str | int | float | None


@dataclass(frozen=True)
class Column:
    """One number or word of each run."""

    key: str  # as metrics.csv names it, or the key of a setting
    title: str  # may have two lines; empty: for programs alone
    value: Callable[[Run], Value]
    decimals: int | None = None  # None: as it is
    more_is_better: bool | None = None  # None: neither
    readable: Callable[[Any], str] | None = None  # for people, where a program reads another text

    def text(self, run: Run, for_people: bool = False) -> str:
        """The cell; empty where the run has no such value."""
        value = self.value(run)
        if value is None:
            return ""
        if for_people and self.readable is not None:
            return self.readable(value)
        return str(value) if self.decimals is None else f"{float(value):.{self.decimals}f}"


@dataclass(frozen=True)
class Scored:
    """What the scores of a run were measured on, and with what: only equals are comparable."""

    direction: str
    val: str
    tests: tuple[tuple[str, str], ...]
    limits: tuple[str, str]
    files: tuple[tuple[str, int], ...] = ()  # test sentences and references, with their sizes
    signatures: tuple[tuple[str, str], ...] = ()

    def why_not(self, other: "Scored") -> str:
        """What keeps the scores of `other` from being compared with these."""
        if self.direction != other.direction:
            return f"another direction, {other.direction}"
        if self.val != other.val:
            return "other validation pairs"
        if self.tests != other.tests or self.files != other.files:
            here, there = ({*each.tests, *each.files} for each in (self, other))
            return f"other test pairs ({', '.join(sorted({name for name, _ in here ^ there}))})"
        if self.limits != other.limits:
            return "another part of the pairs, trainer.limit_val_batches or limit_test_batches"
        (name, found), *_ = sorted({*other.signatures} - {*self.signatures}) or [("", "none")]
        return f"another signature of {name}, {found}"


@dataclass(frozen=True)
class Group:
    """Runs whose scores may be compared, in the order of the table."""

    scored: Scored
    runs: list[Run]
    columns: list[Column]

    @property
    def parts(self) -> list[str]:
        return test_parts(self.runs)


def groups(runs: Sequence[Run]) -> list[Group]:
    """Runs by what they were scored on, the largest group first.

    A run without a test goes to those that will be tested on the same, and one without any score
    to the largest group: it has nothing that could be compared wrongly.
    """
    found: dict[Scored, list[Run]] = {}
    for run in sorted(runs, key=lambda each: not each.tests):  # those with a test first
        scored = scored_on(run)
        if not run.tests:
            begun = _before_the_test(scored)
            same = [each for each in found if _before_the_test(each) == begun]
            scored = same[0] if same else scored
        found.setdefault(scored, []).append(run)
    ordered = sorted(found.items(), key=lambda item: -len(item[1]))
    kept = [(scored, of) for scored, of in ordered if any(run.tests or run.best for run in of)]
    kept = kept or ordered[:1]
    without = [run for scored, of in ordered if (scored, of) not in kept for run in of]
    return [
        Group(scored, of + (without if i == 0 else []), []) for i, (scored, of) in enumerate(kept)
    ]


def scored_on(run: Run) -> Scored:
    """What the scores of a run were measured on."""
    config, corpus = run.config, run.about.get("corpus") or {}
    files, signatures = [], []
    for part, numbers in run.tests.items():
        stem = stem_of(part)
        files += [(f"{stem}.{end}", _size(run.path / f"{stem}.{end}")) for end in ("src", "ref")]
        signatures += [
            (f"{part} {name}", str(numbers.get(f"{name}_signature"))) for name in ("bleu", "chrf")
        ]
    return Scored(
        direction=direction(config),
        val=str(corpus.get("val")),
        tests=tuple(sorted(each for each in corpus.items() if each[0] not in ("train", "val"))),
        limits=(
            config.get("trainer.limit_val_batches", "1.0"),
            config.get("trainer.limit_test_batches", "1.0"),
        ),
        files=tuple(files),
        signatures=tuple(signatures),
    )


def direction(config: Mapping[str, str]) -> str:
    """As zh→en."""
    languages = config.get("data.languages", "").strip("[]").split(", ")
    source, target = config.get("data.source_lang"), config.get("data.target_lang")
    if target in (None, "null"):
        target = next((each for each in languages if each != source), "?")
    return f"{source}→{target}"


def _before_the_test(scored: Scored) -> Scored:
    return Scored(scored.direction, scored.val, scored.tests, scored.limits)


def _size(path: Path) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return -1


def test_parts(runs: Sequence[Run]) -> list[str]:
    """The test parts of these runs, in their order."""
    return list(dict.fromkeys(part for run in runs for part in run.tests))


def differences(runs: Sequence[Run], ignore: Sequence[str] = ()) -> list[Column]:
    """The settings in which the runs differ, as few columns as tell them apart.

    Where the option of a group explains the settings below it (model=tiny, small), it stands for
    them, and a file's path for the fingerprint of what was read from it.

    Args:
        ignore: settings that do not count.
    """
    settings = [run.settings.items() for run in runs]
    varying = {key for each in settings for key, _ in each ^ settings[0]} - {*ignore}
    first = {key: i for i, key in enumerate(dict.fromkeys(k for run in runs for k in run.settings))}
    ordered = sorted(varying, key=lambda key: (key == "seed", first[key]))
    columns = {key: _setting(key) for key in ordered}
    if CORPUS not in columns and all(CORPUS in run.settings for run in runs):
        columns = {key: each for key, each in columns.items() if not within(key, ("data.train",))}
    if "data.train" in columns and _explains(columns["data.train"].value, CORPUS, runs):
        columns.pop(CORPUS, None)
    for group, package in _varying_groups(runs):
        chosen = _choice(group)
        below = [
            key for key in columns if within(key, (package,)) and _explains(chosen.value, key, runs)
        ]
        if below:
            at = {key: i for i, key in enumerate(columns)}[below[0]]
            entries = list(columns.items())
            entries.insert(at, (group, chosen))
            columns = {key: each for key, each in entries if key not in below or key == group}
    return list(columns.values())


def _varying_groups(runs: Sequence[Run]) -> list[tuple[str, str]]:
    """Groups of whose options the runs have different ones, and the key that each fills."""
    everywhere = set.intersection(*(set(run.choices) for run in runs))
    varying = [
        group for group in runs[0].choices
        if group in everywhere and len({run.choices[group] for run in runs}) > 1
    ]  # fmt: skip
    packages = [(g, g.partition("@")[2] or g.replace("/", ".")) for g in varying]
    return sorted(packages, key=lambda each: each[1].count("."))


def _explains(chosen: Callable[[Run], Value], key: str, runs: Sequence[Run]) -> bool:
    """Whether runs for which `chosen` is the same have one value of the setting."""
    seen: dict[Value, str | None] = {}
    return all(
        seen.setdefault(chosen(run), run.settings.get(key)) == run.settings.get(key) for run in runs
    )


def _setting(key: str) -> Column:
    return Column(key, key, lambda run: run.settings.get(key))


def _choice(group: str) -> Column:
    return Column(group, group, lambda run: run.choices.get(group))


def columns(group: Group) -> list[Column]:
    """All columns of a table, settings first, then what the runs found."""

    def best(name: str, title: str, decimals: int, more: bool) -> Column:
        return Column(name, title, lambda run: run.best.get(name), decimals, more)

    def test(part: str, name: str, title: str) -> Column:
        def value(run: Run) -> Value:
            found: Value = run.tests.get(part, {}).get(name)
            return found

        prefix = "test" if part == "test" else f"test/{part}"
        return Column(f"{prefix}/{name}", f"{part}\n{title}", value, 2, True)

    return [
        Column("run", "run", lambda run: run.name),
        *differences(group.runs),
        best("val/bleu", "val\nBLEU", 2, True),
        *(test(part, "bleu", "BLEU") for part in group.parts),
        best("val/loss", "val\nloss", 3, False),
        Column("state", "state", lambda run: run.state),
        best("val/chrf", "val\nchrF", 2, True),
        *(test(part, "chrf", "chrF") for part in group.parts),
        Column("parameters", "parameters", lambda run: run.parameters, readable=_thousands),
        Column("updates", "updates", updates, readable=_thousands),
        Column(
            "tokens_per_second", "tokens/s", lambda run: run.tokens_per_second, 0, True, _thousands
        ),
        Column("seconds", "time", lambda run: run.seconds, 1, False, _hours),
        Column("reason", "", lambda run: run.reason or None),
    ]


def _thousands(value: float) -> str:
    return f"{value:,.0f}"


def _hours(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))


def updates(run: Run) -> int | None:
    """That were made, as far as it is known."""
    return run.results.get("updates", run.clock[0] if run.clock else None)


def arranged(found: Sequence[Group], sort: str) -> list[Group]:
    """The groups with their columns, the runs of each sorted by one of them.

    Args:
        sort: a column's key or a setting; scores and speeds come best first, all else from small
            to large, and the other way round with `-` before it. What a run lacks comes last.

    Raises:
        UserError: no group has such a column.
    """
    key = sort.removeprefix("-")
    tables = [Group(group.scored, group.runs, columns(group)) for group in found]
    sorters = [_sorter(table, key) for table in tables]
    if not any(sorters):
        known = list(dict.fromkeys(each.key for table in tables for each in table.columns))
        near = did_you_mean(key, known) or ";"
        raise UserError(f"sort={sort}: no such column{near} there are {', '.join(known)}")
    return [
        Group(table.scored, _sorted(table.runs, sorter, sort.startswith("-")), table.columns)
        for table, sorter in zip(tables, sorters, strict=True)
    ]


def _sorter(group: Group, key: str) -> Column | None:
    for column in group.columns:
        if column.key == key:
            return column
    if any(key in run.choices for run in group.runs):
        return _choice(key)
    if any(key in run.config for run in group.runs):
        return Column(key, key, lambda run: run.config.get(key))
    return None


def _sorted(runs: list[Run], sorter: Column | None, backwards: bool) -> list[Run]:
    if sorter is None:
        return runs
    value = sorter.value
    there = [run for run in runs if has_value(value(run))]
    there.sort(key=lambda run: _order(value(run)), reverse=bool(sorter.more_is_better) != backwards)
    return there + [run for run in runs if not has_value(value(run))]


def has_value(value: Value) -> TypeGuard[str | int | float]:
    """Whether it can be put in an order: NaN, the loss of a training that diverged, cannot."""
    return value is not None and value == value


def _order(value: Value) -> tuple[float, str]:
    try:
        return float(value or 0), ""
    except ValueError:
        return float("inf"), str(value)


def notes(group: Group) -> list[str]:
    """What has to be known to read the numbers of a group right."""
    found = []
    varying = {each.key for each in differences(group.runs)} if len(group.runs) > 1 else set()
    unlike = sorted(
        k for k in varying if within(k, ("tokenizer", "label_smoothing")) or k == CORPUS
    )
    if unlike:
        found.append(
            f"val loss is a mean over pieces, smoothed: not comparable where {', '.join(unlike)}"
            " differs"
        )
    ended = [run for run in group.runs if run.reason]
    found += [f"{run.name} is {run.state}: {run.reason}" for run in ended[:NAMED]]
    if len(ended) > NAMED:
        found.append(f"{len(ended) - NAMED} more were interrupted or crashed")
    dirty = [run for run in group.runs if run.settings.get("code", "").endswith("+")]
    if len(dirty) > 1 or (dirty and "code" in varying):
        found.append("code with a + had changes that were not committed, and may differ further")
    return found
