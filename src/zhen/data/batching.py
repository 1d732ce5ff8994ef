"""Which pairs go together: batches of similar length within a token budget.

A plan is a pure function of (lengths, budget, seed, epoch), so every rank and every resumed run
computes the same one.
"""

import numpy as np
from numpy.typing import NDArray

Lengths = NDArray[np.int32]
Batch = NDArray[np.int64]  # indices of pairs


def plan_batches(lengths: Lengths, tokens: int, seed: int, epoch: int) -> list[Batch]:
    """Put every pair into exactly one batch of at most `tokens` padded tokens, in random order.

    Pairs are shuffled, then sorted by length, so that equal lengths meet different neighbours
    each epoch.

    Args:
        lengths: (N, 2), pieces of source and target with their control pieces.
        tokens: budget of a batch: rows x longest side.
        seed: of the run.
        epoch: counted from 0.

    Raises:
        ValueError: a pair alone is longer than the budget.
    """
    rng = np.random.default_rng((seed, epoch))
    order = rng.permutation(len(lengths))
    # Target length first: its padding costs the decoder and the output matrix.
    order = order[np.lexsort((lengths[order, 0], lengths[order, 1]))]
    batches = cut(order, lengths.max(axis=1), tokens)
    return [batches[i] for i in rng.permutation(len(batches))]


def share(batches: list[Batch], rank: int, world_size: int) -> list[Batch]:
    """The batches of one rank: every pair on one rank, as many batches on each.

    The largest batches are halved until the count divides evenly; a rank that ran out of batches
    would leave the others waiting for its gradients. Where all pairs stand alone in their batches,
    some batches get two, even if that is beyond the budget.

    Raises:
        ValueError: there are fewer pairs than ranks.
    """
    batches = list(batches)
    if sum(map(len, batches)) < world_size:
        raise ValueError(f"fewer pairs than ranks ({world_size}): use fewer devices")
    while len(batches) % world_size:
        largest = max(range(len(batches)), key=lambda i: len(batches[i]))
        if len(batches[largest]) == 1:  # none can be halved: the odd ones join others
            even = len(batches) - len(batches) % world_size
            batches = [np.concatenate(batches[i::even]) for i in range(even)]
            break
        half = len(batches[largest]) // 2
        batches.append(batches[largest][half:])
        batches[largest] = batches[largest][:half]
    return batches[rank::world_size]


def plan_in_order(lengths: Lengths, tokens: int) -> list[Batch]:
    """Batches for evaluation: by source length, the same each time, longest first.

    The longest come first so that a budget too large for memory fails at once.
    """
    order = np.argsort(-lengths[:, 0], kind="stable")
    return cut(order, lengths.max(axis=1), tokens)


def cut(order: Batch, sizes: NDArray[np.int32], tokens: int) -> list[Batch]:
    """Cut `order` into runs whose count times largest size stays within `tokens`."""
    batches: list[Batch] = []
    start, longest = 0, 0
    for position, size in enumerate(sizes[order].tolist()):
        if size > tokens:
            raise ValueError(
                f"a pair of {size} pieces is longer than a batch of {tokens} tokens; "
                "raise `data.batch.tokens` or lower `data.max_length`"
            )
        longest = max(longest, size)
        if (position - start + 1) * longest > tokens:
            batches.append(order[start:position])
            start, longest = position, size
    if start < len(order):
        batches.append(order[start:])
    return batches
