"""The LightningModule: what happens to a batch in training, validation and test."""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import lightning as L
import torch
import torch.distributed as dist
from lightning.pytorch.utilities.types import OptimizerLRScheduler
from torch import Tensor, nn
from torchmetrics import SumMetric

from zhen.data import Batch, EncodedPairs, TranslationData
from zhen.decoding import DecodeOptions
from zhen.errors import UserError
from zhen.training.compiled import compiled
from zhen.training.finite import REMEDY, FiniteLoss, check_weights
from zhen.training.loss import TokenLoss, token_loss
from zhen.training.schedule import Constant, Pace, Schedule
from zhen.training.scores import Scores, score
from zhen.translator import Translator

# The numbers of a split are those of all ranks already.
warnings.filterwarnings("ignore", message=".*It is recommended to use .*sync_dist=True")

AT_PEAK = Constant(warmup=0)

MakeOptimizer = Callable[[list[dict[str, Any]]], torch.optim.Optimizer]


@dataclass(frozen=True)
class Evaluation:
    """What a pass over one split found, its sentences in file order."""

    sources: list[str]
    hypotheses: list[str]
    references: list[str]
    loss: float  # label-smoothed, nats per target token
    nll: float  # nats per target token
    perplexity: float  # exp(nll)
    scores: Scores


class SplitTotals(nn.Module):
    """Sums and sentences of one split, over its batches and over all ranks.

    Everything is a sum or a whole sentence: no mean of means, so batch size and number of ranks
    do not move the result.
    """

    def __init__(self) -> None:
        super().__init__()
        # "disable": a loss that is no number must stay visible, not be left out of the sum.
        self.smoothed = SumMetric(nan_strategy="disable")
        self.nll = SumMetric(nan_strategy="disable")
        self.tokens = SumMetric()
        self.hypotheses: dict[int, str] = {}

    def update(self, batch: Batch, loss: TokenLoss, texts: list[str]) -> None:
        self.smoothed.update(loss.smoothed)
        self.nll.update(loss.nll)
        self.tokens.update(loss.tokens)
        self.hypotheses.update(zip(batch.indices, texts, strict=True))

    def compute(self, pairs: EncodedPairs, target_lang: str) -> Evaluation:
        """Add up over ranks and score. Every rank must call it."""
        tokens = self.tokens.compute()
        nll = self.nll.compute() / tokens
        smoothed = self.smoothed.compute() / tokens
        gathered: list[Any] = [self.hypotheses]
        if dist.is_available() and dist.is_initialized():
            gathered = [None] * dist.get_world_size()
            dist.all_gather_object(gathered, self.hypotheses)
        found = {index: text for part in gathered for index, text in part.items()}
        # A run may look at a part of the split only (trainer.limit_val_batches).
        chosen = sorted(found)
        sources, references = pairs.sources, pairs.targets
        hypotheses = [found[i] for i in chosen]
        references = [references[i] for i in chosen]
        return Evaluation(
            sources=[sources[i] for i in chosen],
            hypotheses=hypotheses,
            references=references,
            loss=smoothed.item(),
            nll=nll.item(),
            perplexity=nll.exp().item(),
            scores=score(hypotheses, references, target_lang),
        )


