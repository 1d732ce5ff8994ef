"""Dropout (Srivastava et al. 2014), with random bits drawn in bulk on the CPU.

PyTorch's CPU kernel draws one Bernoulli number an element, which took a quarter of a training
step of the small models. Here one 64-bit draw serves four elements.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

LEVELS = 2**16


class Dropout(nn.Module):
    """Zero each element with probability `p` in training and scale the others by 1 / (1 - p).

    On the CPU `p` is rounded to a multiple of 2^-16. Reproducible from `torch.manual_seed`.

    Args:
        p: probability of dropping an element, in [0, 1).
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.p == 0:
            return x
        # What torch.compile makes draws its bits as it goes, and cannot take in what follows.
        if x.device.type != "cpu" or torch.compiler.is_compiling():
            return F.dropout(x, self.p)
        dropped = min(round(self.p * LEVELS), LEVELS - 1)
        draws = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(2**63), None)
        draws = draws.view(torch.int16)[: x.numel()].view(x.shape)
        keep = torch.empty(x.shape, dtype=x.dtype)  # 0 and 1: products of two types are slow
        torch.ge(draws, dropped - LEVELS // 2, out=keep)
        return x * keep * (LEVELS / (LEVELS - dropped))
