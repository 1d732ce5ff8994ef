"""Greedy and beam search over cached decoding steps.

Shapes: B sentences, k beams, V vocabulary, T pieces so far. Sentences that are finished leave the
batch, so that the last long sentence is decoded alone.
"""

import torch
from torch import Tensor

from zhen.decoding.options import DecodeOptions, Hypothesis
from zhen.model import Transformer


@torch.inference_mode()
def generate(
    model: Transformer, source: Tensor, options: DecodeOptions, *, bos_id: int, eos_id: int
) -> list[list[Hypothesis]]:
    """Translate a batch of sources (B, S), padded at the end with `model.pad_id`.

    Returns:
        For each sentence its hypotheses, best first: one with greedy search, else `num_beams`, or
        fewer where no more are possible.
    """
    limits = options.limits((source != model.pad_id).sum(dim=1), model.max_positions)
    if options.num_beams == 1:
        return greedy_search(model, source, options, limits, bos_id=bos_id, eos_id=eos_id)
    return beam_search(model, source, options, limits, bos_id=bos_id, eos_id=eos_id)


def greedy_search(
    model: Transformer,
    source: Tensor,
    options: DecodeOptions,
    limits: Tensor,
    *,
    bos_id: int,
    eos_id: int,
) -> list[list[Hypothesis]]:
    """Take the most probable piece at each step.

    Args:
        limits: (B,), longest hypothesis of each sentence.
    """
    cache = model.start(source)
    rows = torch.arange(source.size(0), device=source.device)  # sentences still in the batch
    last = torch.full_like(rows, bos_id)
    score = torch.zeros(source.size(0), device=source.device)
    ids = torch.full((source.size(0), int(limits.max())), eos_id, device=source.device)
    lengths = torch.zeros_like(rows)
    while rows.numel():
        log_probs = _log_probs(model, model.step(last, cache), bos_id)  # (B', V)
        best, last = log_probs.max(dim=-1)
        score[rows] += best
        ids[rows, cache.length - 1] = last
        lengths[rows] += 1
        running = (last != eos_id) & (limits[rows] > cache.length)
        if not running.all():
            keep = running.nonzero().squeeze(1)
            rows, last = rows[keep], last[keep]
            cache.select(keep)
    score = score / lengths**options.length_penalty
    return [
        [Hypothesis(_until_end(row, eos_id), value)]
        for row, value in zip(ids.tolist(), score.tolist(), strict=True)
    ]


def beam_search(
    model: Transformer,
    source: Tensor,
    options: DecodeOptions,
    limits: Tensor,
    *,
    bos_id: int,
    eos_id: int,
) -> list[list[Hypothesis]]:
    """Keep the `num_beams` most probable beginnings of each sentence.

    Of the 2k best continuations at a step, those that end and are among the best k become
    finished hypotheses; the best k that do not end go on. A sentence is done when it has k
    finished hypotheses and its best beginning, at its present length, ranks below all of them.
    Beginnings that reach the limit are hypotheses too, ranked with the finished ones.

    Args:
        limits: (B,), longest hypothesis of each sentence.
    """
    k, device = options.num_beams, source.device
    finished: list[list[Hypothesis]] = [[] for _ in range(source.size(0))]
    rows = torch.arange(source.size(0), device=device)  # sentences still in the batch
    cache = model.start(source)
    cache.select(rows.repeat_interleave(k))
    ids = torch.full((len(rows), k, 1), bos_id, device=device)  # (B, k, T)
    # All beams begin equal; only the first may have children at the first step.
    scores = torch.full((len(rows), k), float("-inf"), device=device)
    scores[:, 0] = 0.0

    while rows.numel():
        log_probs = _log_probs(model, model.step(ids[:, :, -1].flatten(), cache), bos_id)
        vocab_size = log_probs.size(-1)
        totals = scores.unsqueeze(2) + log_probs.view(len(rows), k, vocab_size)  # (B, k, V)
        candidates, flat = totals.flatten(1).topk(2 * k, dim=1)  # (B, 2k)
        parents, pieces = flat // vocab_size, flat % vocab_size
        ends = pieces == eos_id

        _collect(finished, rows, ids, candidates, parents, ends, options)

        # The best k that go on; at most k of the 2k end, so there are always enough.
        order = ends.to(torch.int8).argsort(dim=1, stable=True)[:, :k]  # (B, k)
        scores = candidates.gather(1, order)
        parents, pieces = parents.gather(1, order), pieces.gather(1, order)
        ids = ids.gather(1, parents.unsqueeze(2).expand(-1, -1, ids.size(2)))
        ids = torch.cat([ids, pieces.unsqueeze(2)], dim=2)

        length = cache.length
        out_of_room = limits[rows] <= length
        done = out_of_room | _nothing_better(finished, rows, scores, length, options)
        for at in out_of_room.nonzero().squeeze(1).tolist():
            for beam in (scores[at] != float("-inf")).nonzero().squeeze(1).tolist():
                score = scores[at, beam].item() / length**options.length_penalty
                finished[rows[at]].append(Hypothesis(ids[at, beam, 1:].tolist(), score))
        keep = (~done).nonzero().squeeze(1)
        # Row i of the cache belongs to beam i % k of sentence i // k.
        cache.select((keep.unsqueeze(1) * k + parents[keep]).flatten())
        rows, ids, scores = rows[keep], ids[keep], scores[keep]

    return [sorted(f, key=lambda h: h.score, reverse=True)[:k] for f in finished]


def _collect(
    finished: list[list[Hypothesis]],
    rows: Tensor,
    ids: Tensor,
    candidates: Tensor,
    parents: Tensor,
    ends: Tensor,
    options: DecodeOptions,
) -> None:
    """Add the candidates that end, and rank among the best k of this step, to `finished`."""
    k, length = options.num_beams, ids.size(2)  # pieces after the start piece, with the end piece
    for at, rank in ends[:, :k].nonzero().tolist():
        score = candidates[at, rank].item()
        if score == float("-inf"):
            continue
        hypothesis = Hypothesis(
            ids[at, parents[at, rank], 1:].tolist(), score / length**options.length_penalty
        )
        best = finished[rows[at]]
        best.append(hypothesis)
        best.sort(key=lambda h: h.score, reverse=True)
        del best[k:]


def _nothing_better(
    finished: list[list[Hypothesis]],
    rows: Tensor,
    scores: Tensor,
    length: int,
    options: DecodeOptions,
) -> Tensor:
    """(B,), True where k hypotheses are finished and no running one ranks above the worst."""
    k = options.num_beams
    worst = [
        finished[row][-1].score if len(finished[row]) == k else float("-inf")
        for row in rows.tolist()
    ]
    best_running = scores[:, 0] / length**options.length_penalty
    return torch.tensor(worst, device=scores.device) >= best_running


def _log_probs(model: Transformer, logits: Tensor, bos_id: int) -> Tensor:
    """log P of the next piece, (N, V); padding and the start piece are no part of a sentence."""
    logits = logits.float()
    logits[:, [model.pad_id, bos_id]] = float("-inf")
    return logits.log_softmax(dim=-1)


def _until_end(ids: list[int], eos_id: int) -> list[int]:
    return ids[: ids.index(eos_id)] if eos_id in ids else ids
