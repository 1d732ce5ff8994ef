"""Go on with a run: which one, from which file, and with which settings."""

import contextlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from zhen.compose import key_of
from zhen.data import Tokenizer
from zhen.errors import UserError, one_line
from zhen.runs.directory import RunDirectory, is_main
from zhen.runs.identity import VARIABLE
from zhen.schema import check, leaves, resolve, show, within
from zhen.translator import read_checkpoint

# `last` is looked up once: the other ranks, which Lightning starts with the same command line,
# might already find another run.
CHOSEN = "ZHEN_RESUME"

# What may differ from the run's own configuration: how long it trains, on what, what it shows and
# how it is tested. Data may have moved; that it is the same is checked by its fingerprint.
MAY_CHANGE = (
    "trainer.max_steps",
    "trainer.max_epochs",
    "trainer.max_time",
    "trainer.accelerator",
    "trainer.devices",
    "trainer.num_nodes",
    "trainer.strategy",
    "trainer.accumulate_grad_batches",
    "trainer.log_every_n_steps",
    "callbacks.checkpoint.every_n_updates",
    "callbacks.checkpoint.keep_every_n_updates",
    "callbacks.checkpoint.every_minutes",
    "callbacks.progress",
    "callbacks.samples",
    "logger",
    "decode",
    "data.train",
    "data.val",
    "data.test",
    "data.cache_dir",
    "data.num_workers",
    "nonfinite_loss",
    "compile",
    "paths",
)
# Not part of what a run is.
NO_SETTING = ("resume", "ckpt")
# What is written down of each time that a run goes on.
AGAIN = ("started", "command", "directory", "git", "code", "host", "device", "cpu", "threads")


@dataclass(frozen=True)
class Resumed:
    """A run that goes on."""

    run: RunDirectory
    cfg: DictConfig
    changed: dict[str, str]  # settings that differ now: before and after
    checkpoint: Path | None  # None: it was ended before its first one, and begins anew
    update: int = 0
    tokenizer: Tokenizer | None = None
    fingerprint: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_finished(self) -> bool:
        """Whether it is trained and tested, and no more is asked of it."""
        try:
            tested = json.loads(self.run.results.read_text(encoding="utf-8"))["updates"]
        except (OSError, ValueError, KeyError):
            return False
        longer = any(key.startswith("trainer.max_") for key in self.changed)
        return bool(tested == self.update and not longer)

    def say_finished(self) -> None:
        """On rank 0, say so, and how the run could be trained further."""
        if is_main():
            print(
                f"{self.run.path} is finished, and tested after its {self.update:,} updates: to"
                " train it further, raise trainer.max_steps or trainer.max_epochs"
            )

    def what_changes(self) -> str:
        """The settings that differ now, for the log."""
        return "".join(f"; {key}: {change}" for key, change in self.changed.items())

    def check_corpus(self, fingerprint: Mapping[str, str]) -> None:
        """Refuse pairs other than those that the run was begun with.

        Raises:
            UserError: names the split.
        """
        for split, found in fingerprint.items():
            if self.fingerprint.get(split, found) != found:
                key = split if split in ("train", "val", "test") else f"test.{split}"
                instead = ""
                if self.checkpoint is not None:
                    instead = f" (with the weights of this one: init_from={self.checkpoint})"
                raise UserError(
                    f"data.{key}: the pairs are not those that {self.run.path} was begun with, and"
                    f" it cannot go on with others: restore them, or begin a new run{instead}"
                )

    def write_settings(self, overrides: Sequence[str], about: Mapping[str, Any]) -> None:
        """Add to `config.yaml`, `overrides.yaml` and `provenance.json` that the run goes on.

        Args:
            overrides: of the command line of this process.
            about: its provenance.
        """
        kept = [each for each in overrides if key_of(each) not in NO_SETTING]
        first = dict(about)
        with contextlib.suppress(OSError, ValueError):
            known = json.loads(self.run.provenance.read_text(encoding="utf-8"))
            if self.checkpoint is None:  # it begins anew
                first |= {name: known[name] for name in ("reproduces",) if name in known}
            else:
                again = {name: about[name] for name in AGAIN}
                again = {"update": self.update, "changed": self.changed, **again}
                first = {**known, "resumed": [*known.get("resumed", []), again]}
        self.run.write_settings(self.cfg, kept, first)
        self.run.results.unlink(missing_ok=True)  # those of a shorter training


