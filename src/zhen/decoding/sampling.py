"""Drawing the next piece by chance: temperature, top-k and top-p."""

from collections.abc import Sequence
from hashlib import blake2b

import torch
from torch import Tensor

from zhen.decoding.next_piece import NEVER
from zhen.decoding.options import DecodeOptions


def narrowed(log_probs: Tensor, options: DecodeOptions) -> Tensor:
    """The distribution that is drawn from, (N, V), where `log_probs` (N, V) is the model's.

    In this order: temperature, P_i^(1/temperature) scaled to the sum 1; the `top_k` likeliest,
    scaled again (Fan et al. 2018, section 5.2); the fewest likeliest that together reach `top_p`,
    scaled again (Holtzman et al. 2020, section 3.1).
    """
    # The likeliest at 0, and no division by what float32 takes for 0: a temperature near 0 would
    # leave nothing to draw from.
    scaled = log_probs - log_probs.max(dim=-1, keepdim=True).values
    scaled /= max(options.temperature, torch.finfo(torch.float32).tiny)
    if 0 < options.top_k < scaled.size(-1):
        least = scaled.topk(options.top_k, dim=-1).values[:, -1:]
        scaled.masked_fill_(scaled < least, NEVER)
    if options.top_p < 1:
        probs, pieces = scaled.softmax(dim=-1).sort(dim=-1, descending=True)
        likelier = probs.cumsum(dim=-1) - probs  # together, of the pieces before this one
        beyond = likelier >= options.top_p
        scaled.masked_fill_(beyond.scatter(1, pieces, beyond), NEVER)
    return scaled.softmax(dim=-1)


def draw(
    log_probs: Tensor, options: DecodeOptions, chances: Sequence[torch.Generator]
) -> tuple[Tensor, Tensor]:
    """Draw one piece a row: log P of each (N,), as `log_probs` has it, and the pieces (N,).

    The largest of P_i / E_i, with exponential random numbers E_i, is i with probability P_i. A
    piece keeps its number whatever the others' order is, so that a difference in rounding changes
    a draw only where the two largest are as good as equal.

    Args:
        log_probs: (N, V).
        chances: for each row where its numbers come from, on the CPU.
    """
    probs = narrowed(log_probs, options)
    noise = torch.stack(
        [torch.empty(probs.size(-1)).exponential_(generator=chance) for chance in chances]
    ).to(probs.device)
    drawn = (probs / noise).argmax(dim=-1, keepdim=True)
    return log_probs.gather(1, drawn).squeeze(1), drawn.squeeze(1)


def generator(seed: int, source: Sequence[int], number: int) -> torch.Generator:
    """Where the draws of a sentence's translation `number` come from.

    It follows from these three alone, so what is drawn depends neither on the batch nor on the
    order.
    """
    digest = blake2b(f"{seed} {number} {list(source)}".encode(), digest_size=8).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest, "big"))
