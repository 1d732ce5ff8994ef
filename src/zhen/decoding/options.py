"""What can be asked of decoding, and what comes back."""

import math
from dataclasses import dataclass

MOST_HYPOTHESES = 10_000  # of a sentence; with more, memory ends before the search does


@dataclass(frozen=True)
class DecodeOptions:
    """The options carry the names, and the meaning, that they have in `transformers`.

    Args:
        num_beams: hypotheses kept at each step; 1 is greedy search; at most 10,000.
        length_penalty: hypotheses are ranked by log P / length^length_penalty, the length
            counted in pieces with the end piece; above 1 favours long ones, 0 ranks by log P,
            below 0 favours short ones; from -10 to 10, which keeps the power finite.
        max_new_tokens: longest hypothesis, in pieces with the end piece; None allows each sentence
            twice its source's pieces plus 10. The model's `max_positions` is a limit too.
        min_new_tokens: shortest hypothesis, in pieces without the end piece, within these limits.
        no_repeat_ngram_size: no hypothesis holds the same run of so many pieces twice; 0 lets it.
        num_return_sequences: hypotheses returned for each sentence, best first; at most 10,000.
        do_sample: draw each piece by chance instead, from P made narrower by what follows.
        temperature: P_i becomes P_i^(1/temperature), scaled to the sum 1; below 1 sharpens; at
            most 1,000,000.
        top_k: draw from this many of the likeliest pieces; 0 draws from all.
        top_p: draw from the fewest likeliest pieces that have together at least this much of P.
        seed: the draws of a sentence follow from it and from the sentence alone.

    Raises:
        ValueError: a value is out of range, or two contradict each other.
    """

    num_beams: int = 1
    length_penalty: float = 1.0
    max_new_tokens: int | None = None
    min_new_tokens: int = 0
    no_repeat_ngram_size: int = 0
    num_return_sequences: int = 1
    do_sample: bool = False
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("num_beams", "num_return_sequences"):
            value = getattr(self, name)
            if not 1 <= value <= MOST_HYPOTHESES:
                raise ValueError(f"`{name}` must be from 1 to {MOST_HYPOTHESES}, but is {value}")
        self._at_least("max_new_tokens", 1)
        for name in ("min_new_tokens", "no_repeat_ngram_size", "top_k", "seed"):
            self._at_least(name, 0)
        if not -10 <= self.length_penalty <= 10:
            raise ValueError(
                f"`length_penalty` must be from -10 to 10, but is {self.length_penalty}"
            )
        if not 0 < self.temperature <= 1e6:
            raise ValueError(
                f"`temperature` must be above 0 and at most 1000000, but is {self.temperature}"
            )
        if not 0 < self.top_p <= 1:
            raise ValueError(f"`top_p` must be above 0 and at most 1, but is {self.top_p}")
        if self.max_new_tokens is not None and self.min_new_tokens > self.max_new_tokens:
            raise ValueError(
                f"`min_new_tokens` must be at most `max_new_tokens` ({self.max_new_tokens}),"
                f" but is {self.min_new_tokens}"
            )
        if self.do_sample:
            if self.num_beams > 1:
                raise ValueError(
                    f"`num_beams` must be 1 with `do_sample=true`, but is {self.num_beams}"
                )
            return
        if self.num_return_sequences > self.num_beams:
            raise ValueError(
                f"`num_return_sequences` must be at most `num_beams` ({self.num_beams}) without"
                f" `do_sample=true`, but is {self.num_return_sequences}"
            )
        for name, default in (("temperature", 1.0), ("top_k", 0), ("top_p", 1.0), ("seed", 0)):
            if getattr(self, name) != default:
                raise ValueError(
                    f"`{name}` must be {default} without `do_sample=true`, but is"
                    f" {getattr(self, name)}"
                )

    def _at_least(self, name: str, least: int) -> None:
        value = getattr(self, name)
        if value is not None and value < least:
            raise ValueError(f"`{name}` must be at least {least}, but is {value}")

    @property
    def hypotheses(self) -> int:
        """How many of a sentence are decoded at once, which the memory grows with."""
        return max(self.num_beams, self.num_return_sequences)

    def limit(self, source_length: int, max_positions: int) -> int:
        """Longest hypothesis of a sentence, from its own length alone.

        A limit taken from the batch would let a sentence's translation depend on its neighbours.
        """
        longest = self.max_new_tokens or max(2 * source_length + 10, self.min_new_tokens + 1)
        return min(longest, max_positions)

    def score(self, log_p: float, length: int) -> float:
        """log P / length^length_penalty; the length counts the end piece.

        -inf without any piece, which is what is left where no piece had a probability.
        """
        return log_p / length**self.length_penalty if length else -math.inf


@dataclass(frozen=True)
class Hypothesis:
    """One translation: its pieces without the end piece, and log P / length^length_penalty."""

    ids: list[int]
    score: float
