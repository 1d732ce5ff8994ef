"""Compare runs: how their settings differ, what they found, and whether the difference is real.

    python -m zhen.compare runs='phrasebook/*' base=phrasebook/RUN output=compare.html

Reads configs/compare.yaml; prints tables, as tab-separated values where nobody looks, and with
`output=FILE` also writes a report with learning curves and translations.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from omegaconf import DictConfig

from zhen.config import run_command
from zhen.errors import UserError

if TYPE_CHECKING:
    from zhen.runs.comparison import Group
    from zhen.runs.record import Run
    from zhen.runs.significance import Difference
    from zhen.runs.tables import Differences
    from zhen.viewer.comparison_text import Table

NAMED = 3  # directories or runs that a message names


def compare(cfg: DictConfig) -> None:
    """Print what `cfg.runs`, or all runs below `cfg.paths.runs`, have in common and what not."""
    from zhen.files import check_writable, write_atomic
    from zhen.runs import tables
    from zhen.runs.comparison import arranged, groups, notes
    from zhen.runs.finding import find_runs, where
    from zhen.viewer.comparison_text import print_tables

    if cfg.output:
        check_writable(cfg.output, key="output")
    every, skipped = find_runs(Path(cfg.paths.runs), cfg.runs)
    if skipped:
        say_skipped(skipped, Path(cfg.paths.runs))
    runs = where(every, cfg.where) if cfg.where else every
    if not runs:
        none = f"none of the {len(every)} runs meets where={cfg.where}" if every else "no runs"
        raise UserError(f"{none} below {cfg.paths.runs}: choose others, or `make train`")
    base = baseline(cfg, every) if cfg.base else None
    if base is not None and base not in runs:
        runs = [base, *runs]
    found = arranged(groups(runs), cfg.sort)
    made: list[Table] = []
    for number, group in enumerate(found, start=1):
        title = f"{number}. {group.scored.direction}" if len(found) > 1 else ""
        made.append(tables.of_runs(group, title))
        made += tables.of_repeats(group, base)
    differences: Differences = {}
    if base is not None:
        differences, refused = against(base, runs)
        say_refused(refused, base)
        made += tables.of_differences(differences, base)
    print_tables(made)
    say_groups(found)
    for note in dict.fromkeys(note for group in found for note in notes(group)):
        print(f"note: {note}", file=sys.stderr)
    tried = sum(len(scores) for parts in differences.values() for scores in parts.values())
    if tried > 1:
        print(
            f"note: of {tried} p-values, about one in 20 is below 0.05 where nothing differs",
            file=sys.stderr,
        )
    if cfg.output:
        from zhen.runs.report import content
        from zhen.viewer.comparison_page import comparison_page

        page = comparison_page(content(found, made, base))
        write_atomic(cfg.output, page, key="output")
        print(f"report: {cfg.output}", file=sys.stderr)


def baseline(cfg: DictConfig, runs: "Sequence[Run]") -> "Run":
    """The run that `cfg.base` names: one of those that were asked for, or any other.

    Raises:
        UserError: it names none.
    """
    from zhen.runs.finding import find_one, find_runs

    try:
        return find_one(runs, cfg.base, key="base")
    except UserError:
        if cfg.runs is None:
            raise
        return find_one(find_runs(Path(cfg.paths.runs), None)[0], cfg.base, key="base")


def against(base: "Run", runs: "Sequence[Run]") -> "tuple[Differences, dict[str, str]]":
    """What each run scored against the baseline, and the runs that must not be compared, with why.

    Raises:
        UserError: the baseline has no test, or nothing can be compared with it.
    """
    from zhen.runs.comparison import test_parts
    from zhen.runs.significance import NotComparable, difference

    if not base.tests:
        raise UserError(f"base={base.name} is {base.state}, and was not tested: give another")
    others = [run for run in runs if run is not base and run.tests]
    found: dict[Run, Mapping[str, Mapping[str, Difference]]] = {}
    refused: dict[str, str] = {}
    for run in others:
        try:
            found[run] = {part: difference(run, base, part) for part in test_parts([base, run])}
        except NotComparable as error:
            refused[run.name] = str(error)
    if not found:
        if not refused:
            raise UserError(f"base={base.name}: no other run was tested; compare it later")
        name, why = next(iter(refused.items()))
        more = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
        raise UserError(f"no run can be compared with base={base.name}: {name}: {why}{more}")
    return found, refused


def say_skipped(skipped: "dict[Path, str]", below: Path) -> None:
    """On stderr, how many directories were passed over, and why."""
    by_reason: dict[str, list[str]] = {}
    for path, reason in skipped.items():
        name = path.relative_to(below) if path.is_relative_to(below) else path
        by_reason.setdefault(reason, []).append(str(name))
    for reason, names in by_reason.items():
        more = ", ..." if len(names) > NAMED else ""
        what = "directory" if len(names) == 1 else "directories"
        shown = ", ".join(names[:NAMED])
        print(f"skipped {len(names)} {what}: {reason} ({shown}{more})", file=sys.stderr)


def say_refused(refused: "dict[str, str]", base: "Run") -> None:
    for name, why in refused.items():
        print(f"not compared with {base.name}: {name}: {why}", file=sys.stderr)


def say_groups(found: "Sequence[Group]") -> None:
    """Why there are several tables."""
    for number, group in enumerate(found[1:], start=2):
        names = ", ".join(run.name for run in group.runs[:NAMED])
        more = f" and {len(group.runs) - NAMED} more" if len(group.runs) > NAMED else ""
        why = found[0].scored.why_not(group.scored)
        print(
            f"note: table {number} ({names}{more}) is not comparable with table 1: {why}",
            file=sys.stderr,
        )


if __name__ == "__main__":
    run_command(compare, config_name="compare")
