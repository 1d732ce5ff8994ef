"""A sweep: many runs from one command line, and the directory that says which.

runs/<name>/<sweep id>/             sweep.yaml: what was asked, and the words of each job
                                    for Optuna also study.db and importances.json
runs/<name>/<sweep id>-<number>/    a job's run, numbered from 1
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hydra.core.override_parser.types import Glob
from omegaconf import DictConfig, OmegaConf

from zhen.compose import groups, read_word
from zhen.config import checked, resolve
from zhen.errors import UserError
from zhen.files import make_directory, read_rows, write_atomic
from zhen.runs import identity
from zhen.runs.directory import RunDirectory


def grid(words: Sequence[str]) -> list[list[str]]:
    """The words of each job: every combination of the values that `words` list.

    `model=tiny,small seed=range(0,2)` is four jobs; the last word changes fastest.

    Args:
        words: of a command line, in the grammar of Hydra's overrides.

    Raises:
        UserError: a word cannot be read, or names no values that can be listed.
    """
    return [list(job) for job in itertools.product(*map(values, words))]


def values(word: str) -> list[str]:
    """The word once with each of its values; as it is, if it has but one.

    Raises:
        UserError: it cannot be read, or its values cannot be listed.
    """
    override = read_word(word)
    key = override.get_key_element()
    value: Any = override.value()  # Hydra's annotation leaves Glob out
    if not override.is_sweep_override():
        return [word]
    if override.is_interval_sweep():
        raise UserError(
            f"`{word}` is an interval, which only sweep=optuna can search; a grid takes values, as"
            f" {key}=1,2 or {key}=range(1,4)"
        )
    if isinstance(value, Glob):
        found = value.filter(groups("train").get(key, []))
    else:
        found = list(override.sweep_string_iterator())
    if not found:
        raise UserError(f"`{word}` matches no value: there would be no job")
    return [f"{key}={each}" for each in found]


@dataclass(frozen=True)
class Plan:
    """Jobs whose words were checked as `zhen.train` checks them.

    Attributes:
        folder: `runs/<name>`, where all of them and the sweep's own directory lie.
        cfgs: the configuration of each.
    """

    folder: Path
    cfgs: list[DictConfig]

    @classmethod
    def check(cls, jobs: Sequence[Sequence[str]]) -> "Plan":
        """Compose and check the words of every job, before the first one begins.

        Raises:
            UserError: a job would be refused, would lie elsewhere, or is the same as another.
        """
        plan: Plan | None = None
        seen: dict[str, str] = {}
        for words in jobs:
            cfg, shown = checked("train", words), " ".join(words)
            if cfg.resume is not None:
                raise UserError(
                    "`ckpt` or `resume`: each job of a sweep begins a run of its own;"
                    " init_from=CKPT lets all begin with the weights of one checkpoint"
                )
            home = Path(cfg.paths.run_dir)
            plan = plan or cls(home.parent, [])
            plan.cfgs.append(cfg)
            if home != plan.folder / identity.run_id():
                raise UserError(
                    f"the runs of a sweep lie side by side in one folder, but those of `{shown}`"
                    f" would be {home}, and others in {plan.folder}: give one name=NAME"
                )
            same = seen.setdefault(OmegaConf.to_yaml(OmegaConf.create(resolve(cfg))), shown)
            if same is not shown:
                raise UserError(f"`{same}` and `{shown}` are the same run: take one of them out")
        assert plan is not None
        return plan


@dataclass
class Sweep:
    """What a sweep's own directory holds.

    Attributes:
        path: `runs/<name>/<sweep id>`.
        settings: words of the sweep's own configuration, such as `sweep=optuna`.
        words: the others, of training, as they were asked.
        jobs: the words of each job; Optuna adds to them as it goes.
        ended: how those ended that are not finished: failed, or pruned by Optuna.
    """

    path: Path
    settings: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    jobs: list[list[str]] = field(default_factory=list)
    ended: dict[int, str] = field(default_factory=dict)

    @classmethod
    def begin(cls, folder: Path, settings: list[str], words: list[str]) -> "Sweep":
        """The sweep that this process is, by ZHEN_RUN_ID, the Slurm job or the time.

        Raises:
            UserError: there is another of this id, or the directory cannot be made.
        """
        identity.claim(lambda: folder / identity.run_id())
        path = folder / identity.run_id()
        if not cls.file(path).exists():
            make_directory(path, key="paths.runs")
            return cls(path, settings, words)
        before = cls.read(path)
        if before.words != words:
            raise UserError(
                f"{path} is a sweep of other words ({' '.join(before.words)}): go on with it by"
                f" resume={path}, or choose another ZHEN_RUN_ID or name"
            )
        before.settings = settings
        return before

    @classmethod
    def find(cls, resume: str, runs: Path) -> "Sweep":
        """The sweep that `resume` names: a directory, or `last`, the newest one below `runs`.

        Raises:
            UserError: there is none.
        """
        if resume != "last":
            path = Path(resume).absolute()
            if not cls.file(path).is_file():
                raise UserError(f"resume={resume} is no directory of a sweep; give one, or last")
            return cls.read(path)
        found = list(runs.glob("*/*/sweep.yaml"))
        if not found:
            raise UserError(f"resume=last: there is no sweep below {runs}; begin one without it")
        return cls.read(max(found, key=lambda file: file.stat().st_mtime_ns).parent)

    @classmethod
    def read(cls, path: Path) -> "Sweep":
        """The sweep in `path`.

        Raises:
            UserError: its file is damaged.
        """
        try:
            content: Any = OmegaConf.to_container(OmegaConf.load(cls.file(path)))
            return cls(path, **content)
        except Exception as error:  # whatever a foreign or damaged file has in it
            raise UserError(f"{cls.file(path)} is damaged: restore it") from error

    def write(self) -> None:
        """Write `sweep.yaml`."""
        names = ("settings", "words", "jobs", "ended")
        content = {name: getattr(self, name) for name in names}
        write_atomic(self.file(self.path), OmegaConf.to_yaml(OmegaConf.create(content)))

    @staticmethod
    def file(path: Path) -> Path:
        return path / "sweep.yaml"

    @property
    def id(self) -> str:
        return self.path.name

    def run(self, number: int) -> RunDirectory:
        """The run of job `number`, counted from 1."""
        return RunDirectory(self.path.with_name(f"{self.id}-{number}"))

    def environment(self, number: int) -> dict[str, str]:
        """What tells the process of job `number` who it is: see `zhen.runs.identity`."""
        return {identity.VARIABLE: self.run(number).path.name, identity.SWEEP: self.id}

    def state(self, number: int) -> str:
        """finished, failed, pruned, stopped (begun, and perhaps running elsewhere) or waiting."""
        run = self.run(number)
        if run.results.exists():
            return "finished"
        return self.ended.get(number) or ("stopped" if run.config.exists() else "waiting")


@dataclass(frozen=True)
class Goal:
    """The score by which jobs are compared: what `callbacks.checkpoint` goes by."""

    monitor: str
    mode: str

    @classmethod
    def of(cls, cfg: DictConfig) -> "Goal | None":
        """The goal of a configuration; None where nothing says what is best, or writes it down."""
        keeper = OmegaConf.select(cfg, "callbacks.checkpoint")
        if not keeper or not keeper.monitor or not OmegaConf.select(cfg, "logger.csv"):
            return None
        return cls(keeper.monitor, keeper.get("mode", "max"))

    def scores(self, run: RunDirectory) -> list[float]:
        """The score at each validation so far; training may be writing the file."""
        try:
            columns, rows = read_rows(run.path / "metrics.csv")
        except OSError:
            return []
        if self.monitor not in columns:
            return []
        at = columns.index(self.monitor)
        return [float(row[at]) for row in rows if row[at]]

    def best(self, run: RunDirectory) -> float | None:
        """The best score of a run; None where it has none."""
        found = [score for score in self.scores(run) if not math.isnan(score)]
        return (max if self.mode == "max" else min)(found, default=None)
