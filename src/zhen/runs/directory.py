"""What is in a run directory, and how it is written.

    runs/<name>/<time or job id>/
        config.yaml      the resolved configuration    overrides.yaml   what the command line asked
        provenance.json  where the run came from       uncommitted.patch  what git had not
        log.txt, log.R.txt  by rank 0, R
        checkpoints/     best.ckpt and last.ckpt       tokenizer.json   the vocabulary
        metrics.csv      numbers by update             wandb/           the same, and more
        clock.csv        tokens and time by update     tensorboard/     the same, if asked for
        test.*.src .hyp .ref   the test sentences      results.json     scores of the test
        attention.html   what the heads look at        attention.png    the same at a glance
        submit.sh        the batch script              slurm-*.txt      what the job printed

A whole file appears complete or not at all: it is written aside, then renamed.
"""

import contextlib
import errno
import fcntl
import logging
import os
import struct
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from omegaconf import DictConfig, OmegaConf

from zhen.errors import UserError
from zhen.files import make_directory, write_atomic, write_json
from zhen.schema import resolve

# Lightning's loggers do not pass their messages on to the root logger.
_LOGGERS = ("", "lightning.pytorch", "lightning.fabric")
# How many ranks a machine has, for them to know their own where Lightning starts them.
DEVICES = "ZHEN_DEVICES"


@dataclass(frozen=True)
class RunDirectory:
    """The files of one run, by name."""

    path: Path

    @classmethod
    def create(cls, path: str | Path) -> "RunDirectory":
        """Makes the directory; it may exist, since ranks share it and a run may go on in it.

        Raises:
            UserError: it cannot be made.
        """
        run = cls(Path(path))
        make_directory(run.checkpoints, key="paths.runs")
        return run

    @staticmethod
    def check_new(path: str | Path) -> None:
        """On rank 0, which is the first to write there, refuse to begin a run where one is.

        Raises:
            UserError: says how to go on with it.
        """
        if is_main() and RunDirectory(Path(path)).config.exists():
            raise UserError(
                f"{path} holds a run already: go on with it by resume=auto, or choose another"
                " ZHEN_RUN_ID or name"
            )

    def write_settings(
        self, cfg: DictConfig, overrides: Sequence[str], about: Mapping[str, Any]
    ) -> None:
        """Write `config.yaml` and `provenance.json`, and add to `overrides.yaml`.

        Args:
            cfg: the configuration, stored with its interpolations resolved.
            overrides: `zhen.config.current_overrides()`.
            about: `zhen.runs.provenance.provenance(...)`.

        Raises:
            UserError: the directory cannot be written to.
        """
        before: Any = OmegaConf.load(self.overrides) if self.overrides.exists() else []
        write_atomic(self.config, OmegaConf.to_yaml(OmegaConf.create(resolve(cfg))))
        write_atomic(self.overrides, OmegaConf.to_yaml([*before, *overrides]))
        write_json(self.provenance, about)

    @property
    def config(self) -> Path:
        return self.path / "config.yaml"

    @property
    def overrides(self) -> Path:
        return self.path / "overrides.yaml"

    @property
    def provenance(self) -> Path:
        return self.path / "provenance.json"

    @property
    def patch(self) -> Path:
        """Of a run whose code was not all committed."""
        return self.path / "uncommitted.patch"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def best(self) -> Path:
        return self.checkpoints / "best.ckpt"

    @property
    def last(self) -> Path:
        return self.checkpoints / "last.ckpt"

    @property
    def tokenizer(self) -> Path:
        return self.path / "tokenizer.json"

    @property
    def results(self) -> Path:
        return self.path / "results.json"

    @property
    def log(self) -> Path:
        """`log.txt`; another rank R has `log.R.txt`."""
        return self.path / ("log.txt" if is_main() else f"log.{rank()}.txt")

    @contextlib.contextmanager
    def logging(self) -> Iterator[None]:
        """Inside, what is logged goes to `log.txt`, and on rank 0 to stderr too.

        An exception that leaves the block is in `log.txt`, an error with its traceback.

        Raises:
            UserError: another process is inside, such as the run that is to go on.
        """
        file = logging.FileHandler(self.log, encoding="utf-8")
        assert file.stream is not None
        self._lock(file.stream)
        file.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        ours = logging.getLogger("zhen")
        with console(), _handled(file, _LOGGERS):
            try:
                yield
            except BaseException as error:
                message = f"{type(error).__name__}: {error}"
                record = ours.makeRecord(
                    ours.name,
                    logging.ERROR,
                    __file__,
                    0,
                    message,
                    (),
                    (type(error), error, error.__traceback__)
                    if isinstance(error, Exception)
                    else None,
                )
                file.emit(record)  # to the file alone: the command reports it on the terminal
                raise
            finally:
                file.close()

    @property
    def is_being_written(self) -> bool:
        """Whether a process is inside `logging()`. To look does not get in the way of one."""
        kinds = "qqihh" if sys.platform == "darwin" else "hhqqi"  # C's `struct flock`
        kind = 3 if sys.platform == "darwin" else 0  # where its `l_type` stands
        asked = [0] * len(kinds)
        asked[kind] = fcntl.F_RDLCK
        try:
            with (self.path / "log.txt").open("rb") as file:
                answer = fcntl.fcntl(file, fcntl.F_GETLK, struct.pack(kinds, *asked))
        except OSError:  # no log, or a file system without locks
            return False
        return bool(struct.unpack(kinds, answer)[kind] != fcntl.F_UNLCK)

    def _lock(self, file: TextIO) -> None:
        """Until it is closed, or the process ends in whatever way."""
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EAGAIN):
                return  # a file system without locks
            file.close()
            raise UserError(
                f"{self.path} is being written by another process: wait for its end, or stop it"
            ) from error


