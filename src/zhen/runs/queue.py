"""Slurm's queue: whether a job could ever run, and the way into it."""

import math
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from zhen.errors import UserError, did_you_mean, one_line
from zhen.files import make_directory, write_atomic
from zhen.runs.slurm import TIME, Shape, Slurm, count, seconds

PATIENCE = 30  # seconds; sbatch itself waits for minutes where the queue is full


def check_cluster(slurm: Slurm, shape: Shape) -> None:
    """Refuse what would wait in the queue for ever, by what `sinfo` tells.

    Raises:
        UserError: there is no such partition, or none of its nodes will do.
    """
    partitions = _partitions()
    if slurm.partition is not None:
        names = slurm.partition.split(",")
    else:
        names = [name for name, nodes in partitions.items() if nodes[0].is_default]
    for name in names:
        if name not in partitions:
            raise UserError(
                f"cluster.partition={name}: there is no such partition"
                f"{did_you_mean(name, partitions) or ';'} there are {', '.join(partitions)}"
            )
    if not names:  # then sbatch says so
        return
    limit = max(partitions[name][0].limit for name in names)
    where = f"partition {' or '.join(names)}"
    if seconds(slurm.time) > limit:
        raise UserError(
            f"cluster.time={slurm.time} is more than {where} allows, {limit / 3600:g} hours: take"
            " less, and the run goes on in a job after that"
        )
    cpus, gpus = shape.processes * slurm.cpus, shape.gpus or 0
    fit = [
        sum(each.cpus >= cpus and each.gpus >= gpus for each in partitions[name]) for name in names
    ]
    if max(fit) < shape.nodes:
        raise UserError(
            f"{where} has {max(fit)} nodes with the {cpus} CPUs and {count(gpus, 'GPU')} that the"
            f" run needs on each of {shape.nodes}: take another partition, fewer cluster.cpus or"
            " trainer.devices"
        )


@dataclass(frozen=True)
class _Node:
    """A node as `sinfo` shows it, in one of its partitions."""

    is_default: bool
    limit: float
    cpus: int
    gpus: int


def _partitions() -> dict[str, list[_Node]]:
    shown = _ask("sinfo", "--noheader", "--Node", "--format=%P|%l|%c|%G").splitlines()
    found: dict[str, list[_Node]] = {}
    for line in shown:
        name, limit, cpus, gres = line.split("|", 3)
        gpus = sum(map(int, re.findall(r"gpu(?::[\w.-]+)?:(\d+)", gres)))
        infinite = not TIME.fullmatch(limit)
        node = _Node(name.endswith("*"), math.inf if infinite else seconds(limit), int(cpus), gpus)
        found.setdefault(name.rstrip("*"), []).append(node)
    return found


def enqueue(run_dir: Path, text: str) -> str:
    """Submit a batch script, kept as `submit.sh` in the run directory; returns the job's number.

    Raises:
        UserError: Slurm refuses it, or the queue is full; nothing is left of it.
    """
    path = make_directory(run_dir, key="paths.runs") / "submit.sh"
    before = path.read_text(encoding="utf-8") if path.exists() else None
    write_atomic(path, text)
    try:
        return _ask("sbatch", "--parsable", str(path)).strip().partition(";")[0]
    except UserError:
        if before is None:
            path.unlink()
        else:
            write_atomic(path, before)
        raise


def _ask(program: str, *arguments: str) -> str:
    """What one of Slurm's commands says.

    Raises:
        UserError: it fails, does not answer, or is not there.
    """
    # sbatch hands the environment on to the job, where what we noted in it means nothing.
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ZHEN_")}
    line = [program, *arguments]
    try:
        done = subprocess.run(
            line, env=kept, capture_output=True, text=True, timeout=PATIENCE, check=True
        )
    except FileNotFoundError:
        raise UserError(
            f"{program} is not here: submit from a login node of a Slurm cluster (DRY=1 prints the"
            " batch script anywhere)"
        ) from None
    except subprocess.TimeoutExpired as error:
        said = error.stderr if isinstance(error.stderr, str) else (error.stderr or b"").decode()
        raise UserError(
            f"{program} has no answer after {PATIENCE} seconds ({one_line(said) or 'no word'}): the"
            " queue is full, or Slurm is down; try again later"
        ) from None
    except subprocess.CalledProcessError as error:
        where = (
            "; is this a login node of a Slurm cluster, or SLURM_CONF that of scripts/slurm_dev.sh?"
            " (DRY=1 prints the batch script anywhere)"
        )
        raise UserError(
            f"{program}: {_plain(program, error.stderr)}{where if program == 'sinfo' else ''}"
        ) from None
    return done.stdout


def _plain(program: str, text: str) -> str:
    """What a command of Slurm complains of, without its own name before each line."""
    return one_line(re.sub(rf"(?m)^{program}: (error: |fatal: )*", "", text))
