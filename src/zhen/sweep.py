"""Train many runs, one after another, and say which was best.

    python -m zhen.sweep model=tiny,small optimizer.lr=1e-3,2e-3

Words of `sweep`, `resume` and `paths` are for configs/sweep.yaml; all others are those of
`zhen.train`, with one value or several. Writes the runs and a directory of its own (see
`zhen.runs.sweeps`).
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from omegaconf import DictConfig

from zhen.compose import group_of
from zhen.config import build, checked, current_overrides, run_command
from zhen.errors import Stopped, UserError

if TYPE_CHECKING:
    from zhen.runs.search import Method
    from zhen.runs.sweeps import Goal, Sweep


def sweep(cfg: DictConfig, words: Sequence[str]) -> None:
    """Run the jobs that `words` ask for, or go on with a sweep that was stopped.

    Raises:
        UserError: a job's words are refused, before any job begins; or jobs failed, after all.
        Stopped: a signal ended the sweep, after the running job has kept its state.
    """
    from zhen.runs.identity import VARIABLE
    from zhen.runs.jobs import Jobs
    from zhen.runs.sweeps import Goal, Plan, Sweep

    settings = [each for each in current_overrides() if group_of(each) == "sweep"]
    record: Sweep | None = None
    if cfg.resume is not None:
        record = Sweep.find(cfg.resume, Path(cfg.paths.runs))
        refused = [word for word in words if group_of(word) != "paths"]
        if refused:
            raise UserError(f"`{refused[0]}`: a sweep goes on with its own words: take it out")
        os.environ[VARIABLE] = record.id
        record.settings = [*record.settings, *settings]
        cfg, words = checked("sweep", record.settings), record.words
    method: Method = build(cfg.sweep, "sweep")
    plan = Plan.check(method.samples(words))
    goal = Goal.of(plan.cfgs[0])
    if goal is None and method.searches:
        raise UserError(
            "sweep=optuna goes by `callbacks.checkpoint.monitor` as metrics.csv has it: leave"
            " callbacks.checkpoint and logger.csv in"
        )
    record = record or Sweep.begin(plan.folder, settings, list(words))
    if record.path.parent != plan.folder:
        raise UserError(f"{record.path} was moved here from {plan.folder}: move it back to go on")
    with Jobs(record) as jobs:
        method.run(record, jobs, goal)
    print_table(record, goal)
    if jobs.stopped:
        print(f"\nTo go on:  make sweep resume={record.path}")
        raise Stopped(jobs.stopped)
    if "failed" in record.ended.values():
        failed = [str(record.run(n).path) for n, how in record.ended.items() if how == "failed"]
        again = f"make sweep resume={record.path}"
        if method.searches:
            more = f"for more: {again} sweep=optuna sweep.n_trials=N, where these count"
        else:
            more = f"to try again what is not finished: {again}"
        raise UserError(
            f"{len(failed)} of {len(record.jobs)} jobs failed: {', '.join(failed)} (log.txt says"
            f" why); {more}"
        )


def print_table(record: Sweep, goal: Goal | None) -> None:
    """The jobs with what they differ in, how each ended and its score, and which was best."""
    numbers = range(1, len(record.jobs) + 1)
    scores = {n: goal.best(record.run(n)) if goal is not None else None for n in numbers}
    same = set.intersection(*map(set, record.jobs)) if len(record.jobs) > 1 else set()
    rows = [["job", "state", goal.monitor if goal is not None else "score", "words"]]
    for n in numbers:
        score = scores[n]
        words = " ".join(word for word in record.jobs[n - 1] if word not in same)
        rows.append([str(n), record.state(n), f"{score:.4g}" if score is not None else "-", words])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    print(f"\nThe sweep {record.path}")
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        print("  ".join(cells).rstrip())
    found = {n: score for n, score in scores.items() if score is not None}
    if found and goal is not None:
        best = (max if goal.mode == "max" else min)(found, key=lambda n: found[n])
        print(f"\nBest: {record.run(best).path}")
        print(f"To compare:  make compare RUNS={record.path}")
    if (shares := record.path / "importances.json").exists():
        pairs = json.loads(shares.read_text(encoding="utf-8")).items()
        if pairs:  # there are none where fewer than two jobs are finished
            print("Importance: " + ", ".join(f"{key} {share:.2f}" for key, share in pairs))


def _is_ours(argument: str) -> bool:
    """Whether it is for configs/sweep.yaml, or no word at all but an option of Hydra's."""
    is_word = argument[:1] != "-" and ("=" in argument or argument[:1] == "~")
    return not is_word or group_of(argument) in ("sweep", "resume", "paths")


def main() -> None:
    arguments = sys.argv[1:]
    ours = [each for each in arguments if _is_ours(each)]
    words = [each for each in arguments if each not in ours or group_of(each) == "paths"]

    def command(cfg: DictConfig) -> None:
        sweep(cfg, words)

    sys.argv = [sys.argv[0], *ours]
    run_command(command, config_name="sweep")


if __name__ == "__main__":
    main()
