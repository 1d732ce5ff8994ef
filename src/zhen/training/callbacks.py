"""What is shown while a run works: progress and sample translations."""

import datetime
import logging
import sys
import time
from typing import Any

import lightning as L
from lightning.pytorch.callbacks import Timer
from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bar

from zhen.data import Batch
from zhen.training.loggers import Sample, TensorBoardLogger, WandbLogger
from zhen.training.module import TranslationModule

log = logging.getLogger(__name__)


class Progress(L.Callback):
    """Loss, tokens per second and time left: a bar on a terminal, else a log line now and then.

    Args:
        refresh_seconds: between two log lines.

    Raises:
        ValueError: `refresh_seconds` is not above 0.
    """

    def __init__(self, *, refresh_seconds: float) -> None:
        if not refresh_seconds > 0:
            raise ValueError(f"`refresh_seconds` must be above 0, but is {refresh_seconds}")
        self._refresh_seconds = refresh_seconds
        self._bar: Bar | None = None
        self._tokens = 0
        self._training_seconds = 0.0
        self._since: float | None = None  # the last batch, or None: something else came between

    def on_train_start(self, trainer: L.Trainer, module: L.LightningModule) -> None:
        self._start = self._last_line = time.monotonic()
        self._first_update = trainer.global_step
        if trainer.is_global_zero and sys.stderr.isatty():
            columns = [BarColumn(), TextColumn("{task.description}")]
            self._bar = Bar(*columns, console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task("starting", total=1.0)
            self._bar.start()

    def on_train_batch_start(
        self, trainer: L.Trainer, module: L.LightningModule, batch: Batch, batch_idx: int
    ) -> None:
        if self._since is None:
            self._since = time.monotonic()

    def on_train_batch_end(
        self,
        trainer: L.Trainer,
        module: L.LightningModule,
        outputs: Any,
        batch: Batch,
        batch_idx: int,
    ) -> None:
        now = time.monotonic()
        # From batch to batch: Python goes ahead of a GPU, and waits for it where the next batch is
        # moved there.
        assert self._since is not None
        self._training_seconds += now - self._since
        self._since = now
        self._tokens += batch.tokens
        due = self._refresh_seconds if self._bar is None else 0.5
        if now - self._last_line < due or not trainer.is_global_zero:
            return
        self._last_line = now
        share = self._share_done(trainer, now - self._start)
        text = (
            f"update {trainer.global_step}  epoch {trainer.current_epoch + 1}"
            f"  loss {trainer.callback_metrics['train/loss'].item():.3f}"
            f"  {self.tokens_per_second:,.0f} tokens/s"
        )
        if share:
            left = (now - self._start) * (1 - share) / share
            text += f"  {datetime.timedelta(seconds=round(left))} left"
        if self._bar is None:
            log.info("%s", text)
        else:
            self._bar.update(self._task, completed=share, description=text)

    def on_validation_start(self, trainer: L.Trainer, module: L.LightningModule) -> None:
        self._since = None

    def on_train_end(self, trainer: L.Trainer, module: L.LightningModule) -> None:
        self._stop()

    def on_exception(
        self, trainer: L.Trainer, module: L.LightningModule, exception: BaseException
    ) -> None:
        self._stop()

    @property
    def tokens_per_second(self) -> float:
        """Real target tokens trained on by this rank, per second outside of validations."""
        return self._tokens / max(self._training_seconds, 1e-9)

    def _share_done(self, trainer: L.Trainer, seconds: float) -> float:
        """From 0 to 1, by updates or by the clock, whichever ends first."""
        total = trainer.estimated_stepping_batches - self._first_update
        by_updates = (trainer.global_step - self._first_update) / total  # 0 of infinity is 0
        timers = [c for c in trainer.callbacks if isinstance(c, Timer)]  # type: ignore[attr-defined]
        left = min((t.time_remaining() or float("inf") for t in timers), default=float("inf"))
        return min(1.0, max(by_updates, seconds / (seconds + left)))

    def _stop(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


class Samples(L.Callback):
    """Shows how the same few validation sentences are translated as training goes on.

    In the log, in Weights & Biases as a table, in TensorBoard as text.

    Args:
        count: sentences, spread evenly over the validation pairs.

    Raises:
        ValueError: `count` is negative.
    """

    def __init__(self, *, count: int) -> None:
        if count < 0:
            raise ValueError(f"`count` must be at least 0, but is {count}")
        self._count = count

    def on_validation_end(self, trainer: L.Trainer, module: L.LightningModule) -> None:
        assert isinstance(module, TranslationModule)
        found = module.validation
        if found is None or not trainer.is_global_zero:
            return
        log.info(
            "validation at update %d: BLEU %.1f, chrF %.1f, perplexity %.2f, loss %.3f",
            trainer.global_step,
            found.scores.bleu,
            found.scores.chrf,
            found.perplexity,
            found.loss,
        )
        size, count = len(found.sources), self._count
        chosen = (size * n // max(1, count) for n in range(min(count, size)))
        texts = found.sources, found.hypotheses, found.references
        samples = [Sample(*(each[i] for each in texts)) for i in chosen]
        for sample in samples:
            log.info("  %s", sample.source)
            log.info("    -> %s", sample.hypothesis)
            log.info("     = %s", sample.reference)
        # Under the step of this validation's scores.
        step = trainer.fit_loop.epoch_loop._batches_that_stepped
        for logger in trainer.loggers if samples else []:
            if isinstance(logger, (WandbLogger, TensorBoardLogger)):
                logger.log_samples(samples, step)