def find(cfg: DictConfig, overrides: Sequence[str]) -> Resumed | None:
    """The run that `cfg.resume` names, with its own configuration; None for a new run.

    Args:
        cfg: as composed from the command line. `resume` is `last`, the newest run (of `name`, where
            the command line chooses one), `auto`, the one that this job has begun, if it has, a run
            directory, or a checkpoint in one.
        overrides: of the command line; each must be as in that run, or may change.

    Raises:
        UserError: there is no such run, its checkpoint cannot be read, or an override would make
            it another one.
    """
    if cfg.resume is None:
        return None
    given = {key_of(each) for each in overrides}
    if set(NO_SETTING) <= given:
        raise UserError("resume and ckpt are both given, and are the same: take one of them out")
    if cfg.resume == "auto":
        run, checkpoint = RunDirectory(Path(cfg.paths.run_dir)), None
        if not run.config.exists():
            return None
        given = {""}  # the same command again, so that all of it must be as before
    elif "init_from" in given:
        raise UserError("resume and init_from are both given: a run that goes on has its weights")
    else:
        name = cfg.name if given & {"name", "experiment", "debug"} else "*"
        run, checkpoint = find_run(os.environ.get(CHOSEN, cfg.resume), Path(cfg.paths.runs), name)
        os.environ[CHOSEN] = str(checkpoint or run.path)
    os.environ[VARIABLE] = run.path.name
    cfg.paths.run_dir = str(run.path)
    cfg, changed = combined(stored_configuration(run), resolve(cfg), given)
    check(cfg)
    if checkpoint is None:
        folder = OmegaConf.select(cfg, "callbacks.checkpoint.dirpath") or run.checkpoints
        checkpoint = Path(folder, run.last.name)
    if not checkpoint.exists():
        return Resumed(run, cfg, changed, None, fingerprint=fingerprint_to_reproduce(run))
    content = read_checkpoint(checkpoint, key="resume")
    try:
        content["resume"]["random"]  # what Lightning's own checkpoints lack
        return Resumed(
            run,
            cfg,
            changed,
            checkpoint,
            content["global_step"],
            Tokenizer.from_json(content["zhen"]["tokenizer"]),
            content["TranslationData"]["fingerprint"],
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise UserError(
            f"resume: {checkpoint} holds no state to go on from ({type(error).__name__}:"
            f" {one_line(error)}); give one that `make train` of zhen {version('zhen')} wrote"
        ) from error


def find_run(
    resume: str, runs: Path, name: str = "*", key: str = "resume"
) -> tuple[RunDirectory, Path | None]:
    """The run, and the checkpoint where `resume` names one.

    Args:
        resume: `last`, or a path.
        runs: where the runs are.
        name: of the runs among which is the last one, `*` for all.
        key: the configuration key that `resume` comes from, for the message.

    Raises:
        UserError: there is none.
    """
    if resume == "last":
        found = [RunDirectory(path.parent) for path in runs.glob(f"{name}/*/config.yaml")]
        if not found:
            below = runs if name == "*" else runs / name
            begin = "begin one without resume" if key == "resume" else "train one first"
            raise UserError(f"{key}=last: there is no run below {below}; {begin}")
        # As for the newest checkpoint, a trial counts only where there is nothing else.
        return max(found, key=lambda run: (run.path.parent.name != "debug", _written(run))), None
    path = Path(resume).absolute()
    file = path if path.is_file() else None
    run = RunDirectory(path.parent if file else path)
    if not run.config.is_file():
        run = RunDirectory(run.path.parent)  # of `checkpoints` and what lies in it
    if not run.config.is_file():
        raise UserError(
            f"{key}={resume} is neither a run directory nor a checkpoint in one; give one, or last"
        )
    return run, file


def stored_configuration(run: RunDirectory, key: str = "resume") -> DictConfig:
    """The run's own configuration, its paths changed where the directory was moved.

    Args:
        run: it has a configuration.
        key: the configuration key that names the run, for the message.

    Raises:
        UserError: it cannot be read.
    """
    try:
        stored = OmegaConf.load(run.config)
        before = stored.paths.run_dir
        assert isinstance(stored, DictConfig) and isinstance(before, str)
    except Exception as error:  # whatever a foreign or damaged file has in it
        raise UserError(f"{key}: {run.config} is damaged: restore it") from error
    return OmegaConf.create(moved(OmegaConf.to_container(stored), before, run.path))


def moved(node: Any, before: str | Path, after: Path) -> Any:
    """A configuration's node in which the paths at and below `before` are at and below `after`."""
    if isinstance(node, dict):
        return {key: moved(value, before, after) for key, value in node.items()}
    if isinstance(node, list):
        return [moved(value, before, after) for value in node]
    if isinstance(node, str) and Path(node).is_relative_to(before):
        return str(after / Path(node).relative_to(before))
    return node


def fingerprint_to_reproduce(run: RunDirectory) -> dict[str, str]:
    """The pairs that `make reproduce` has asked for; empty for any other run."""
    try:
        about = json.loads(run.provenance.read_text(encoding="utf-8"))
        return dict(about["reproduces"]["corpus"])
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def combined(
    stored: DictConfig, now: Mapping[str, Any], given: set[str]
) -> tuple[DictConfig, dict[str, str]]:
    """The run's configuration with the settings that are asked for now, and what that changes.

    Raises:
        UserError: one of them may not change.
    """
    if given & {"experiment", "debug"}:  # they may set anything
        given = {""}
    if "paths.cache" in given:
        given = given | {"data.cache_dir"}
    before, after = dict(leaves(OmegaConf.to_container(stored))), dict(leaves(now))
    changed = {}
    for path in dict.fromkeys([*before, *after]):
        key = ".".join(path)
        same = path in before and path in after and before[path] == after[path]
        if same or key in NO_SETTING or not within(key, given):
            continue
        was, will_be = (show(part[path]) if path in part else "-" for part in (before, after))
        if not within(key, MAY_CHANGE):
            raise UserError(
                f"`{key}` is {will_be}, but the run was begun with {was} and can only go on so;"
                " take it out, or begin a new run (with the weights of this one: init_from=CKPT)"
            )
        changed[key] = f"{was} -> {will_be}"
        before.pop(path, None)
        if path in after:
            before[path] = after[path]
    node: dict[str, Any] = {}
    for (*parents, name), value in before.items():
        inner = node
        for parent in parents:
            inner = inner.setdefault(parent, {})
        inner[name] = value
    return OmegaConf.create(node), changed


def _written(run: RunDirectory) -> float:
    """When the run last wrote something."""
    files = (run.config, run.log)
    return max(file.stat().st_mtime for file in files if file.exists())
