"""Greedy search and sampling: one piece after the other, and none is ever taken back."""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from zhen.decoding.next_piece import NEVER, next_log_probs
from zhen.decoding.options import DecodeOptions, Hypothesis
from zhen.decoding.sampling import draw, generator
from zhen.model import Transformer


@dataclass
class Path:
    """A translation on its way; `number` tells those of one sentence apart."""

    sentence: int
    number: int
    limit: int
    ids: list[int] = field(default_factory=list)
    log_p: float = 0.0

    def take(self, log_p: float, piece: int, eos_id: int) -> bool:
        """Go on by one piece; True at the end, which is here too where nothing may follow."""
        if log_p == NEVER:
            return True
        self.ids.append(piece)
        self.log_p += log_p
        return piece == eos_id or len(self.ids) == self.limit

    def hypothesis(self, options: DecodeOptions, eos_id: int) -> Hypothesis:
        score = options.score(self.log_p, len(self.ids))
        return Hypothesis([piece for piece in self.ids if piece != eos_id], score)


# From log P (N, V) of what follows each of N paths to log P (N,) and piece (N,) of what is taken.
Choice = Callable[[Tensor, list[Path]], tuple[Tensor, Tensor]]


def one_by_one(
    model: Transformer,
    source: Tensor,
    options: DecodeOptions,
    limits: list[int],
    fit_threads: Callable[[int], None],
    *,
    bos_id: int,
    eos_id: int,
) -> list[list[Hypothesis]]:
    """Take the most probable piece at each step, or draw it with `do_sample`. See `generate`.

    Args:
        limits: longest hypothesis of each sentence.
        fit_threads: called before each step with its rows.
    """
    choose = by_chance(model, source, options) if options.do_sample else likeliest
    count, device = options.num_return_sequences, source.device
    paths = [
        Path(sentence, number, limit)
        for sentence, limit in enumerate(limits)
        for number in range(count)
    ]
    cache = model.start(source)
    if count > 1:
        cache.select(torch.arange(len(limits), device=device).repeat_interleave(count))
    running = paths  # those still in the batch
    last = torch.full((len(paths), 1), bos_id, device=device)
    while running:
        fit_threads(len(running))
        log_probs = next_log_probs(
            model.step(last, cache)[:, 0],
            [path.ids for path in running],
            options,
            never=(model.pad_id, bos_id),
            eos_id=eos_id,
        )  # (N, V)
        values, pieces = choose(log_probs, running)
        keep = [
            at
            for at, (path, log_p, piece) in enumerate(
                zip(running, values.tolist(), pieces.tolist(), strict=True)
            )
            if not path.take(log_p, piece, eos_id)
        ]
        if len(keep) < len(running):
            running = [running[at] for at in keep]
            kept = torch.tensor(keep, device=device, dtype=torch.int64)
            pieces = pieces[kept]
            cache.select(kept)
        last = pieces.unsqueeze(1)
    found: list[list[Hypothesis]] = [[] for _ in limits]
    for path in paths:
        found[path.sentence].append(path.hypothesis(options, eos_id))
    return [sorted(each, key=lambda hypothesis: -hypothesis.score) for each in found]


def likeliest(log_probs: Tensor, _: list[Path]) -> tuple[Tensor, Tensor]:
    """The choice of greedy search."""
    best = log_probs.max(dim=-1)
    return best.values, best.indices


def by_chance(model: Transformer, source: Tensor, options: DecodeOptions) -> Choice:
    """The choice of sampling, with a generator of its own for each translation."""
    sentences = [[piece for piece in ids if piece != model.pad_id] for ids in source.tolist()]
    chances = [
        [generator(options.seed, ids, number) for number in range(options.num_return_sequences)]
        for ids in sentences
    ]

    def choose(log_probs: Tensor, paths: list[Path]) -> tuple[Tensor, Tensor]:
        return draw(log_probs, options, [chances[path.sentence][path.number] for path in paths])

    return choose
