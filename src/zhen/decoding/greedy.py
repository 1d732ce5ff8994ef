"""Greedy search and sampling: one piece after the other, and none is ever taken back."""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from zhen.decoding.next_piece import NEVER, next_log_probs
from zhen.decoding.options import DecodeOptions, Hypothesis
from zhen.decoding.sampling import draw, generators
from zhen.model import Transformer

# From log P (N, V) and the row's sentence and path to log P (N,) and piece (N,) of what follows.
Choice = Callable[[Tensor, list[tuple[int, int]]], tuple[Tensor, Tensor]]


@dataclass
class Path:
    """A translation on its way."""

    ids: list[int] = field(default_factory=list)
    log_p: float = 0.0
    ended: bool = False

    def take(self, log_p: float, piece: int, eos_id: int, limit: int) -> None:
        """Go on by one piece; what is left where nothing may follow ends as it stands."""
        if self.ended:
            return
        possible = log_p > NEVER  # neither -inf nor NaN
        if possible:
            self.ids.append(piece)
            self.log_p += log_p
        self.ended = not possible or piece == eos_id or len(self.ids) == limit

    def hypothesis(self, options: DecodeOptions, eos_id: int) -> Hypothesis:
        score = options.score(self.log_p, len(self.ids))
        return Hypothesis([piece for piece in self.ids if piece != eos_id], score)


def greedy_search(
    model: Transformer, source: Tensor, options: DecodeOptions, *, bos_id: int, eos_id: int
) -> list[list[Hypothesis]]:
    """Take the most probable piece at each step. See `generate`."""

    def likeliest(log_probs: Tensor, _: list[tuple[int, int]]) -> tuple[Tensor, Tensor]:
        best = log_probs.max(dim=-1)
        return best.values, best.indices

    return _one_by_one(model, source, options, likeliest, bos_id=bos_id, eos_id=eos_id)


def sample(
    model: Transformer, source: Tensor, options: DecodeOptions, *, bos_id: int, eos_id: int
) -> list[list[Hypothesis]]:
    """Draw each piece by chance. See `generate`."""
    sentences = [[piece for piece in ids if piece != model.pad_id] for ids in source.tolist()]
    chance = generators(sentences, options)

    def by_chance(log_probs: Tensor, rows: list[tuple[int, int]]) -> tuple[Tensor, Tensor]:
        return draw(
            log_probs, options, [chance[sentence][path].random() for sentence, path in rows]
        )

    return _one_by_one(model, source, options, by_chance, bos_id=bos_id, eos_id=eos_id)


def _one_by_one(
    model: Transformer,
    source: Tensor,
    options: DecodeOptions,
    choose: Choice,
    *,
    bos_id: int,
    eos_id: int,
) -> list[list[Hypothesis]]:
    count = options.num_return_sequences
    limits = options.limits((source != model.pad_id).sum(dim=1), model.max_positions)
    paths = [[Path() for _ in range(count)] for _ in limits]
    running = list(range(len(limits)))  # sentences still in the batch
    last = torch.full((len(running), count), bos_id, device=source.device)
    cache = model.start(source)
    while running:
        logits = model.step(last, cache).flatten(0, 1)  # (B * count, V)
        rows = [(sentence, path) for sentence in running for path in range(count)]
        beginnings = [paths[sentence][path].ids for sentence, path in rows]
        log_probs = next_log_probs(
            logits, beginnings, options, never=(model.pad_id, bos_id), eos_id=eos_id
        )
        values, last = choose(log_probs, rows)
        for (sentence, path), log_p, piece in zip(
            rows, values.tolist(), last.tolist(), strict=True
        ):
            paths[sentence][path].take(log_p, piece, eos_id, limits[sentence])
        last = last.view(-1, count)
        keep = [
            at
            for at, sentence in enumerate(running)
            if not all(path.ended for path in paths[sentence])
        ]
        if len(keep) < len(running):
            kept = torch.tensor(keep, device=source.device, dtype=torch.int64)
            running = [running[at] for at in keep]
            last = last[kept]
            cache.select(kept)
    found = [[path.hypothesis(options, eos_id) for path in each] for each in paths]
    return [sorted(each, key=lambda hypothesis: -hypothesis.score) for each in found]
