"""Make a run again, from the configuration that it stored, and compare the test scores.

    python -m zhen.reproduce run=runs/phrasebook/RUN

Reads configs/reproduce.yaml; writes a new run directory. Exits with status 1 where code, packages
or pairs are not those of the run, unless force=true, and where the scores are others.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from omegaconf import DictConfig

from zhen.config import run_command
from zhen.errors import UserError

if TYPE_CHECKING:
    from zhen.runs.directory import RunDirectory


def reproduce(cfg: DictConfig) -> None:
    """Train as `cfg.run` was trained, and compare.

    Raises:
        UserError: something is not as it was, or the scores differ.
    """
    from zhen.runs.reproduction import (
        differences,
        other_machine,
        other_pairs,
        other_scores,
        prepare,
        provenance_of,
        scores,
        translations,
    )
    from zhen.runs.resume import find_run

    run, _ = find_run(cfg.run, Path(cfg.paths.runs), key="run")
    about = provenance_of(run)
    found = differences(run, about)
    if found and not cfg.force:
        raise UserError(
            f"{run.path} cannot be made again here: {'; '.join(found)}; or go on all the same with"
            " force=true"
        )
    for each in found:
        print(f"warning: {each}", file=sys.stderr)
    # The training reads the pairs, and refuses others than those that it is told of.
    expected = {**about, "corpus": {}} if cfg.force else about
    new = prepare(run, expected, {"runs": cfg.paths.runs, "cache": cfg.paths.cache})
    status = train(new, about.get("threads"))
    if status:
        forget(new)
        raise SystemExit(status if status > 0 else 128 - status)
    for split in other_pairs(about["corpus"], provenance_of(new)["corpus"]):
        print(f"warning: the pairs of {split} are not those of {run.path}", file=sys.stderr)
    before, now = scores(run), scores(new)
    if before is None or now is None:
        untested = run if before is None else new
        print(f"\n{untested.path} was not tested, so there are no scores to compare")
        return
    others = list(other_scores(before, now))
    if not others:
        alike = translations(run) == translations(new)
        print(f"\nThe same scores {'and translations ' if alike else ''}as {run.path}")
        return
    for part, name, one, other in others:
        print(f"{part} {name}: {one} in {run.path}, {other} in {new.path}")
    machine = "; ".join(other_machine(about, provenance_of(new)))
    raise UserError(
        f"{len(others)} scores differ between {run.path} and {new.path}"
        + (f" (so do {machine})" if machine else "")
    )


def train(run: RunDirectory, threads: int | None) -> int:
    """Begin the run in a process of its own, and wait for it.

    Args:
        threads: that PyTorch is to use, as the bits of a sum depend on them; None: not known.

    Returns:
        Its exit status.
    """
    from zhen.runs.relay import Relay
    from zhen.runs.resume import CHOSEN

    environment = {**os.environ, CHOSEN: str(run.path)}
    if threads is not None:
        environment["OMP_NUM_THREADS"] = str(threads)
    # A run without a checkpoint goes on with its first update.
    command = [sys.executable, "-m", "zhen.train", "resume=last"]
    with Relay() as relay:
        return relay.start(command, environment).wait()


def forget(run: RunDirectory) -> None:
    """Remove the directory of a run that was refused before it wrote anything itself."""
    if not run.log.exists():
        for file in (run.config, run.overrides, run.provenance):
            file.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            run.path.rmdir()


if __name__ == "__main__":
    run_command(reproduce, config_name="reproduce")
