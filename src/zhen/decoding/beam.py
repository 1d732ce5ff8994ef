"""Beam search: the `num_beams` most probable beginnings of each sentence, side by side."""

from collections.abc import Callable

import torch
from torch import Tensor

from zhen.decoding.next_piece import NEVER, next_log_probs
from zhen.decoding.options import DecodeOptions, Hypothesis
from zhen.model import Transformer

# A continuation: log P of the whole, the beam it continues, the piece it adds.
Candidate = tuple[float, int, int]


class Beams:
    """The search for the translations of one sentence.

    Of the 2k best continuations at a step, those that end and are among the best k are finished;
    the best k that do not end go on. The search is over when k are finished and the best
    beginning, at its present length, ranks below all of them. Beginnings that reach the limit are
    finished as they stand, and so are those that nothing may follow, if there is nothing else.
    """

    def __init__(self, options: DecodeOptions, limit: int, bos_id: int) -> None:
        self.options = options
        self.limit = limit
        # Of each beam; there is one until the first step makes them `num_beams`.
        self.ids: list[list[int]] = [[]]
        self.last = [bos_id]
        self.log_p = [0.0]
        self.parents = [0]
        self.finished: list[Hypothesis] = []

    def advance(self, candidates: list[Candidate], eos_id: int) -> bool:
        """Take the best continuations, best first; True when the search is over."""
        k, length = self.options.num_beams, len(self.ids[0]) + 1
        going_on: list[Candidate] = []
        for rank, (log_p, parent, piece) in enumerate(candidates):
            if log_p == NEVER:
                continue
            if piece != eos_id:
                going_on.append((log_p, parent, piece))
            elif rank < k:
                self._finish(self.ids[parent], log_p, length)
        if not going_on:
            if not self.finished:
                self._finish_all()
            return True
        del going_on[k:]
        # A place without a beginning holds one that is impossible.
        going_on += [(NEVER, *going_on[0][1:])] * (k - len(going_on))
        self.ids = [[*self.ids[parent], piece] for _, parent, piece in going_on]
        self.log_p = [log_p for log_p, _, _ in going_on]
        self.parents = [parent for _, parent, _ in going_on]
        self.last = [piece for _, _, piece in going_on]
        if length == self.limit:
            self._finish_all()
            return True
        best = self.options.score(self.log_p[0], length)
        return len(self.finished) == k and self.finished[-1].score >= best

    def _finish_all(self) -> None:
        for ids, log_p in zip(self.ids, self.log_p, strict=True):
            if log_p != NEVER:
                self._finish(ids, log_p, len(ids))

    def _finish(self, ids: list[int], log_p: float, length: int) -> None:
        self.finished.append(Hypothesis(ids, self.options.score(log_p, length)))
        self.finished.sort(key=lambda hypothesis: -hypothesis.score)
        del self.finished[self.options.num_beams :]


def beam_search(
    model: Transformer,
    source: Tensor,
    options: DecodeOptions,
    limits: list[int],
    fit_threads: Callable[[int], None],
    *,
    bos_id: int,
    eos_id: int,
) -> list[list[Hypothesis]]:
    """Keep the `num_beams` most probable beginnings of each sentence. See `generate`.

    Args:
        limits: longest hypothesis of each sentence.
        fit_threads: called before each step with its rows.
    """
    device = source.device
    searches = [Beams(options, limit, bos_id) for limit in limits]
    running = searches  # those still in the batch
    cache = model.start(source)
    while running:
        fit_threads(len(running) * options.num_beams)
        last = torch.tensor([beams.last for beams in running], device=device)  # (B, k)
        log_probs = next_log_probs(
            model.step(last, cache).flatten(0, 1),
            [ids for beams in running for ids in beams.ids],
            options,
            never=(model.pad_id, bos_id),
            eos_id=eos_id,
        )  # (B * k, V)
        log_p = torch.tensor([beams.log_p for beams in running], device=device)  # (B, k)
        keep = [
            at
            for at, (beams, candidates) in enumerate(
                zip(
                    running,
                    best_continuations(log_p, log_probs, 2 * options.num_beams),
                    strict=True,
                )
            )
            if not beams.advance(candidates, eos_id)
        ]
        if len(keep) < len(running):
            running = [running[at] for at in keep]
            cache.select(torch.tensor(keep, device=device, dtype=torch.int64))
        if running:
            cache.follow(torch.tensor([beams.parents for beams in running], device=device))
    return [beams.finished[: options.num_return_sequences] for beams in searches]


def best_continuations(log_p: Tensor, log_probs: Tensor, count: int) -> list[list[Candidate]]:
    """The `count` best continuations of each sentence's beams, best first; fewer if there are.

    Args:
        log_p: (B, k), of the beginnings.
        log_probs: (B * k, V), of what follows each.
    """
    # First within each beam, then among the sentence's: two short searches instead of a long one.
    best, pieces = log_probs.topk(min(count, log_probs.size(-1)), dim=-1)  # (B * k, C)
    each = best.size(-1)
    totals = (log_p.unsqueeze(2) + best.view(*log_p.shape, each)).flatten(1)  # (B, k * C)
    totals, at = totals.topk(min(count, totals.size(-1)), dim=-1)  # (B, count)
    pieces = pieces.view(len(log_p), -1).gather(1, at)
    parents = at // each
    return [
        list(zip(*columns, strict=True))
        for columns in zip(totals.tolist(), parents.tolist(), pieces.tolist(), strict=True)
    ]
