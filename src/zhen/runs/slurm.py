"""A training as a Slurm job: what it asks for, and its batch script.

Who does what: Slurm warns the processes of the training (`--signal`), these keep their state and
end with 128 + the signal's number (`zhen.training.signals`), and the batch script, which alone
knows of the job, requeues it. The run goes on in the same directory, since the script names it.
"""

import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from zhen.errors import UserError
from zhen.runs.identity import SWEEP

TIME = re.compile(r"(?:(?P<days>\d+)-)?(?P<clock>\d+(?::\d+){0,2})")
GPUS = re.compile(r"(?:[\w.-]+:)?(?P<number>\d+)")
RESOLUTION = 60  # seconds by which Slurm may warn too early


@dataclass(frozen=True, kw_only=True)
class Slurm:
    """What a job asks for; the options carry the names that `sbatch` gives them, or nearly.

    Args:
        time: of a job: minutes, or [D-]HH:MM:SS.
        nodes: machines; None: as the trainer has it.
        gpus: on each node, N or KIND:N; None: as the trainer needs.
        cpus: of each process.
        memory: on each node, as 64G.
        setup: shell lines before the training.
        options: more of sbatch's options.
        warning: seconds before the end at which the job is warned.
        max_requeues: starts again at most.
        at_once: tasks of a job array that run at the same time, at most.
        mail: an address that hears of the job's end.

    Raises:
        ValueError: a value is out of range, or the warning would come before the job.
    """

    time: int | str
    cpus: int
    warning: int
    max_requeues: int
    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    constraint: str | None = None
    nodes: int | None = None
    gpus: int | str | None = None
    memory: int | str | None = None
    setup: list[str] = field(default_factory=list)
    options: list[str] = field(default_factory=list)
    at_once: int | None = None
    mail: str | None = None

    def __post_init__(self) -> None:
        for name, least in {"cpus": 1, "warning": 1, "max_requeues": 0, "at_once": 1}.items():
            value = getattr(self, name)
            if value is not None and value < least:
                raise ValueError(f"`{name}` must be at least {least}, but is {value}")
        if self.warning > 65535:
            raise ValueError(f"`warning` must be at most 65535, but is {self.warning}")
        if self.gpus is not None and not GPUS.fullmatch(str(self.gpus)):
            raise ValueError(f"`gpus` must be N or KIND:N, as a100:4, but is {self.gpus!r}")
        if seconds(self.time) < self.warning + RESOLUTION:
            raise ValueError(
                f"`warning` is {self.warning} seconds, and may come {RESOLUTION} seconds early, but"
                f" `time`={self.time} is {seconds(self.time)} seconds, less than both together: a"
                " job would be warned as it starts; raise time or lower warning"
            )


@dataclass(frozen=True)
class Shape:
    """What a training is: so many processes on each of so many machines.

    Args:
        gpus: on each machine; None: the training uses none.
    """

    nodes: int
    processes: int
    gpus: int | None

    def __str__(self) -> str:
        return (
            f"{count(self.nodes, 'node')} x {count(self.processes, 'process')},"
            f" {count(self.gpus, 'GPU') + ' a node' if self.gpus else 'no GPU'}"
        )


def shape(trainer: Mapping[str, Any], slurm: Slurm) -> Shape:
    """What Slurm must give for this trainer.

    Args:
        trainer: its configuration.

    Raises:
        UserError: `slurm` asks for something else.
    """
    nodes, devices, accelerator = (trainer[k] for k in ("num_nodes", "devices", "accelerator"))
    if slurm.nodes not in (None, nodes):
        raise UserError(
            f"cluster.nodes={slurm.nodes}, but trainer.num_nodes={nodes}: let both be alike, or"
            " take cluster.nodes out"
        )
    given = None
    if slurm.gpus is not None:
        given = int(GPUS.fullmatch(str(slurm.gpus))["number"])  # type: ignore[index]
    every = str(devices) in ("-1", "auto")
    if accelerator == "cpu" or (accelerator == "auto" and not given):
        if given:
            raise UserError(
                f"cluster.gpus={slurm.gpus}, but trainer.accelerator=cpu uses none: take"
                " trainer=ddp or trainer=gpu, or take cluster.gpus out"
            )
        return Shape(nodes, 1 if every else _number(devices), None)
    # "Every GPU there is" are those that the job is given, one a node where nobody asked for more.
    processes = (given or 1) if every else _number(devices)
    if given not in (None, processes):
        raise UserError(
            f"cluster.gpus={slurm.gpus}, but trainer.devices={devices} starts"
            f" {count(processes, 'process')} on a node, each with one GPU: let both be alike"
        )
    return Shape(nodes, processes, processes)


