"""The training loss: cross-entropy over the real target tokens."""

from dataclasses import dataclass

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


def token_loss(model: Transformer, batch: Batch, label_smoothing: float) -> TokenLoss:
    """Score a batch's labels given everything before them.

    Label smoothing (Szegedy et al. 2016; Vaswani et al. 2017, section 5.4): the wanted
    distribution is 1 - ε on the label plus ε / V on each of the V pieces. Padding is taken out
    before the output matrix, so that it costs nothing and can enter no sum.

    Args:
        label_smoothing: ε, in [0, 1).
    """
    real = batch.labels != model.pad_id  # (B, T)
    hidden = model.hidden(batch.source, batch.target)[real]  # (N, D), the real tokens alone
    labels = batch.labels[real]  # (N,)
    logits = model.logits(hidden)  # (N, V)
    # float32 at least: in bfloat16 the sum over the vocabulary would lose small probabilities.
    dtype = torch.promote_types(logits.dtype, torch.float32)
    log_probs = logits.log_softmax(dim=-1, dtype=dtype)
    nll = F.nll_loss(log_probs, labels, reduction="sum")
    uniform = -log_probs.mean(dim=-1).sum()
    smoothed = (1 - label_smoothing) * nll + label_smoothing * uniform
    return TokenLoss(smoothed, nll, hidden.size(0))
