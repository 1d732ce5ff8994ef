"""The distribution that every kind of search chooses from."""

from collections.abc import Sequence

from torch import Tensor

from zhen.decoding.options import DecodeOptions

NEVER = float("-inf")


def next_log_probs(
    logits: Tensor,
    beginnings: Sequence[Sequence[int]],
    options: DecodeOptions,
    *,
    never: Sequence[int],
    eos_id: int,
) -> Tensor:
    """log P of the piece that follows each of N beginnings.

    The pieces of `never`, padding and the start piece, are no part of a sentence: the others share
    their probability. What the options forbid keeps its probability, though nothing can have it,
    so that the score of a sentence is the model's whatever the options are.

    Args:
        logits: (N, V); may be overwritten.
        beginnings: the pieces so far, of each row.

    Returns:
        (N, V), float32; -inf for what must not follow, and where the model gives no number.
    """
    logits = logits.float()
    for piece in never:
        logits[:, piece] = NEVER
    log_probs = logits.log_softmax(dim=-1)
    # One NaN makes its whole row NaN, which any search would take for the best.
    log_probs[log_probs[:, eos_id].isnan()] = NEVER
    if options.min_new_tokens:
        short = [row for row, ids in enumerate(beginnings) if len(ids) < options.min_new_tokens]
        log_probs[short, eos_id] = NEVER
    if options.no_repeat_ngram_size:
        for row, ids in enumerate(beginnings):
            log_probs[row, repeating(ids, options.no_repeat_ngram_size)] = NEVER
    return log_probs


def repeating(ids: Sequence[int], n: int) -> list[int]:
    """The pieces that would end a run of n pieces which `ids` holds already."""
    begun = ids[len(ids) - n + 1 :]
    return [ids[end] for end in range(n - 1, len(ids)) if ids[end - n + 1 : end] == begun]
