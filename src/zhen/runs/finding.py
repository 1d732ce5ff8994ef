"""Which runs are compared: those below `paths.runs`, or those that were asked for."""

import glob
import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from zhen.errors import UserError, did_you_mean
from zhen.runs.record import Run, Skip, read_run
from zhen.runs.sweeps import Sweep

DEPTH = 2  # runs/<name>/<run>
OF_A_RUN = ("state", "sweep", "run")  # what WHERE knows beside configuration keys and groups


def find_runs(below: Path, given: str | None) -> tuple[list[Run], dict[Path, str]]:
    """The runs, in order of their names, and the directories that are none, with the reason.

    Args:
        below: the directory of all runs.
        given: paths or patterns, with blanks between them, below `below` or from here; a directory
            stands for the runs in it, that of a sweep for the sweep's; None for all.

    Raises:
        UserError: nothing is there.
    """
    if given is None:
        if not below.is_dir():
            raise UserError(f"there are no runs: {below} does not exist; `make train` makes one")
        paths = list(_below(below, DEPTH))
    else:
        paths = [path for place in _given(below, given) for path in _runs_in(place)]
    runs, skipped = [], {}
    for path in dict.fromkeys(paths):
        name = path.relative_to(below) if path.is_relative_to(below) else path
        try:
            runs.append(read_run(path, str(name)))
        except Skip as skip:
            skipped[path] = str(skip)
    return runs, skipped


def _given(below: Path, given: str) -> list[Path]:
    try:
        patterns = shlex.split(given)
    except ValueError as error:
        raise UserError(f"runs={given!r} cannot be read: {str(error).lower()}") from error
    places: list[Path] = []
    for pattern in patterns:
        wanted = Path(pattern).expanduser()
        for one in (below / wanted, wanted.absolute()):
            names = [str(one)] if one.exists() else glob.glob(str(one))
            found = sorted(each for each in map(Path, names) if each.is_dir())
            if found:
                break
        else:
            raise UserError(
                f"runs={pattern}: no such directory, neither below {below} nor from here; give"
                " paths or patterns, as runs='phrasebook/* tatoeba/base'"
            )
        places += found
    return places


def _runs_in(place: Path) -> Iterator[Path]:
    """A run itself, the runs of a sweep, or what looks like one some levels below."""
    if Sweep.file(place).is_file():
        yield from sorted(place.parent.glob(f"{glob.escape(place.name)}-*"), key=_in_order)
    elif (place / "config.yaml").is_file() or not any(_directories(place)):
        yield place
    else:
        yield from _below(place, DEPTH)


def _below(place: Path, depth: int) -> Iterator[Path]:
    for path in sorted(_directories(place), key=_in_order):
        if (path / "config.yaml").is_file():
            yield path
        elif depth > 1:
            yield from _below(path, depth - 1)
        elif not Sweep.file(path).is_file():
            yield path


def _directories(place: Path) -> Iterator[Path]:
    return (path for path in place.iterdir() if path.name[0] != "." and path.is_dir())


def _in_order(path: Path) -> list[tuple[bool, int, str]]:
    """Numbers by their size: job 10 comes after job 9."""
    parts = path.name.split("-")
    return [(not part.isdigit(), len(part) if part.isdigit() else 0, part) for part in parts]


def find_one(runs: Sequence[Run], wanted: str, key: str) -> Run:
    """The run of that name or path, or the only one that has it as a part of its name.

    Of an experiment it is the only run that was tested.

    Args:
        key: that names it, for the message.

    Raises:
        UserError: there is none, or are several.
    """
    path = Path(wanted).expanduser().absolute()
    found = [run for run in runs if wanted == run.name or path == run.path.absolute()]
    found = found or [run for run in runs if run.path.name == wanted]
    found = found or [run for run in runs if run.path.parent.name == wanted and run.tests]
    if len(found) == 1:
        return found[0]
    if found:
        names = " and ".join(run.name for run in found[:3])
        raise UserError(f"{key}={wanted} may be {names}: give the whole name")
    near = did_you_mean(wanted, [run.name for run in runs])
    raise UserError(f"{key}={wanted} is none of the runs that are compared{near}")


def where(runs: Sequence[Run], conditions: str) -> list[Run]:
    """The runs that meet every condition.

    Args:
        conditions: with blanks between them, as `model=tiny optimizer.lr=1e-3,2e-3 seed!=0`: a
            configuration key or group, or one of `OF_A_RUN`, and the values that it may have.

    Raises:
        UserError: one is no condition, or its key none of any run.
    """
    chosen = list(runs)
    try:
        words = shlex.split(conditions)
    except ValueError as error:
        raise UserError(f"where={conditions!r} cannot be read: {str(error).lower()}") from error
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise UserError(f"where: `{word}` is no condition; write key=value, as model=tiny")
        negative, key = key.endswith("!"), key.removesuffix("!")
        if runs and not any(key in _values(run) for run in runs):
            known = {name for run in runs for name in _values(run)}
            raise UserError(f"where: no run has `{key}`{did_you_mean(key, known)}")
        wanted = [_number(each) for each in _alternatives(value)]
        chosen = [run for run in chosen if (_number(_values(run).get(key)) in wanted) != negative]
    return chosen


def _values(run: Run) -> dict[str, str]:
    own = {"state": run.state, "sweep": run.sweep, "run": run.name}
    there = {key: value for key, value in own.items() if value is not None}
    return {**run.config, **run.choices, **there}


def _alternatives(value: str) -> Iterable[str]:
    return [value] if value.startswith("[") else value.split(",")


def _number(value: str | None) -> float | str | None:
    """1e-3 and 0.001 are the same value."""
    try:
        return float(value) if value is not None else None
    except ValueError:
        return value
