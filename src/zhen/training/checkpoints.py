"""The state of a run in a file: when it is written, how, and how a run goes on from it.

Lightning's own callback, `ModelCheckpoint`, saves from several hooks, and what it restores depends
on the hook: a validation that was due is left out, random numbers start again, a row is logged
under another update. Here every state is that between two updates.
"""

import logging
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple

import lightning as L
import torch
import torch.distributed as dist
from lightning.fabric.plugins.io.torch_io import TorchCheckpointIO
from lightning.pytorch.callbacks import Checkpoint
from lightning.pytorch.trainer.states import TrainerFn

from zhen.data.batching import Part
from zhen.errors import Stopped, UserError
from zhen.files import remove_asides, second_name, whole_file
from zhen.training.loggers import CsvLogger
from zhen.training.position import (
    between_updates,
    epoch_and_batch,
    epoch_is_over,
    half_made,
    with_other_batches,
)
from zhen.training.random_state import random_state, set_random_state
from zhen.training.signals import Signals
from zhen.translator import read_checkpoint

log = logging.getLogger(__name__)

KEY = "callbacks.checkpoint.dirpath"
# It is: see `TranslationData.start`.
warnings.filterwarnings("ignore", message=".*your dataloader is not resumable")


class WholeFiles(TorchCheckpointIO):
    """Checkpoints that appear complete or not at all, and run nothing when they are read.

    Lightning's own writer builds the whole file in memory, and moves it from /tmp: across file
    systems that is a copy, which a kill leaves half-made.
    """

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: Any, storage_options: Any = None
    ) -> None:
        with whole_file(path, KEY, "wb") as file:
            try:
                torch.save(checkpoint, file)
            except RuntimeError as error:  # torch's words for a full disk
                raise (error.__context__ or error) from None

    def load_checkpoint(
        self,
        path: Any,
        map_location: Callable[..., Any] | None = None,
        weights_only: bool | None = None,
    ) -> dict[str, Any]:
        return read_checkpoint(Path(path))


class Begun(NamedTuple):
    """What plans of other ranks or accumulation have done of an epoch: nothing, if none did."""

    epoch: int
    first: int  # the batch with which the rest of it begins
    parts: list[Part]  # those that are done


