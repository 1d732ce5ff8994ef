"""What a run directory tells of its run, finished or not; quickly, for thousands."""

import csv
import json
import math
import os
import re
import signal
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

import yaml

from zhen.errors import UserError
from zhen.files import read_rows
from zhen.runs.directory import RunDirectory
from zhen.runs.sweeps import Sweep
from zhen.schema import leaves, within

State = Literal["finished", "running", "pruned", "interrupted", "crashed"]

# Keys without which a config.yaml is not that of a training of zhen.
NEEDED = ("name", "seed", "paths.run_dir", "model._target_")
# Settings that cannot change what a run finds: where things lie, and what it shows on the way.
NO_MATTER = (
    "name",
    "paths",
    "resume",
    "ckpt",
    "logger",
    "callbacks.progress",
    "callbacks.samples",
    "callbacks.profile",
    "callbacks.checkpoint.dirpath",
    "callbacks.checkpoint.every_n_updates",
    "callbacks.checkpoint.every_minutes",
    "callbacks.checkpoint.keep_every_n_updates",
    "data.cache_dir",
    "data.num_workers",
    "data.batch.eval_tokens",
    "trainer.default_root_dir",
    "trainer.log_every_n_steps",
    "trainer.enable_model_summary",
    "trainer.enable_progress_bar",
)
# Not what a run is trained with, but what it is scored on: `zhen.runs.comparison.Scored`.
SCORED_ON = ("data.val", "data.test", "trainer.limit_val_batches", "trainer.limit_test_batches")
# Stands for the run directory while a configuration is read: a private character of Unicode.
PLACE = "\ue000"
# Keys beside those of config.yaml that say what a run was trained with, from provenance.json.
CODE, CORPUS = "code", "corpus.train"


class Skip(Exception):
    """A directory that is none of a run, or whose files cannot be read; says why."""


@dataclass(frozen=True, eq=False)
class Run:
    """One run, as its files tell of it."""

    name: str  # its path below `paths.runs`, if it lies there
    path: Path
    state: State
    reason: str  # why it is interrupted or crashed, else empty
    config: Mapping[str, str]  # config.yaml, each value as it is shown
    choices: Mapping[str, str]  # the option of each configuration group
    about: Mapping[str, Any]  # provenance.json
    results: Mapping[str, Any]  # results.json; empty before the end
    best: Mapping[str, float]  # what the best validation logged
    clock: tuple[int, int, float, float] | None  # the last row of clock.csv
    parameters: int | None
    settings: Mapping[str, str] = field(init=False)  # what may differ between two runs

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", _settings(self.config, self.about))

    @property
    def tests(self) -> Mapping[str, Mapping[str, Any]]:
        """Scores, signatures and losses of each test part."""
        found: Mapping[str, Mapping[str, Any]] = self.results.get("test") or {}
        return found

    @property
    def seconds(self) -> float | None:
        """That it trained, with validations, over all parts of a run that went on."""
        return self.clock[2] if self.clock else self.results.get("seconds_training")

    @property
    def tokens_per_second(self) -> float | None:
        """Real target tokens, outside of validations."""
        if "target_tokens_per_second" in self.results or self.clock is None:
            return self.results.get("target_tokens_per_second")
        _, tokens, seconds, validating = self.clock
        return tokens / (seconds - validating) if seconds > validating else None

    @property
    def sweep(self) -> str | None:
        found = self.about.get("sweep")
        return str(found) if found is not None else None


def read_run(path: Path, name: str) -> Run:
    """Read what is there.

    Raises:
        Skip: it is no run, or one of its files is damaged.
    """
    directory = RunDirectory(path)
    config = _part(directory.config, read_config)
    if config is None:
        raise Skip("no config.yaml")
    if not all(key in config for key in NEEDED):
        raise Skip("config.yaml is not of a zhen run")
    about = _part(directory.provenance, _json) or {}
    results = _part(directory.results, _json) or {}
    _expect_mappings(about, ("git", "choices", "corpus"), "provenance.json")
    _expect_mappings(results, ("test",), "results.json")
    _expect_mappings(results.get("test") or {}, results.get("test") or {}, "results.json")
    monitor = config.get("callbacks.checkpoint.monitor", "val/bleu")
    sign = -1 if config.get("callbacks.checkpoint.mode") == "min" else 1
    best = _part(path / "metrics.csv", lambda file: _best_row(file, monitor, sign))
    clock = _part(path / "clock.csv", _last_row)
    state, reason = _state(directory, results)
    if state == "interrupted" and path in _pruned(path.parent / str(about.get("sweep"))):
        state, reason = "pruned", ""
    parameters = results.get("parameters")
    if parameters is None:
        parameters = _part(path / "log.txt", _logged_parameters)
    choices = about.get("choices")
    if choices is None:  # of an older run: what the command line chose
        choices = _part(directory.overrides, _chosen) or {}
    return Run(
        name=name,
        path=path,
        state=state,
        reason=reason,
        config=config,
        choices={group: str(option) for group, option in choices.items() if option is not None},
        about=about,
        results=results,
        best=best or {},
        clock=clock,
        parameters=parameters,
    )


