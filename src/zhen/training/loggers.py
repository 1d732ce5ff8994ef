"""Where numbers go: metrics.csv in the run directory, Weights & Biases, TensorBoard.

All have the same axis, `step`: it counts updates from 0, as Lightning does, and a test is logged at
the number of updates that were made.
"""

import contextlib
import csv
import io
import logging
import os
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from lightning.pytorch import loggers
from lightning.pytorch.loggers.logger import Logger, rank_zero_experiment
from lightning.pytorch.utilities import rank_zero_only
from omegaconf import OmegaConf

from zhen.errors import UserError, one_line
from zhen.files import make_directory, write_atomic

log = logging.getLogger(__name__)

# Seconds that a run waits for a server that does not answer, as it begins and as it ends.
WAIT_AT_BEGIN, WAIT_AT_END = 30, 60
# What Weights & Biases goes on as where it cannot be as it should.
FALLBACK: Mapping[str, Literal["offline", "disabled"]] = {
    "online": "offline",
    "offline": "disabled",
}


class Sample(NamedTuple):
    """A sentence and its translation, beside the one that is expected."""

    source: str
    hypothesis: str
    reference: str


class CsvLogger(Logger):
    """metrics.csv in the run directory: a row for each time something was logged.

    Rows are added, also to a file that is there; Lightning's own CSV logger would delete it. A run
    that goes on from a checkpoint cuts what came after it: see `keep`.

    Args:
        run_dir: the run directory.
    """

    name = ""
    version = ""

    def __init__(self, *, run_dir: str) -> None:
        super().__init__()
        self._path = Path(run_dir, "metrics.csv")
        self._columns: list[str] | None = None  # None: not looked at yet
        self._rows = 0

    @property
    def save_dir(self) -> str:
        return str(self._path.parent)

    @property
    def rows(self) -> int:
        """How many there are."""
        if self._columns is None:
            self._read()
        return self._rows

    @rank_zero_only
    def keep(self, rows: int | None) -> None:
        """Cut the file after so many rows; None, from a run without this logger, cuts nothing."""
        there = self._read()
        if rows == 0:
            self._path.unlink(missing_ok=True)
            self._read()
        elif rows is not None and rows < len(there):
            self._write(there[:rows])

    @rank_zero_only
    def log_hyperparams(self, *args: Any, **kwargs: Any) -> None:
        """Nothing to do: config.yaml has them."""

    @rank_zero_only
    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        row = {"step": step, **metrics}
        if self._columns is None:
            self._read()
        assert self._columns is not None
        if not row.keys() <= set(self._columns):  # a new column: the file is written anew
            self._write([*self._read(), row])
            return
        with self._path.open("a", encoding="utf-8", newline="") as file:
            csv.DictWriter(file, self._columns).writerow(row)
        self._rows += 1

    def _read(self) -> list[dict[str, Any]]:
        """The rows that are there."""
        self._columns, rows = [], []
        if self._path.exists():
            with self._path.open(encoding="utf-8", newline="") as file:
                reader = csv.DictReader(file)
                self._columns, rows = list(reader.fieldnames or []), list(reader)
        self._rows = len(rows)
        return rows

    def _write(self, rows: list[dict[str, Any]]) -> None:
        """The whole file, each column where it first came up."""
        self._columns = list(dict.fromkeys([*(self._columns or []), *rows[-1]]))
        self._rows = len(rows)
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, self._columns)
        writer.writeheader()
        writer.writerows(rows)
        write_atomic(self._path, text.getvalue())


