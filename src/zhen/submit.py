"""Submit a training to Slurm, or a sweep as one job array; returns at once.

    python -m zhen.submit cluster.partition=gpu model=base trainer=ddp trainer.devices=4

Reads configs/submit.yaml; leaves the batch script, `submit.sh`, in the run directory.
"""

import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from omegaconf import DictConfig

from zhen.compose import group_of
from zhen.config import build, checked, current_overrides, run_command
from zhen.errors import UserError, one_line
from zhen.runs.sweeps import Plan, Sweep, grid

OURS = ("cluster", "dry")  # keys that are not of zhen.train
GO_ON = ("resume", "ckpt")  # keys that the script gives anew


def submit(cfg: DictConfig, words: Sequence[str]) -> None:
    """Submit a training, or print its batch script; a sweep where `words` list values.

    Args:
        cfg: the configuration of the first job.
        words: the command line.

    Raises:
        UserError: zhen.train would refuse a job's words, or the job could never begin.
    """
    from zhen.runs import queue, slurm
    from zhen.runs.directory import RunDirectory
    from zhen.runs.parts import rehearse_start

    asked = build(cfg.cluster, "cluster")
    about_cluster = [word for word in words if group_of(word) == "cluster"]
    words = [word for word in words if group_of(word) not in OURS]
    trainings = grid(words)
    run_dir, again = Path(cfg.paths.run_dir), "resume=auto"
    many = len(trainings) > 1
    cfgs = Plan.check(trainings).cfgs if many else [checked("train", trainings[0])]
    shapes: dict[slurm.Shape, str] = {}
    for job, training in zip(trainings, cfgs, strict=True):
        before = rehearse_start(training, job)
        if before is None:
            RunDirectory.check_new(run_dir)
        elif before.is_finished:
            return before.say_finished()
        elif before.run.is_being_written:
            raise UserError(
                f"resume={training.resume}: {before.run.path} is being trained now: wait for its"
                " end, or stop it, and go on with it then"
            )
        elif before.checkpoint is not None and before.checkpoint.name != before.run.last.name:
            raise UserError(
                f"resume={training.resume}: a job that is started again would go back to this"
                f" checkpoint each time: give the run directory, resume={before.run.path}"
            )
        else:
            training, run_dir = before.cfg, before.run.path
            again = f"resume={_quoted(run_dir)}"
        shapes.setdefault(slurm.shape(training.trainer, asked), " ".join(job))
    if len(shapes) > 1:
        needs = " and ".join(f"`{each}` needs {shape}" for shape, each in shapes.items())
        raise UserError(
            f"the jobs of a sweep have as many nodes and processes each, but {needs}: submit them"
            " one after the other"
        )
    (shape,) = shapes
    text = slurm.script(
        asked,
        shape,
        jobs=[[word for word in job if group_of(word) not in GO_ON] for job in trainings],
        run_dir=run_dir,
        again=again,
    )
    if cfg.dry:
        print(text, end="")
        return
    if many and Sweep.file(run_dir).exists():
        raise UserError(f"{run_dir} holds a sweep already: choose another ZHEN_RUN_ID or name")
    queue.check_cluster(asked, shape)
    number = queue.enqueue(run_dir, text)
    if many:
        Sweep(run_dir, [], words, trainings).write()
    say(number, run_dir, shape, len(trainings), about_cluster)


def say(number: str, run_dir: Path, shape: object, jobs: int, about_cluster: Sequence[str]) -> None:
    """What was submitted, and what to type next."""
    again = f"{run_dir}{'-N' if jobs > 1 else ''}"
    array = f", {jobs} times" if jobs > 1 else ""
    log = "slurm-1.txt" if jobs > 1 else f"slurm-{number}.txt"
    where = f"{run_dir}-N, N from 1 to {jobs}" if jobs > 1 else run_dir
    print(
        f"Submitted job {number}: {shape}{array}"
        f"\nRun directory: {where}"
        "\n\nNext:"
        f"\n  follow:  squeue -j {number}"
        f"\n           tail -F {run_dir}/{log}"
        f"\n  cancel:  scancel {number}"
        f"\n  resume:  {shlex.join(['make', 'submit', f'resume={again}', *about_cluster])}"
    )


def _quoted(path: Path) -> str:
    """A path in the grammar of Hydra's overrides."""
    plain = re.fullmatch(r"[\w./-]+", str(path), re.ASCII)
    return str(path) if plain else "'{}'".format(str(path).replace("'", "\\'"))


def main() -> None:
    """Let Hydra compose the first job, since it takes no lists, and submit all of them."""
    words: list[str] | None = None
    if not any(word.startswith("-") for word in sys.argv[1:]):  # not --help, --cfg job
        words = sys.argv[1:]
        try:
            sys.argv[1:] = grid(words)[0]
        except UserError as error:
            sys.exit(f"error: {one_line(error)}")

    def submit_all(cfg: DictConfig) -> None:
        submit(cfg, current_overrides() if words is None else words)

    run_command(submit_all, config_name="submit")


if __name__ == "__main__":
    main()
