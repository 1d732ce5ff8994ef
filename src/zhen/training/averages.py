"""Averages of the weights, kept beside those that are trained, and which of them are scored.

Lightning's own `WeightAveraging` writes the average over the model during each validation and
after the training, so that what a signal interrupts, or a checkpoint holds, depends on the moment.
Here an average is a model of its own, and the trained one is never touched.
"""

import copy
import dataclasses
import logging
from typing import Any, Literal

import lightning as L
from lightning.pytorch.trainer.states import TrainerFn

from zhen.errors import UserError
from zhen.model import Transformer
from zhen.model.averages import Weights, copy_of, mean, move_exponential, put
from zhen.training.module import TranslationModule

log = logging.getLogger(__name__)


class Averages(L.Callback):
    """Keeps averages in each checkpoint, under "averages", and lets one of them be scored.

    The exponential one costs the memory of a model on the device; that of the last validations
    costs the CPU, and each checkpoint, a copy of the weights for each of them.

    Args:
        ema_decay: of the exponential average, an update; None: none.
        last: how many validations' weights the plain average takes; None: none.
        weights: what a validation and the test score, and so what chooses `best.ckpt`: those that
            are trained ("raw"), the exponential average ("ema") or the plain one ("average").

    Raises:
        ValueError: a number is out of range, or what is to be scored is not kept.
    """

    def __init__(
        self,
        *,
        ema_decay: float | None = None,
        last: int | None = None,
        weights: Literal["raw", "ema", "average"] = "raw",
    ) -> None:
        if ema_decay is not None and not 0 < ema_decay < 1:
            raise ValueError(f"`ema_decay` must be above 0 and below 1, but is {ema_decay}")
        if last is not None and last < 1:
            raise ValueError(f"`last` must be at least 1, but is {last}")
        for name, key, value in (("ema", "ema_decay", ema_decay), ("average", "last", last)):
            if weights == name and value is None:
                raise ValueError(f"`weights` is {name}, which needs `{key}`, as {key}=NUMBER")
        self.weights = weights
        self._decay, self._size = ema_decay, last
        self._ema: Transformer | None = None
        self._updates = 0  # that have entered it
        self._last: dict[int, Weights] = {}  # by the update after which they were validated
        self._restored: dict[str, Any] | None = None

    def on_save_checkpoint(
        self, trainer: L.Trainer, module: L.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        kept: dict[str, Any] = {"weights": self.weights, "updates": self._updates}
        if self._ema is not None:
            kept["ema"] = {name: p.data for name, p in self._ema.named_parameters()}
        if self._size is not None:
            kept["last"] = dict(self._last)
        checkpoint["averages"] = kept

    def on_load_checkpoint(
        self, trainer: L.Trainer, module: L.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        self._restored = checkpoint.get("averages")  # no device to put them on yet

    def on_fit_start(self, trainer: L.Trainer, module: L.LightningModule) -> None:
        assert isinstance(module, TranslationModule)
        if self._decay is not None:
            self._ema = like(module.model)
        self._restore()
        if self.weights != "raw":
            log.info("validation and test score the weights called %s", self.weights)

    def on_train_batch_end(self, trainer: L.Trainer, module: L.LightningModule, *_: Any) -> None:
        if self._ema is not None and trainer.global_step > self._updates:
            assert isinstance(module, TranslationModule) and self._decay is not None
            self._updates = trainer.global_step
            move_exponential(self._ema, module.model, self._decay, self._updates)

    def on_validation_start(self, trainer: L.Trainer, module: L.LightningModule) -> None:
        assert isinstance(module, TranslationModule)
        if trainer.state.fn != TrainerFn.FITTING or trainer.sanity_checking:
            return
        # A validation that was interrupted comes again, and finds its weights there already.
        if self._size is not None and trainer.global_step not in self._last:
            self._last[trainer.global_step] = copy_of(module.model)
            for update in sorted(self._last)[: -self._size]:
                del self._last[update]
        self._choose(module)

    def on_test_start(self, trainer: L.Trainer, module: L.LightningModule) -> None:
        assert isinstance(module, TranslationModule)
        self._restore()
        self._choose(module)

    def _restore(self) -> None:
        if self._restored is None:
            return
        self._updates = self._restored["updates"]
        self._last = self._restored.get("last", {})
        if self._ema is not None:
            put(self._restored["ema"], self._ema)
        self._restored = None

    def _choose(self, module: TranslationModule) -> None:
        """Let `module` score the weights that are to be scored."""
        if self.weights == "raw":
            module.scored = module.translator
            return
        if self.weights == "ema":
            model = self._ema
        elif self._last:
            model = like(module.model)
            put(mean(list(self._last.values())), model)
        else:
            raise UserError(
                "callbacks.averages.weights is average, but there was no validation whose weights"
                " could be averaged: let there be one, or take weights=ema"
            )
        assert model is not None
        module.scored = dataclasses.replace(module.translator, model=model, weights=self.weights)


def like(model: Transformer) -> Transformer:
    """A copy that is never trained."""
    return copy.deepcopy(model).requires_grad_(False).eval()
