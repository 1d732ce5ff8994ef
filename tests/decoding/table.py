"""Hand-made distributions in the Transformer's place, and every sentence they make possible.

`Table` has the part of a Transformer that decoding uses; its next-piece distribution is a function
of the source's first piece and of the pieces so far.
"""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from zhen.decoding import DecodeOptions, Hypothesis, generate
from zhen.model import Transformer

V = 20  # vocabulary of `some_sources`
PAD, BOS, EOS, A, B, C = range(6)
Prefix = tuple[int, ...]
Distribution = Callable[[int, Prefix], dict[int, float]]


@dataclass
class TableCache:
    firsts: list[int]  # the first piece of each sentence's source
    beams: list[list[Prefix]]  # of each sentence

    def select(self, rows: Tensor) -> None:
        self.firsts = [self.firsts[row] for row in rows.tolist()]
        self.beams = [self.beams[row] for row in rows.tolist()]

    def follow(self, parents: Tensor) -> None:
        self.beams = [
            [beams[parent] for parent in of_sentence]
            for beams, of_sentence in zip(self.beams, parents.tolist(), strict=True)
        ]


class Table:
    """The part of a Transformer that decoding uses."""

    pad_id = PAD
    num_parameters = 0

    def __init__(self, next_piece: Distribution, vocab_size: int, max_positions: int = 100) -> None:
        self.next_piece = next_piece
        self.vocab_size = vocab_size
        self.max_positions = max_positions
        self.batch_sizes: list[int] = []

    def start(self, source: Tensor) -> TableCache:
        return TableCache(source[:, 0].tolist(), [[()] for _ in source])

    def step(self, last: Tensor, cache: TableCache) -> Tensor:
        """log P as logits; what the distribution leaves out is impossible."""
        self.batch_sizes.append(last.numel())
        cache.beams = [
            [(*beam, piece) for beam, piece in zip(beams, pieces, strict=True)]
            for beams, pieces in zip(cache.beams, last.tolist(), strict=True)
        ]
        logits = torch.full((*last.shape, self.vocab_size), float("-inf"))
        for row, (first, beams) in enumerate(zip(cache.firsts, cache.beams, strict=True)):
            for column, beam in enumerate(beams):
                assert beam[0] == BOS
                for piece, p in self.next_piece(first, beam[1:]).items():
                    logits[row, column, piece] = math.log(p)
        return logits


def fixed(table: dict[Prefix, dict[int, float]]) -> Table:
    """The same for every source; a beginning that the table leaves out must end."""
    return Table(lambda _, prefix: table.get(prefix, {EOS: 1.0}), vocab_size=6)


def by_chance(seed: int, pieces: Sequence[int]) -> Table:
    """A random distribution over `pieces` after each beginning."""

    def next_piece(first: int, prefix: Prefix) -> dict[int, float]:
        rng = random.Random(f"{seed} {first} {prefix}")
        weights = [rng.random() ** 2 + 1e-3 for _ in pieces]
        return {piece: w / sum(weights) for piece, w in zip(pieces, weights, strict=True)}

    return Table(next_piece, vocab_size=max(pieces) + 1)


def search(model, sources: Sequence[int] | Tensor = (A,), **options) -> list[list[Hypothesis]]:
    """All that the search finds, unless `num_return_sequences` says otherwise."""
    options.setdefault("num_return_sequences", options.get("num_beams", 1))
    ids = sources if isinstance(sources, Tensor) else torch.tensor([[first] for first in sources])
    return generate(model, ids, DecodeOptions(**options), bos_id=BOS, eos_id=EOS)


def everything(model: Table, first: int, limit: int, penalty: float) -> list[Hypothesis]:
    """Every sentence of at most `limit` pieces, and every beginning of `limit`, best first."""
    found: list[Hypothesis] = []

    def go_on(prefix: Prefix, log_p: float) -> None:
        for piece, p in model.next_piece(first, prefix).items():
            total, length = log_p + math.log(p), len(prefix) + 1
            if piece == EOS:
                found.append(Hypothesis(list(prefix), total / length**penalty))
            elif length == limit:
                found.append(Hypothesis([*prefix, piece], total / length**penalty))
            else:
                go_on((*prefix, piece), total)

    go_on((), 0.0)
    return sorted(found, key=lambda hypothesis: hypothesis.score, reverse=True)


@torch.no_grad()
def forced(model: Transformer, source: Tensor, said: Sequence[int]) -> float:
    """log P of pieces, the end piece with them if it was said, after a source (1, S)."""
    logits = model(source, torch.tensor([[BOS, *said[:-1]]]))[0]
    logits[:, [PAD, BOS]] = float("-inf")
    return logits.log_softmax(-1)[range(len(said)), said].sum().item()


def assert_same(found: Sequence[Hypothesis], expected: Sequence[Hypothesis]) -> None:
    assert [h.ids for h in found] == [h.ids for h in expected]
    assert [h.score for h in found] == pytest.approx([h.score for h in expected], abs=1e-4)


def pad(rows: Sequence[Sequence[int]]) -> Tensor:
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[PAD] * (longest - len(row))] for row in rows])


def some_sources(count: int, seed: int = 0) -> list[list[int]]:
    rng = random.Random(seed)
    return [[rng.randrange(3, V) for _ in range(rng.randint(1, 9))] + [EOS] for _ in range(count)]
