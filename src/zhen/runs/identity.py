"""What a run is called: one name for all its ranks, and the same after a requeue."""

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from zhen.errors import UserError
from zhen.files import SAFE_NAME

VARIABLE = "ZHEN_RUN_ID"
SWEEP = "ZHEN_SWEEP"  # the id of the sweep that this run is a job of
_STARTED = time.strftime("%Y%m%d-%H%M%S")


def run_id() -> str:
    """ZHEN_RUN_ID, else the Slurm job's id, else the time this process started.

    Raises:
        UserError: ZHEN_RUN_ID would not be a directory's name.
    """
    given = os.environ.get(VARIABLE)
    if given and not SAFE_NAME.fullmatch(given):
        raise UserError(
            f"{VARIABLE} must be letters, digits, `.`, `_` and `-`, the first a letter or digit,"
            f" but is {given!r}"
        )
    return given or slurm_id(os.environ) or _STARTED


def slurm_id(environment: Mapping[str, str]) -> str | None:
    """The Slurm job, with the task of a job array; None outside Slurm.

    None in an interactive job too (the names that Lightning knows), since it can start many runs.
    """
    if environment.get("SLURM_JOB_NAME") in ("bash", "interactive"):
        return None
    task = environment.get("SLURM_ARRAY_TASK_ID")
    if task is not None and "SLURM_ARRAY_JOB_ID" in environment:
        return f"{environment['SLURM_ARRAY_JOB_ID']}_{task}"
    return environment.get("SLURM_JOB_ID")


@contextlib.contextmanager
def fixed() -> Iterator[None]:
    """Inside, a name that is given holds for this process and its children, in one variable."""
    before = os.environ.get(VARIABLE)
    given = before or slurm_id(os.environ)
    if given:
        os.environ[VARIABLE] = given
    try:
        yield
    finally:
        os.environ.pop(VARIABLE, None)
        if before is not None:
            os.environ[VARIABLE] = before


def claim(run_dir: Callable[[], Path], nodes: int = 1) -> Path | None:
    """Makes a directory for a run that is named by its start time, and exports that name.

    Two runs started in the same second get two directories. A run whose name was given (by
    ZHEN_RUN_ID or Slurm) may find its directory there. Of the ranks that torchrun starts, rank 0
    does it, and the others learn the name from it.

    Args:
        run_dir: the run's directory under the present `run_id`.
        nodes: machines that the run is to have.

    Returns:
        The new directory; None where the name was given.

    Raises:
        UserError: the directory cannot be made, or ranks have no common name.
    """
    if os.environ.get(VARIABLE):
        return None
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        return _claim_for_all(run_dir)
    variables = ("LOCAL_RANK", "NODE_RANK")
    if nodes > 1 or any(each in os.environ for each in variables) or _world_size() > 1:
        raise UserError(
            f"processes that are started one by one need a common run name: set {VARIABLE}, as"
            f" {VARIABLE}=my-run make train"
        )
    return _claim(run_dir)


def _world_size() -> int:
    return int(os.environ.get("WORLD_SIZE", "1"))


def _claim_for_all(run_dir: Callable[[], Path]) -> Path | None:
    """By rank 0, through the store in which torchrun lets its processes find each other."""
    from torch.distributed import TCPStore

    store = TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False)
    key = "zhen/run"
    made = None
    # After a restart by torchrun it is there: the same run.
    if os.environ["RANK"] == "0" and not store.check([key]):
        made = _claim(run_dir)
        store.set(key, os.environ[VARIABLE])
    os.environ[VARIABLE] = store.get(key).decode()
    return made


def _claim(run_dir: Callable[[], Path]) -> Path | None:
    previous, count = None, 1
    while True:
        os.environ[VARIABLE] = _STARTED if count == 1 else f"{_STARTED}-{count}"
        path = run_dir()
        if path == previous:  # a fixed `paths.run_dir`
            return None
        try:
            path.mkdir(parents=True)
            return path
        except FileExistsError:
            previous, count = path, count + 1
        except OSError as error:
            raise UserError(
                f"cannot make the run directory {path}: {error.strerror}; choose another with"
                " paths.runs=DIR"
            ) from error