@contextlib.contextmanager
def console() -> Iterator[None]:
    """Inside, what zhen has to say goes to stderr, on rank 0."""
    ours, level = logging.getLogger("zhen"), logging.getLogger("zhen").level
    handler = _Stderr()
    handler.setFormatter(logging.Formatter("%(message)s"))
    ours.setLevel(logging.INFO)
    try:
        with _handled(handler, ("",) if is_main() else ()):
            yield
    finally:
        ours.setLevel(level)


@contextlib.contextmanager
def _handled(handler: logging.Handler, loggers: Sequence[str]) -> Iterator[None]:
    for name in loggers:
        logging.getLogger(name).addHandler(handler)
    try:
        yield
    finally:
        for name in loggers:
            logging.getLogger(name).removeHandler(handler)


class _Stderr(logging.StreamHandler):
    """Writes to what sys.stderr is at the moment: a progress bar replaces it while it is drawn."""

    @property
    def stream(self) -> TextIO:
        return sys.stderr

    @stream.setter
    def stream(self, value: TextIO) -> None:
        pass


def newest_checkpoint(runs: str | Path) -> Path:
    """The best checkpoint of the newest run below `runs`, the one that wrote last.

    Of a run that never validated, its last checkpoint. Runs of `debug=fast` count only where there
    are no others.

    Raises:
        UserError: no run has one.
    """
    found = [path for path in Path(runs).glob("*/*/checkpoints/*.ckpt") if path.is_file()]
    if not found:
        raise UserError(
            f"no trained model below {runs}: train one with `make train`, or give a"
            " checkpoint's path"
        )
    newest = max(found, key=lambda path: (path.parts[-4] != "debug", path.stat().st_mtime_ns, path))
    run = RunDirectory(newest.parent.parent)
    return next(path for path in (run.best, run.last, newest) if path in found)


def home_of(checkpoint: Path) -> Path:
    """The run directory of a checkpoint; of one that lies elsewhere, the folder that it lies in."""
    run = RunDirectory(checkpoint.absolute().parent.parent)
    in_run = checkpoint.absolute().parent == run.checkpoints and run.config.is_file()
    return run.path if in_run else checkpoint.absolute().parent


def stem_of(part: str) -> str:
    """The name of a test part's files, without the ending."""
    return "test" if part == "test" else f"test.{part}"


def rank() -> int:
    """This process's rank, from what torchrun, Slurm or Lightning set; 0 when alone."""
    for variable in ("RANK", "SLURM_PROCID"):
        if variable in os.environ:
            return int(os.environ[variable])
    node, local = (int(os.environ.get(name, 0)) for name in ("NODE_RANK", "LOCAL_RANK"))
    return node * int(os.environ.get(DEVICES, 1)) + local


def is_main() -> bool:
    """True on rank 0, which writes what all ranks share."""
    return rank() == 0