def read_config(path: Path) -> dict[str, str]:
    """The leaves of a YAML mapping by their dotted keys, each value as it is shown.

    Top-level keys are read one by one, and one that looks the same in the next file, but for its
    run directory, is not read again: most of a thousand configurations is.

    Raises:
        yaml.YAMLError, ValueError: it is not one.
        OSError: it cannot be read.
    """
    text = path.read_text(encoding="utf-8")
    place = re.search(r"^  run_dir: (/\S+/\S+)$", text, flags=re.MULTILINE)
    if place is not None:
        text = text.replace(place[1], PLACE)
    found: dict[str, str] = {}
    try:
        for part in re.split(r"^(?=[^\s#-])", text, flags=re.MULTILINE):
            found.update(_leaves_of(part))
    except (yaml.YAMLError, ValueError):  # written by hand, in a style that has no such parts
        found = dict(_leaves_of(text))
    if place is not None:
        for key, value in found.items():
            if PLACE in value:
                found[key] = value.replace(PLACE, place[1])
    return found


@cache
def _leaves_of(text: str) -> tuple[tuple[str, str], ...]:
    content = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    if content in (None, {}):
        return ()
    if not isinstance(content, dict):
        raise ValueError("no mapping")
    return tuple((".".join(path), shown(value)) for path, value in leaves(content))


def shown(value: Any) -> str:
    """A value as one would write it on the command line."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return f"[{', '.join(map(shown, value))}]"
    return json.dumps(value, default=str)


@cache
def _matters(key: str) -> bool:
    return not within(key, (*NO_MATTER, *SCORED_ON))


def _settings(config: Mapping[str, str], about: Mapping[str, Any]) -> dict[str, str]:
    found = {key: value for key, value in config.items() if _matters(key)}
    git, corpus = about.get("git"), about.get("corpus") or {}
    if about.get("code"):
        found[CODE] = str(about["code"])[:8]
    elif git:  # of an older run, for which code that was not committed is all the same
        found[CODE] = str(git.get("commit"))[:7] + ("+" if git.get("dirty") else "")
    if "train" in corpus:
        found[CORPUS] = str(corpus["train"])[:8]
    return found


def _part(path: Path, read: Any) -> Any:
    """What `read` finds in a file; None where there is none.

    Raises:
        Skip: it is damaged.
    """
    try:
        return read(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise Skip(f"{path.name} cannot be read ({error.strerror})") from error
    except (ValueError, yaml.YAMLError, csv.Error, KeyError, TypeError, AttributeError) as error:
        raise Skip(f"{path.name} is damaged") from error


def _expect_mappings(node: Mapping[str, Any], keys: Iterable[str], file: str) -> None:
    for key in keys:
        if not isinstance(node.get(key) or {}, dict):
            raise Skip(f"{file} is damaged")


def _json(path: Path) -> dict[str, Any]:
    content = json.loads(path.read_bytes())
    if not isinstance(content, dict):
        raise ValueError
    return content


def _best_row(path: Path, monitor: str, sign: int) -> dict[str, float]:
    """The numbers of the validation that chose best.ckpt: the first of the best."""
    columns, rows = read_rows(path)
    if monitor not in columns:
        return {}
    at = columns.index(monitor)
    scored = [(float(row[at]), row) for row in rows if row[at]]
    scored = [each for each in scored if math.isfinite(each[0])]
    if not scored:
        return {}
    _, row = max(scored, key=lambda each: sign * each[0])
    return {name: float(text) for name, text in zip(columns, row, strict=True) if text}


def _last_row(path: Path) -> tuple[int, int, float, float] | None:
    for line in reversed(_end(path, 300).splitlines(keepends=True)):
        cells = line.split(",")
        if line.endswith("\n") and len(cells) == 4 and cells[0].isdigit():
            return int(cells[0]), int(cells[1]), float(cells[2]), float(cells[3])
    return None


def _logged_parameters(path: Path) -> int | None:
    with path.open(encoding="utf-8", errors="replace") as file:
        found = re.search(r": ([\d,]+) parameters, ", file.read(10_000))
    return int(found[1].replace(",", "")) if found else None


def _chosen(path: Path) -> dict[str, str]:
    """`group=option` words of a command line."""
    words = yaml.load(path.read_text(encoding="utf-8"), yaml.SafeLoader) or []
    return dict(re.findall(r"^\+*([\w/@]+)=([\w-]+)$", "\n".join(map(str, words)), re.MULTILINE))


def _state(directory: RunDirectory, results: Mapping[str, Any]) -> tuple[State, str]:
    if directory.is_being_written:
        return "running", ""
    if "updates" in results:
        return "finished", ""
    try:
        end = _end(directory.path / "log.txt", 65_536)
    except OSError:
        return "crashed", "it has no log"
    entries = re.findall(r"^\S+ \S+ (INFO|WARNING|ERROR) (\S+): (.*)$", end, re.MULTILINE)
    level, logger, message = entries[-1] if entries else ("", "", "")
    if (level, logger) != ("ERROR", "zhen"):
        return "crashed", "its log ends without a word: killed, or the machine went down"
    kind, _, text = message.partition(": ")
    if kind == "Stopped":
        return "interrupted", _signal_name(text)
    if kind in ("KeyboardInterrupt", "SystemExit"):
        return "interrupted", kind
    return "crashed", message


@cache
def _pruned(sweep: Path) -> frozenset[Path]:
    """The jobs of a sweep that Optuna stopped, by what `sweep.yaml` says."""
    try:
        found = Sweep.read(sweep)
        return frozenset(found.run(n).path for n, how in found.ended.items() if how == "pruned")
    except (UserError, AttributeError):  # none of a sweep, or its jobs were copied without it
        return frozenset()


def _signal_name(status: str) -> str:
    try:
        return signal.Signals(int(status) - 128).name
    except ValueError:
        return status


def _end(path: Path, size: int) -> str:
    with path.open("rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - size))
        return file.read().decode("utf-8", errors="replace")
