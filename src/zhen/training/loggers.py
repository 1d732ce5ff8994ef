"""Where numbers go: metrics.csv in the run directory, and Weights & Biases, offline by default."""

import csv
import io
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from lightning.pytorch import loggers
from lightning.pytorch.loggers.logger import Logger, rank_zero_experiment
from lightning.pytorch.utilities import rank_zero_only

from zhen.errors import UserError, one_line
from zhen.files import make_directory, write_atomic


class CsvLogger(Logger):
    """metrics.csv in the run directory: a row for each time something was logged.

    The column `step` counts updates from 0, as Lightning does.
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
    """Weights & Biases. Never asks anything: a job has nobody to answer.

    Its id is kept in the run directory from the start, so that a run that goes on is the same one
    there, however it ended.

    Args:
        mode: "offline" writes to the run directory, `wandb sync` sends it later; "online" needs a
            key in WANDB_API_KEY or from an earlier `wandb login`.
        project: where runs are collected.
        group: runs that belong together, such as the seeds of one setting.
        tags: words to find the run by.
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
        self._id_file = Path(run_dir, "wandb", "id.txt")
        kept = self._id_file.exists()
        # wandb's own sweeps name the run, whatever it is given.
        named = os.environ.get("WANDB_RUN_ID") if "WANDB_SWEEP_ID" in os.environ else None
        super().__init__(
            mode=mode,
            project=project,
            group=group,
            tags=tags,
            save_dir=run_dir,
            name=name,
            id=self._id_file.read_text(encoding="utf-8") if kept else named or secrets.token_hex(4),
            config=config,
            settings=wandb.Settings(console="off", silent=True),
        )
        # Lightning passes it on, and wandb warns that it has no effect.
        self._wandb_init.pop("anonymous", None)

    @property
    @rank_zero_experiment
    def experiment(self) -> Any:
        """The run there, made at the first use."""
        if self._experiment is None:
            make_directory(self._id_file.parent, key="paths.runs")
            write_atomic(self._id_file, str(self._id))
        return super().experiment