class WandbLogger(loggers.WandbLogger):
    """Weights & Biases. Never asks anything, and never stops a run.

    A server that does not answer, a full disk, a broken library: all is said once, and the run goes
    on without; metrics.csv has the numbers. Its id is kept in the run directory from the start, so
    that a run that goes on is the same one there, however it ended.

    Args:
        mode: "offline" writes to the run directory, `wandb sync` sends it later; "online" needs a
            key in WANDB_API_KEY or from an earlier `wandb login`.
        project: where runs are collected.
        group: runs that belong together, such as the seeds of one setting.
        job_type: what kind of run it is in its group.
        tags: words to find the run by.
        notes: what the run is to find out.
        run_dir: the run directory.
        name: the run's name.
        config: the whole configuration, complete from the start: an offline run keeps only what
            it was started with.

    Raises:
        UserError: `mode` is "online" and there is no key, or none of the right form.
    """

    def __init__(
        self,
        *,
        mode: Literal["offline", "online", "disabled"],
        project: str,
        group: str | None,
        tags: list[str],
        run_dir: str,
        name: str,
        job_type: str | None = None,
        notes: str | None = None,
        config: dict[str, Any] | None = None,
    ) -> None:
        import wandb

        if mode == "online":
            try:
                has_key = wandb.login(prompt=False, verify=False)
            except wandb.Error as error:
                raise UserError(f"logger.wandb.mode=online: {one_line(error)}") from error
            if not has_key:
                raise UserError(
                    "logger.wandb.mode=online needs a key: set WANDB_API_KEY or run `wandb login`,"
                    " or take logger.wandb.mode=offline"
                )
        self._mode = mode
        self._id_file = Path(run_dir, "wandb", "id.txt")
        kept = self._id_file.exists()
        # wandb's own sweeps name the run, whatever it is given.
        named = os.environ.get("WANDB_RUN_ID") if "WANDB_SWEEP_ID" in os.environ else None
        super().__init__(
            project=project,
            group=group,
            job_type=job_type,
            tags=tags,
            notes=notes,
            save_dir=run_dir,
            name=name,
            id=self._id_file.read_text(encoding="utf-8") if kept else named or secrets.token_hex(4),
            config=config,
        )
        # Lightning passes it on, and wandb warns that it has no effect.
        self._wandb_init.pop("anonymous", None)

    @property
    @rank_zero_experiment
    def experiment(self) -> Any:
        """The run there, made at the first use."""
        if self._experiment is None:
            self._experiment = self._start(self._mode)
        return self._experiment

    @rank_zero_only
    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        self._guarded(lambda run: run.log(dict(metrics), step=step))

    @rank_zero_only
    def log_samples(self, samples: Sequence[Sample], step: int) -> None:
        """A table of them, one for each step."""
        import wandb

        columns: list[str | int] = [*Sample._fields]
        data = [list(each) for each in samples]
        self._guarded(
            lambda run: run.log({"samples": wandb.Table(columns=columns, data=data)}, step=step)
        )

    @rank_zero_only
    def finish(self, status: int) -> None:
        """Say there how the run ended; other than 0, it is marked as failed.

        Args:
            status: the exit status of the run.
        """
        if self._experiment is not None:
            import wandb

            self._guarded(lambda run: run.finish(exit_code=status))
            self._experiment = None
            # Here, and not at the exit: a signal to all processes of a job may have ended wandb's
            # too, and its hook would print a traceback below what the run has to say.
            with contextlib.suppress(Exception):
                wandb.teardown()

    def _start(self, mode: Literal["offline", "online", "disabled"]) -> Any:
        import wandb

        online = mode == "online"
        settings = wandb.Settings(
            mode=mode,
            resume="allow" if online else None,  # wandb ignores it offline, with a warning
            console="off",
            silent=True,
            reinit="finish_previous",
            init_timeout=WAIT_AT_BEGIN if online else 300,  # on a busy machine, its own process
            finish_timeout=WAIT_AT_END,
            # Seconds; what is not on disk when a run is killed is lost there.
            x_transaction_log_flush_interval=1.0,
        )
        try:
            if mode != "disabled":
                make_directory(self._id_file.parent, key="paths.runs")
                write_atomic(self._id_file, str(self._id))
            return wandb.init(**{**self._wandb_init, "resume": None, "settings": settings})
        except Exception as error:  # whatever the network, the disk or the library does
            if mode == "disabled":
                raise
            log.warning(
                "logger.wandb.mode=%s does not work, and the run goes on with %s: %s",
                mode, FALLBACK[mode], one_line(error),
            )  # fmt: skip
            wandb.teardown()  # its process would not let go of the run's id
            return self._start(FALLBACK[mode])

    def _guarded(self, use: Callable[[Any], Any]) -> None:
        try:
            use(self.experiment)
        except Exception as error:
            log.warning(
                "logger.wandb: nothing more is logged there: %s: %s",
                type(error).__name__, one_line(error),
            )  # fmt: skip
            self._experiment = self._start("disabled")


