"""Drawing the next piece by chance: temperature, top-k and top-p."""

import random
from collections.abc import Iterable

import torch
from torch import Tensor

from zhen.decoding.options import DecodeOptions


def likeliest_first(log_probs: Tensor, options: DecodeOptions) -> tuple[Tensor, Tensor]:
    """What is drawn from: probabilities (N, V'), falling, and their pieces (N, V').

    In this order: temperature, P_i^(1/temperature) scaled to the sum 1; the `top_k` likeliest,
    scaled again (Fan et al. 2018, section 5.2); the fewest likeliest that together reach `top_p`,
    scaled again (Holtzman et al. 2020, section 3.1).

    Args:
        log_probs: (N, V).
    """
    scaled, pieces = log_probs.sort(dim=-1, descending=True)
    # The likeliest at 0, and no division by what float32 takes for 0: a temperature near 0 would
    # leave nothing to draw from.
    scaled = (scaled - scaled[:, :1]) / max(options.temperature, torch.finfo(torch.float32).tiny)
    if options.top_k:
        scaled, pieces = scaled[:, : options.top_k], pieces[:, : options.top_k]
    probs = scaled.softmax(dim=-1)
    likelier = probs.cumsum(dim=-1) - probs  # together, of the pieces before this one
    probs = probs.masked_fill(likelier >= options.top_p, 0.0)
    return probs / probs.sum(dim=-1, keepdim=True), pieces


def draw(log_probs: Tensor, options: DecodeOptions, chances: list[float]) -> tuple[Tensor, Tensor]:
    """Draw one piece a row: log P of each (N,), as `log_probs` has it, and the pieces (N,).

    Args:
        log_probs: (N, V).
        chances: a number in [0, 1) for each row, which decides (the inverse of the cumulated
            distribution).
    """
    probs, pieces = likeliest_first(log_probs, options)
    reached = probs.cumsum(dim=-1)
    # Rounding may leave the sum below 1: the last piece with a probability bounds the rank.
    last = (probs > 0).sum(dim=-1, keepdim=True) - 1
    at = torch.tensor(chances, device=probs.device, dtype=probs.dtype).unsqueeze(1)
    rank = torch.searchsorted(reached, at, right=True).minimum(last).clamp(min=0)  # (N, 1)
    drawn = pieces.gather(1, rank)
    return log_probs.gather(1, drawn).squeeze(1), drawn.squeeze(1)


def generators(sources: Iterable[list[int]], options: DecodeOptions) -> list[list[random.Random]]:
    """For each sentence and each of its translations a generator of its own.

    It is seeded by `options.seed`, the sentence and the translation's number, so that what is
    drawn depends neither on the batch nor on the order.
    """
    return [
        [random.Random(f"{options.seed} {n} {ids}") for n in range(options.num_return_sequences)]
        for ids in sources
    ]