class TranslationModule(L.LightningModule):
    """Trains a Transformer to translate.

    Args:
        translator: the model with its tokenizer and languages.
        decode: how the test is translated; validation is greedy, since it comes often.
        optimizer: makes the optimizer from parameter groups.
        schedule: the share of the optimizer's `lr` at each update.
        label_smoothing: ε of the training loss.
        nonfinite_loss: what a training loss that is NaN or infinite does to the training.
        compile: whether training makes kernels of its own for the loss and its gradient.
    """

    def __init__(
        self,
        translator: Translator,
        *,
        decode: DecodeOptions,
        optimizer: MakeOptimizer = torch.optim.Adam,
        schedule: Schedule = AT_PEAK,
        label_smoothing: float = 0.0,
        nonfinite_loss: Literal["stop", "skip"] = "stop",
        compile: bool = False,
    ) -> None:
        super().__init__()
        self.translator = translator
        self.model = translator.model
        self.scored = translator  # what validation and test score: see `Averages`
        self._make_optimizer = optimizer
        self._schedule = schedule
        self._label_smoothing = label_smoothing
        self._training_loss = compiled(token_loss) if compile else token_loss
        self._decode = decode
        self._finite = FiniteLoss(nonfinite_loss, self._named)
        self._totals: dict[str, SplitTotals] = {}
        # What the last validation, and each test part by its name, found.
        self.validation: Evaluation | None = None
        self.tests: dict[str, Evaluation] = {}

    def configure_optimizers(self) -> OptimizerLRScheduler:
        optimizer = self._make_optimizer(parameter_groups(self.model))
        # A fused optimizer may take the scale of `16-mixed` off the gradients itself, for which
        # Lightning refuses to clip them. Without this mark it is taken off before.
        optimizer._step_supports_amp_scaling = False  # type: ignore[attr-defined]
        pace = self._pace()
        scheduler = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda done: self._schedule(done + 1, pace)
        )
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": scheduler, "interval": "step"},
        }

    def _pace(self) -> Pace:
        total = self.trainer.estimated_stepping_batches
        if self.trainer.train_dataloader is None:  # not needed for `total`, then
            self.trainer.fit_loop.setup_data()
        micro_batches, loader = self.trainer.accumulate_grad_batches, self.trainer.train_dataloader
        updates_of_plan = math.ceil(len(loader) / micro_batches)  # type: ignore[arg-type]
        return Pace(
            updates=int(total) if total != float("inf") else None,
            # Fewer than the plan has, where trainer.limit_train_batches says so.
            updates_per_epoch=math.ceil(self.trainer.num_training_batches / micro_batches),
            tokens_per_update=self._data.target_tokens / updates_of_plan,
        )

    def on_fit_start(self) -> None:
        # With one seed, all ranks would drop out the same units.
        if self.global_rank:
            torch.manual_seed(torch.initial_seed() + self.global_rank)

    def on_train_start(self) -> None:
        # A run that goes on brings the rate of its next update, but may have another length now.
        scheduler: Any = self.lr_schedulers()
        rates = zip(scheduler.base_lrs, scheduler.lr_lambdas, strict=True)
        for group, (peak, share) in zip(scheduler.optimizer.param_groups, rates, strict=True):
            group["lr"] = peak * share(scheduler.last_epoch)

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        found = self._training_loss(self.model, batch, self._label_smoothing)
        loss = found.smoothed.detach() / found.tokens
        self._finite.note(self.trainer.global_step + 1, loss, batch.indices)
        self.log_dict(
            {
                "train/loss": loss,
                "train/lr": self.trainer.optimizers[0].param_groups[0]["lr"],
            },
            batch_size=found.tokens,
        )
        # The gradient of an update is that of the mean over its real tokens, on all ranks and in
        # all micro-batches. Lightning divides by the number of micro-batches, also in an update
        # that has fewer, and DDP by that of ranks: both are taken back.
        shares = self.trainer.accumulate_grad_batches * self.trainer.world_size
        return found.smoothed * (shares / batch.update_tokens)

    def on_before_optimizer_step(self, optimizer: torch.optim.Optimizer) -> None:
        if not self._finite.good():
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    parameter.grad = None  # the optimizer passes over it, with its decay

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        self._evaluate("val", batch, DecodeOptions())

    def on_validation_epoch_end(self) -> None:
        self.validation = self._finish("val")
        if not math.isfinite(self.validation.loss):
            raise UserError(
                f"the validation loss is {self.validation.loss} after {self.trainer.global_step}"
                f" updates: the training diverged; {REMEDY}"
            )

    def test_step(self, batch: Batch, batch_idx: int, dataloader_idx: int = 0) -> None:
        self._evaluate(self._data.test_parts[dataloader_idx], batch, self._decode)

    def on_test_epoch_end(self) -> None:
        self.tests = {part: self._finish(part) for part in self._data.test_parts}

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        self._finite.check()
        check_weights(self.model.parameters(), self.trainer.global_step)
        checkpoint["zhen"] = self.translator.description()

    @property
    def _data(self) -> TranslationData:
        return self.trainer.datamodule  # type: ignore[attr-defined]

    def _named(self, indices: list[int]) -> str:
        """Training pairs by their numbers in the corpus, which cleaning and `max_length` thin."""
        pairs = self._data.split("train")
        numbers = ", ".join(map(str, pairs.rows[indices]))
        first = pairs.where(indices[0])
        return f"pairs {numbers} of {self._data.key('train')} (counted from 0; {first} first)"

    def _evaluate(self, split: str, batch: Batch, options: DecodeOptions) -> None:
        if split not in self._totals:
            self._totals[split] = SplitTotals().to(self.device)
        loss = token_loss(self.scored.model, batch, self._label_smoothing)
        found = self.scored.decode(batch.source, options)
        self._totals[split].update(batch, loss, [best[0].text for best in found])

    def _finish(self, split: str) -> Evaluation:
        pairs = self._data.split(split)
        found = self._totals.pop(split).compute(pairs, self.translator.target_lang)
        name = split if split in ("val", "test") else f"test/{split}"
        self.log_dict(
            {
                f"{name}/loss": found.loss,
                f"{name}/nll": found.nll,
                f"{name}/perplexity": found.perplexity,
                f"{name}/bleu": found.scores.bleu,
                f"{name}/chrf": found.scores.chrf,
            },
            rank_zero_only=True,
        )
        return found


def parameter_groups(model: nn.Module) -> list[dict[str, Any]]:
    """Matrices, which weight decay may shrink, and vectors (biases, norms), which it must not."""
    parameters = list(model.parameters())
    return [
        {"params": [p for p in parameters if p.ndim > 1]},
        {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
    ]
