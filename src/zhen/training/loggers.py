"""Where numbers go: metrics.csv in the run directory, and Weights & Biases, offline by default."""

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from lightning.pytorch import loggers
from lightning.pytorch.loggers.logger import Logger
from lightning.pytorch.utilities import rank_zero_only

from zhen.errors import UserError, one_line
from zhen.files import write_atomic


class CsvLogger(Logger):
    """metrics.csv in the run directory: a row for each time something was logged.

    The column `step` counts updates from 0, as Lightning does.
    Rows are added, also to a file that is there; Lightning's own CSV logger would delete it.

    Args:
        run_dir: the run directory.
    """

    name = ""
    version = ""

    def __init__(self, *, run_dir: str) -> None:
        super().__init__()
        self._path = Path(run_dir, "metrics.csv")

    @property
    def save_dir(self) -> str:
        return str(self._path.parent)

    @rank_zero_only
    def log_hyperparams(self, *args: Any, **kwargs: Any) -> None:
        """Nothing to do: config.yaml has them."""

    @rank_zero_only
    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        row = {"step": step, **metrics}
        rows: list[dict[str, Any]] = []
        if self._path.exists():
            with self._path.open(encoding="utf-8", newline="") as file:
                reader = csv.DictReader(file)
                columns = list(reader.fieldnames or [])
                if not row.keys() <= set(columns):  # a new column: the file is written anew
                    rows = list(reader)
        else:
            columns = []
        new = [name for name in row if name not in columns]
        if not new:
            with self._path.open("a", encoding="utf-8", newline="") as file:
                csv.DictWriter(file, columns).writerow(row)
            return
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, [*columns, *new])
        writer.writeheader()
        writer.writerows([*rows, row])
        write_atomic(self._path, text.getvalue())


class WandbLogger(loggers.WandbLogger):
    """Weights & Biases. Never asks anything: a job has nobody to answer.

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
        super().__init__(
            mode=mode,
            project=project,
            group=group,
            tags=tags,
            save_dir=run_dir,
            name=name,
            config=config,
            settings=wandb.Settings(console="off", silent=True),
        )
        # Lightning passes it on, and wandb warns that it has no effect.
        self._wandb_init.pop("anonymous", None)
