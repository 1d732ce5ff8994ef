"""What can be asked of decoding, and what comes back."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class DecodeOptions:
    """The options carry the names they have in `transformers`.

    Args:
        num_beams: hypotheses kept at each step; 1 is greedy search.
        length_penalty: hypotheses are ranked by log P / length^length_penalty, the length
            counted in pieces with the end piece; above 1 favours long ones, 0 ranks by log P,
            below 0 favours short ones; from -10 to 10, beyond which the power overflows.
        max_new_tokens: longest hypothesis, in pieces with the end piece; None allows each sentence
            twice its source's pieces plus 10.

    Raises:
        ValueError: a count is below 1, or `length_penalty` is out of range.
    """

    num_beams: int = 1
    length_penalty: float = 1.0
    max_new_tokens: int | None = None

    def __post_init__(self) -> None:
        if self.num_beams < 1:
            raise ValueError(f"`num_beams` must be at least 1, but is {self.num_beams}")
        if not -10 <= self.length_penalty <= 10:
            raise ValueError(
                f"`length_penalty` must be from -10 to 10, but is {self.length_penalty}"
            )
        if self.max_new_tokens is not None and self.max_new_tokens < 1:
            raise ValueError(f"`max_new_tokens` must be at least 1, but is {self.max_new_tokens}")

    def limits(self, source_lengths: Tensor, max_positions: int) -> Tensor:
        """Longest hypothesis of each sentence (B,), from its own length alone.

        A limit taken from the batch would let a sentence's translation depend on its neighbours.
        """
        if self.max_new_tokens is None:
            return (2 * source_lengths + 10).clamp(max=max_positions)
        return torch.full_like(source_lengths, min(self.max_new_tokens, max_positions))


@dataclass(frozen=True)
class Hypothesis:
    """One translation: its pieces without the end piece, and log P / length^length_penalty."""

    ids: list[int]
    score: float