class Checkpoints(Checkpoint):
    """Keeps `last.ckpt`, from which a run goes on, and `best.ckpt`, the best by validation.

    Both are written at each validation. SIGTERM, SIGINT and SIGUSR1 end the training after the
    update that is being made, or before the validation that is being made, with `last.ckpt`
    written.

    Args:
        dirpath: where they are kept.
        monitor: the logged number that decides which is best; None: no `best.ckpt`.
        mode: whether less or more is better.
        every_n_updates: also write `last.ckpt` whenever so many updates are done; None: do not.
        every_minutes: also write it after so many minutes; None: do not.
        keep_every_n_updates: keep the state after every so many updates as `update-N.ckpt`, too;
            None: do not.

    Raises:
        ValueError: a number is not above 0.
    """

    def __init__(
        self,
        *,
        dirpath: str,
        monitor: str | None,
        mode: Literal["min", "max"] = "max",
        every_n_updates: int | None = None,
        every_minutes: float | None = None,
        keep_every_n_updates: int | None = None,
    ) -> None:
        for name, value in (
            ("every_n_updates", every_n_updates),
            ("every_minutes", every_minutes),
            ("keep_every_n_updates", keep_every_n_updates),
        ):
            if value is not None and not value > 0:
                raise ValueError(f"`{name}` must be above 0, but is {value}")
        self.dirpath = Path(dirpath)
        self.last, self.best = self.dirpath / "last.ckpt", self.dirpath / "best.ckpt"
        self._monitor, self._sign = monitor, 1 if mode == "max" else -1
        self._every_n_updates, self._every_minutes = every_n_updates, every_minutes
        self._keep_every_n_updates = keep_every_n_updates
        self._signals = Signals()
        self.best_score: float | None = None
        self._best_update = 0
        self._saved_update = 0
        # What a later save needs of the last moment between two updates.
        self._between: dict[str, Any] = {}
        self._validation_due = False
        self._restored: dict[str, Any] | None = None
        self._begun = Begun(0, 0, [])

    @property
    def best_path(self) -> Path | None:
        """`best.ckpt`, where a validation has made one."""
        return self.best if self.best_score is not None else None

    def state_dict(self) -> dict[str, Any]:
        return {"best_score": self.best_score, "best_update": self._best_update}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.best_score, self._best_update = state_dict["best_score"], state_dict["best_update"]

    def setup(self, trainer: L.Trainer, module: L.LightningModule, stage: str) -> None:
        if type(trainer.strategy.checkpoint_io) is TorchCheckpointIO:
            trainer.strategy.checkpoint_io = WholeFiles()

    def on_save_checkpoint(
        self, trainer: L.Trainer, module: L.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        if not self._between:  # saved by other code, before the first update
            return
        steps = trainer.accumulate_grad_batches
        begun = self._begun_by_others(trainer)
        between_updates(checkpoint, steps, begun.first, self._validation_due)
        random = [self._between["random"]]
        if trainer.world_size > 1:
            random *= trainer.world_size
            dist.all_gather_object(random, random[0])
        checkpoint["resume"] = {
            "random": random,  # of each rank
            "rows": self._between["rows"],
            "accumulation": steps,
            "world_size": trainer.world_size,
            "first": begun.first,
            "parts": [tuple(part) for part in begun.parts],
        }

    def on_load_checkpoint(
        self, trainer: L.Trainer, module: L.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        if trainer.state.fn != TrainerFn.FITTING:
            return
        self._restored = state = checkpoint["resume"]
        data: Any = trainer.datamodule  # type: ignore[attr-defined]
        first, parts = state.get("first", 0), [Part(*part) for part in state.get("parts", [])]
        before = state["world_size"], state["accumulation"]
        if before != (trainer.world_size, trainer.accumulate_grad_batches):
            epoch, batch = epoch_and_batch(checkpoint)
            parts.append(Part(*before, batch))
            rest = range(0) if epoch_is_over(checkpoint) else data.rest(epoch, parts)
            with_other_batches(checkpoint, rest, before[0], trainer.world_size)
            first, parts = (rest.start, parts) if rest else (0, [])
        epoch, batch = epoch_and_batch(checkpoint)
        self._begun = Begun(epoch, first, parts)
        # Before Lightning asks for a loader, which it does before it restores its loops.
        data.start(epoch, batch, parts)
        self._saved_update = checkpoint["global_step"]

    def on_fit_start(self, trainer: L.Trainer, module: L.LightningModule) -> None:
        rows = 0  # a run that was killed before its first checkpoint begins anew
        if self._restored is not None:
            rows = self._restored["rows"]
        for logger in trainer.loggers:
            if isinstance(logger, CsvLogger):
                logger.keep(rows)
        if not trainer.is_global_zero:
            return
        remove_asides(self.last)
        remove_asides(self.best)
        if self._restored is not None:
            second_name(Path(str(trainer.ckpt_path)), self.last, KEY)
            if self._best_update == self._saved_update:  # killed between the two files
                second_name(self.last, self.best, KEY)

    def on_train_start(self, trainer: L.Trainer, module: L.LightningModule) -> None:
        # Now, since Lightning has just installed its own, which save or communicate inside the
        # handler. It puts back what was there before when the training ends, however it ends.
        self._signals.install()
        states = self._restored["random"] if self._restored is not None else []
        if trainer.global_rank < len(states):
            set_random_state(states[trainer.global_rank], trainer.strategy.root_device)
        self._time = time.monotonic()

    def on_train_batch_start(
        self, trainer: L.Trainer, module: L.LightningModule, batch: Any, batch_idx: int
    ) -> None:
        # Lightning counts it wrongly after some restarts; it is the `step` of what is logged.
        trainer.fit_loop.epoch_loop._batches_that_stepped = trainer.global_step
        first = self._begun_by_others(trainer).first
        if half_made(batch_idx, trainer.accumulate_grad_batches, first):
            return
        # All of the last update is done: it is logged, and validated where that was due.
        due, number = self._asked(trainer)
        if trainer.accumulate_grad_batches > 1:  # a validation may come in the middle of an update
            self._note(trainer)
        if (due or number > 0) and self._saved_update != trainer.global_step:
            self._save(trainer)
        self._stop_if(number, trainer)

    def on_validation_batch_start(
        self,
        trainer: L.Trainer,
        module: L.LightningModule,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        if not self._fitting(trainer):
            return
        _, number = self._asked(trainer)
        if number:  # a long validation must not use up the time that is left
            self._validation_due = self._update_is_whole(trainer)
            self._save(trainer)
            self._stop_if(number, trainer)

    def on_validation_end(self, trainer: L.Trainer, module: L.LightningModule) -> None:
        if not self._fitting(trainer):
            return
        better = False
        if self._monitor is not None:
            score = self._score(trainer, self._monitor)
            better = self.best_score is None or score * self._sign > self.best_score * self._sign
            if better:
                self.best_score, self._best_update = score, trainer.global_step
        self._save(trainer)
        if better and trainer.is_global_zero:
            second_name(self.last, self.best, KEY)

    def on_train_end(self, trainer: L.Trainer, module: L.LightningModule) -> None:
        if self._saved_update != trainer.global_step:
            self._save(trainer)
        self._stop_if(self._asked(trainer)[1], trainer)

    def on_fit_end(self, trainer: L.Trainer, module: L.LightningModule) -> None:
        # What the test logs, where there was nothing left to train, as where there was.
        trainer.fit_loop.epoch_loop._batches_that_stepped = trainer.global_step
        epochs = trainer.fit_loop.epoch_progress.current
        epochs.completed = epochs.started  # type: ignore[attr-defined]

    def _fitting(self, trainer: L.Trainer) -> bool:
        """False for a validation or test that belongs to no training, and for a trial."""
        return trainer.state.fn == TrainerFn.FITTING and not trainer.sanity_checking

    def _update_is_whole(self, trainer: L.Trainer) -> bool:
        """False between the micro-batches of one update."""
        batches = trainer.fit_loop.epoch_loop.batch_progress
        done = batches.current.processed  # type: ignore[attr-defined]
        first = self._begun_by_others(trainer).first
        return batches.is_last_batch or not half_made(done, trainer.accumulate_grad_batches, first)

    def _begun_by_others(self, trainer: L.Trainer) -> Begun:
        """What other plans have done of the epoch that is being made."""
        epoch = trainer.fit_loop.epoch_progress.current.started - 1  # type: ignore[attr-defined]
        return self._begun if epoch == self._begun.epoch else Begun(epoch, 0, [])

    def _asked(self, trainer: L.Trainer) -> tuple[bool, int]:
        """Whether `last.ckpt` is due, and the number of the signal that stops the run, or 0."""
        due = False
        for every in (self._every_n_updates, self._keep_every_n_updates):
            due |= every is not None and trainer.global_step % every == 0
        if self._every_minutes is not None:
            due |= time.monotonic() - self._time >= 60 * self._every_minutes
        asked = torch.tensor([int(due), self._signals.received])
        if trainer.world_size > 1:  # a signal may reach one rank, and clocks differ
            asked = asked.to(trainer.strategy.root_device)
            dist.all_reduce(asked, dist.ReduceOp.MAX)
        due_anywhere, number = asked.tolist()
        return bool(due_anywhere), number

    def _score(self, trainer: L.Trainer, monitor: str) -> float:
        """The number that decides, of this validation; only rank 0 has it."""
        found = trainer.callback_metrics
        if trainer.is_global_zero and monitor not in found:
            raise UserError(
                f"callbacks.checkpoint.monitor: a validation finds no {monitor!r}; take one of"
                f" {', '.join(sorted(found))}"
            )
        score: float = trainer.strategy.broadcast(
            found[monitor].item() if trainer.is_global_zero else 0.0
        )
        return score

    def _note(self, trainer: L.Trainer) -> None:
        """Keep what only this moment, between two updates, can tell."""
        rows = [each.rows for each in trainer.loggers if isinstance(each, CsvLogger)]
        self._between = {
            "random": random_state(trainer.strategy.root_device),
            "rows": rows[0] if rows else None,
        }

    def _save(self, trainer: L.Trainer) -> None:
        if self._update_is_whole(trainer):
            self._note(trainer)
        trainer.save_checkpoint(self.last, weights_only=False)
        self._saved_update = update = trainer.global_step
        every = self._keep_every_n_updates
        if every is not None and update % every == 0 and trainer.is_global_zero:
            second_name(self.last, self.dirpath / f"update-{update}.ckpt", KEY)
        self._time = time.monotonic()

    def _stop_if(self, number: int, trainer: L.Trainer) -> None:
        if number:
            stop = Stopped(number)
            log.info(
                "%s: stopped after update %d; to go on: make train resume=%s",
                stop.signal, trainer.global_step, trainer.default_root_dir,
            )  # fmt: skip
            raise stop