def script(
    slurm: Slurm,
    shape: Shape,
    *,
    jobs: Sequence[Sequence[str]],
    run_dir: Path,
    again: str,
) -> str:
    """The batch script, for people to read and for `sbatch` to run.

    Args:
        jobs: the words that follow `zhen.train`, of one training or of each task of a job array.
        run_dir: of the run, or of the sweep, whose runs have its name and a number from 1.
        again: the word by which a training goes on when it is started again.
    """
    array = len(jobs) > 1
    asked = {
        "job-name": f"zhen-{run_dir.parent.name}",  # "bash" alone means something to Lightning
        "output": run_dir / f"slurm-%{'a' if array else 'j'}.txt",
        "open-mode": "append",
        "chdir": Path.cwd(),
        "array": array and f"1-{len(jobs)}{f'%{slurm.at_once}' if slurm.at_once else ''}",
        "partition": slurm.partition,
        "account": slurm.account,
        "qos": slurm.qos,
        "constraint": slurm.constraint,
        "time": slurm.time,
        "nodes": shape.nodes,
        "ntasks-per-node": shape.processes,
        "gpus-per-node": shape.gpus and (slurm.gpus or shape.gpus),
        "cpus-per-task": slurm.cpus,
        "mem": slurm.memory,
        "mail-user": slurm.mail,
        "mail-type": slurm.mail and "END,FAIL",
        "signal": f"USR1@{slurm.warning}",
    }
    lines = [f"--{key}={shlex.quote(str(value))}" for key, value in asked.items() if value]
    task = "-$SLURM_ARRAY_TASK_ID" if array else ""
    parts = {
        "options": "\n".join(f"#SBATCH {line}" for line in [*lines, "--requeue", *slurm.options]),
        "setup": "\n".join(["# cluster.setup", *slurm.setup, "\n"]) if slurm.setup else "",
        "run_id": f"{run_dir.name}{task}",
        "run_dir": f"{run_dir}{task}",
        "sweep": f'\nexport {SWEEP}="{run_dir.name}"' if array else "",
        "job": f"${'{SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID' if array else 'SLURM_JOB_ID'}",
        "words": _words(jobs),
        "cpus": slurm.cpus,
        "max_requeues": slurm.max_requeues,
        "python": shlex.quote(sys.executable),
        "again": shlex.quote(again),
    }
    return SCRIPT.format(**parts)


SCRIPT = """\
#!/bin/bash
# A training, by zhen.submit. It may be started many times, and goes on where it was.
{options}
set -e

restarts=${{SLURM_RESTART_COUNT:-0}}
if [ "$restarts" -gt {max_requeues} ]; then
    echo "error: started again $restarts times, more than cluster.max_requeues={max_requeues};" \
        "to go on: make submit resume={run_dir}" >&2
    exit 1
fi

{setup}# The run's name, the same for all its processes and at every start.
export ZHEN_RUN_ID="{run_id}"{sweep}
export OMP_NUM_THREADS={cpus}
{words}
# --wait: where a process ends, the others have five minutes: rank 0 may have to send the run to
# wandb. Where one fails they end by themselves, but not before they have met.
status=0
srun --cpus-per-task={cpus} --kill-on-bad-exit=0 --wait=300 \\
    {python} -m zhen.train "${{words[@]}}" {again} || status=$?

# 138: warned of the time limit (SIGUSR1); 143: preempted (SIGTERM). The state is kept. Whoever ends
# the whole job, as scancel does, ends this script as well, and a training that fails ends with 1.
if [ "$status" -eq 138 ] || [ "$status" -eq 143 ]; then
    if [ "{run_dir}/results.json" -nt "{run_dir}/submit.sh" ]; then  # it was about to end
        exit 0
    fi
    if [ "$restarts" -lt {max_requeues} ]; then
        echo "requeued, start $((restarts + 2))"
        exec scontrol requeue "{job}"
    fi
    echo "not requeued: cluster.max_requeues={max_requeues}; to go on:" \\
        "make submit resume={run_dir}" >&2
fi
exit "$status"
"""


def _words(jobs: Sequence[Sequence[str]]) -> str:
    """Lines of the script that set `words`, the settings of the training."""
    if len(jobs) == 1:
        return "\n".join(["words=(", *(f"    {shlex.quote(word)}" for word in jobs[0]), ")\n"])
    cases = [f"    {number}) words=({shlex.join(job)}) ;;" for number, job in enumerate(jobs, 1)]
    return "\n".join(['case "$SLURM_ARRAY_TASK_ID" in', *cases, "esac\n"])


def seconds(time: int | str) -> int:
    """A time limit, as Slurm writes them: minutes, M:S, H:M:S, D-H, D-H:M or D-H:M:S.

    Raises:
        ValueError: it is none.
    """
    match = TIME.fullmatch(str(time))
    if match is None:
        raise ValueError(f"`time` must be minutes, or [D-]HH:MM:SS, but is {time!r}")
    days, parts = match["days"], [int(part) for part in match["clock"].split(":")]
    if days is not None:  # hours come first
        hours, minutes, rest = [*parts, 0, 0][:3]
    elif len(parts) == 3:
        hours, minutes, rest = parts
    else:  # minutes do
        hours, (minutes, rest) = 0, [*parts, 0][:2]
    return int(days or 0) * 86400 + hours * 3600 + minutes * 60 + rest


def _number(devices: Any) -> int:
    """Processes on a machine.

    Raises:
        UserError: they are listed, but Slurm chooses which.
    """
    if isinstance(devices, Sequence) and not isinstance(devices, str):
        raise UserError(
            f"trainer.devices={list(devices)} names single devices, but Slurm chooses which: give"
            f" their number, trainer.devices={len(devices)}"
        )
    return int(devices)


def count(number: int, what: str) -> str:
    """`1 node`, `2 nodes`."""
    return f"{number} {what}{'' if number == 1 else 'es' if what.endswith('s') else 's'}"
