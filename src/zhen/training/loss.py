"""The training loss: cross-entropy over the real target tokens."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from zhen.data import Batch
from zhen.model import Transformer


@dataclass(frozen=True)
class TokenLoss:
    """Sums over the real target tokens of a batch, and their number."""

    smoothed: Tensor  # label-smoothed cross-entropy, nats
    nll: Tensor  # plain negative log-likelihood, nats
    tokens: int


class SmoothedCrossEntropy(torch.autograd.Function):
    """Sums of the label-smoothed cross-entropy and of the negative log-likelihood.

    Label smoothing (Szegedy et al. 2016; Vaswani et al. 2017, section 5.4): the wanted
    distribution is 1 - ε on the label plus ε / V on each of the V pieces. The gradient for the
    logits is softmax(logits) - wanted. Written out, since autograd would go over (N, V), the
    largest tensor of a step, for each of the loss's parts.
    """

    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, labels: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor]:
        """Logits (N, V) and labels (N,) to two scalars; the second one has no gradient."""
        # float32 at least: in bfloat16 the sum over the vocabulary would lose small probabilities.
        dtype = torch.promote_types(logits.dtype, torch.float32)
        log_probs = logits.log_softmax(dim=-1, dtype=dtype)
        nll = F.nll_loss(log_probs, labels, reduction="sum")
        uniform = -log_probs.mean(dim=-1).sum()
        ctx.save_for_backward(log_probs, labels)
        ctx.smoothing, ctx.dtype = smoothing, logits.dtype
        ctx.mark_non_differentiable(nll)
        return (1 - smoothing) * nll + smoothing * uniform, nll

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        """(softmax - wanted), times the gradient of the first scalar."""
        log_probs, labels = ctx.saved_tensors
        # In place: (N, V) more would cost as much as the rest. So there is no second backward.
        difference = log_probs.exp_().sub_(ctx.smoothing / log_probs.size(-1))
        difference[torch.arange(len(labels), device=labels.device), labels] -= 1 - ctx.smoothing
        return difference.mul_(gradients[0]).to(ctx.dtype), None, None


def token_loss(model: Transformer, batch: Batch, label_smoothing: float) -> TokenLoss:
    """Score a batch's labels given everything before them.

    Padding is taken out before the output matrix, so that it costs nothing and can enter no sum.

    Args:
        label_smoothing: ε, in [0, 1).
    """
    real = batch.labels != model.pad_id  # (B, T)
    hidden = model.hidden(batch.source, batch.target)[real]  # (N, D), the real tokens alone
    labels = batch.labels[real]  # (N,)
    logits = model.logits(hidden)  # (N, V)
    smoothed, nll = SmoothedCrossEntropy.apply(logits, labels, label_smoothing)
    return TokenLoss(smoothed, nll, hidden.size(0))