class TensorBoardLogger(loggers.TensorBoardLogger):
    """TensorBoard's files, in `tensorboard/` of the run directory; a run that goes on adds one.

    Args:
        run_dir: the run directory.
        config: the whole configuration, shown as text.
        start: updates that are made already; TensorBoard hides what was logged after them before.

    Raises:
        ModuleNotFoundError: there is neither `tensorboardX` nor `tensorboard`.
    """

    def __init__(
        self, *, run_dir: str, config: dict[str, Any] | None = None, start: int = 0
    ) -> None:
        super().__init__(
            run_dir,
            name="",
            version="tensorboard",
            default_hp_metric=False,
            purge_step=start,
            flush_secs=10,
        )
        self._config, self._start = config, start
        self._threads: set[threading.Thread] = set()  # of the writer
        self._gave_up = False

    @property
    @rank_zero_experiment
    def experiment(self) -> Any:
        """The writer, made at the first use."""
        if self._experiment is not None:
            return self._experiment
        before = {*threading.enumerate()}
        writer = super().experiment
        self._threads = {*threading.enumerate()} - before
        if self._config is not None:
            text = OmegaConf.to_yaml(OmegaConf.create(self._config))
            writer.add_text("config", f"```yaml\n{text}```", self._start)
        return writer

    @rank_zero_only
    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        self._guarded(lambda: super(TensorBoardLogger, self).log_metrics(metrics, step))

    @rank_zero_only
    def log_samples(self, samples: Sequence[Sample], step: int) -> None:
        """Their text, one for each step."""
        rows = [Sample._fields, ["---"] * len(Sample._fields), *samples]
        text = "".join(f"| {' | '.join(_cell(each) for each in row)} |\n" for row in rows)
        self._guarded(lambda: self.experiment.add_text("samples", text, step))

    @rank_zero_only
    def finalize(self, status: str) -> None:
        """Keep the file for the test, which comes after the training.

        Lightning closes it, and another one would hide what is in this one from TensorBoard, or be
        written over it where both are opened within one second.
        """

    @rank_zero_only
    def close(self) -> None:
        """Write what is left."""
        if self._experiment is not None:
            self._guarded(self._experiment.close)

    @rank_zero_only
    def save(self) -> None:
        """Lightning would write hparams.yaml, but config.yaml has them."""

    def _guarded(self, use: Callable[[], object]) -> None:
        if self._gave_up:
            return
        why = "a thread of its writer has ended"  # on a full disk; its queue would fill, and block
        try:
            if all(each.is_alive() for each in self._threads):
                use()
                return
        except Exception as error:
            why = f"{type(error).__name__}: {one_line(error)}"
        self._gave_up = True
        log.warning("logger.tensorboard: nothing more is logged there: %s", why)


def _cell(text: str) -> str:
    """As it stands in a table of Markdown."""
    return text.replace("\\", "\\\\").replace("|", "\\|")


@contextlib.contextmanager
def finished(loggers: Sequence[Logger]) -> Iterator[None]:
    """At the end, close TensorBoard's file, and tell Weights & Biases how the run inside ended.

    Without that, the next run of this process would be logged as the same one, and one that failed
    as finished.
    """
    status = 1
    try:
        yield
        status = 0
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else 1
        raise
    finally:
        for logger in loggers:
            if isinstance(logger, WandbLogger):
                logger.finish(status)
            elif isinstance(logger, TensorBoardLogger):
                logger.close()
