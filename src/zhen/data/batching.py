"""Which pairs go together: the plan of an epoch, and that of an evaluation.

The plan of an epoch is a pure function of (lengths, budget, seed, epoch, number of ranks,
accumulation), so every rank and every resumed run computes the same one, and any of its batches can
be looked up. A run that goes on with another number of ranks or another accumulation has another
plan: that of the pairs which the one before (a pure function, too) has left.

How a plan comes about:

1. Pairs of the same two lengths have one shape. Shapes are put into an order in which neighbours
   are alike on both sides (`_alike`), so that a batch of neighbours needs little padding.
2. That order is cut into batches of nearly the same padded size, as many as make whole updates
   (`_cut`). The padded size is the work, so ranks seldom wait for each other, and batches of short
   and of long sentences can be dealt out freely.
3. Pairs are shuffled within their shape, and batches are dealt out at random to ranks and updates.

Only the last step depends on the epoch: each has as many batches as the others, on which the length
of a schedule depends. Everything is done with shapes, of which a corpus has some thousands, or with
whole arrays; nothing loops over pairs.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import ceil, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Lengths = NDArray[np.integer[Any]]  # (N, 2): pieces of source and target with their control pieces
Indices = NDArray[np.integer[Any]]  # of pairs
Shape = tuple[int, int, int]  # source length, target length, number of pairs


class PlannedBatch(NamedTuple):
    """Which pairs make a batch, and what only the plan can know of it."""

    indices: Indices
    update_tokens: int  # real target pieces of its whole update, over all ranks and micro-batches


class Part(NamedTuple):
    """How far one plan was followed before another one took over."""

    world_size: int
    accumulation: int
    batches: int  # of a rank, those that its plan does not have included


@dataclass(frozen=True)
class EpochPlan:
    """The batches of one epoch, n for each of R ranks.

    Update u of the optimizer takes batches u * k to u * k + k - 1 of every rank, where k is the
    accumulation, as Lightning does. Where other plans have done a part of the epoch, it has the
    last n - `first` of them; they are counted as in the plan of a whole epoch, so that all epochs
    end with the same number.
    """

    pairs: Indices  # (N,), first those that are done, then those of a batch side by side
    bounds: NDArray[np.int64]  # where each batch begins in `pairs`, and the end
    dealt: NDArray[np.int64]  # (n - first, R), the number of the batch that a rank takes
    update_tokens: NDArray[np.int64]  # (n,), of the update that these batches belong to
    first: int = 0

    def __len__(self) -> int:
        """Batches of a rank in a whole epoch."""
        return len(self.update_tokens)

    def batch(self, rank: int, i: int) -> PlannedBatch:
        """Batch `i` of a rank, from `first` on."""
        number = self.dealt[i - self.first, rank]
        indices = self.pairs[self.bounds[number] : self.bounds[number + 1]]
        return PlannedBatch(indices, int(self.update_tokens[i]))

    def after(self, batches: int) -> tuple[Indices, int]:
        """All pairs in the order of the updates, and how many are left after so many batches."""
        numbers = self.dealt.ravel()
        parts = [self.pairs[self.bounds[i] : self.bounds[i + 1]] for i in numbers]
        left = sum(map(len, parts[(batches - self.first) * self.dealt.shape[1] :]))
        return np.concatenate([self.pairs[: self.bounds[0]], *parts]), left


def plan_epoch(
    lengths: Lengths,
    *,
    tokens: int,
    seed: int,
    epoch: int,
    world_size: int = 1,
    accumulation: int = 1,
    limit: int | float = 1.0,
    done: Sequence[Part] = (),
) -> EpochPlan:
    """Put every pair into exactly one batch of at most `tokens` padded pieces.

    Every rank has equally many batches, and so has every update, unless the whole epoch is one or
    hardly any pairs share a batch. What is left of an epoch is shared out in the same way; where
    it has too few pairs for the ranks, the last ones that are done come again.

    Args:
        lengths: of the pairs, (N, 2), N at least 1.
        tokens: budget of a batch: rows x (longest source + longest target).
        seed: of the run.
        epoch: counted from 0.
        world_size: ranks.
        accumulation: micro-batches of a rank in an update.
        limit: how many batches of a rank will be taken (int), or which share of them (float), as
            `trainer.limit_train_batches`; the update that this cuts short has fewer tokens.
        done: what other plans have done of this epoch, one after the other; some of it is left.

    Raises:
        ValueError: a pair alone is longer than the budget, or there are too few pairs for the
            ranks.
    """
    _refuse_too_long(lengths, tokens)
    # Numbers of few bytes: less memory, and numpy sorts those of two in linear time.
    base = int(lengths[:, 1].max()) + 1
    number = np.min_scalar_type(int(lengths[:, 0].max() + 1) * base)
    shape_of = lengths[:, 0].astype(number) * number.type(base) + lengths[:, 1].astype(number)
    found, counts = np.unique(shape_of, return_counts=True)
    source, target = np.divmod(found.astype(np.int64), base)
    order = _alike(source, target, counts, tokens)
    shapes = _listed(source[order], target[order], counts[order])
    whole = batches = _how_many(shapes, tokens, world_size, accumulation)
    place = np.empty(len(order), np.min_scalar_type(len(order)))
    place[order] = np.arange(len(order))

    in_turn = np.arange(len(lengths), dtype=np.min_scalar_type(-len(lengths)))
    left = len(in_turn)
    if done:
        *earlier, (ranks, micro_batches, taken) = done
        before = plan_epoch(
            lengths, tokens=tokens, seed=seed, epoch=epoch,
            world_size=ranks, accumulation=micro_batches, done=earlier,
        )  # fmt: skip
        in_turn, left = before.after(taken)
        every, place_of = shapes, place[np.searchsorted(found, shape_of[in_turn])]
        shapes = _some(every, place_of[-left:])
        if _multiple(_count(shapes, tokens), world_size) > left:
            left = _multiple(left, world_size)
            shapes = _some(every, place_of[-left:])
        # Cut in the order of all pairs, some make no more batches than all: `first` >= 0.
        batches = _how_many(shapes, tokens, world_size, accumulation)
    sizes = _cut(shapes, batches)
    bounds = np.concatenate([[0], np.cumsum(sizes)])

    rng = np.random.default_rng((seed, epoch))
    pairs = rng.permutation(in_turn[-left:])
    place_of = place[np.searchsorted(found, shape_of[pairs])]
    pairs = pairs[np.argsort(place_of, kind="stable")]
    dealt = rng.permutation(len(sizes)).reshape(-1, world_size)

    of_batch = np.add.reduceat(lengths[pairs, 1], bounds[:-1], dtype=np.int64)
    first = (whole - batches) // world_size
    of_step = np.concatenate([np.zeros(first, np.int64), of_batch[dealt].sum(axis=1)])
    of_step[taken_of(len(of_step), limit) :] = 0
    of_update = np.add.reduceat(of_step, np.arange(0, len(of_step), accumulation))
    return EpochPlan(
        np.concatenate([in_turn[:-left], pairs]),
        bounds + (len(in_turn) - left),
        dealt,
        of_update.repeat(accumulation)[: len(of_step)],
        first,
    )


def taken_of(batches: int, limit: int | float) -> int:
    """How many of a rank's batches `trainer.limit_train_batches` leaves."""
    return min(limit, batches) if isinstance(limit, int) else int(batches * limit)


def plan_in_order(lengths: Lengths, tokens: int, world_size: int = 1) -> list[Indices]:
    """Batches for evaluation: by source length, the same each time, longest first.

    The longest come first so that a budget too large for memory fails at once. Rank r of R takes
    every R-th batch, beginning with batch r; all have equally many.

    Args:
        lengths: of the pairs, (N, 2).
        tokens: budget of a batch: rows x (longest source + longest target). A pair alone may be
            longer, and so may batches of few pairs that no other way can be shared evenly.
        world_size: ranks.

    Raises:
        ValueError: there are fewer pairs than ranks.
    """
    _refuse_too_few(len(lengths), world_size)
    order = np.lexsort((-lengths[:, 1], -lengths[:, 0]))
    ordered = lengths[order]
    new = np.any(ordered[1:] != ordered[:-1], axis=1)
    first = np.flatnonzero(np.concatenate([[len(order) > 0], new]))
    counts = np.diff(first, append=len(order))
    shapes = _listed(ordered[first, 0], ordered[first, 1], counts)
    batches = _multiple(_count(shapes, tokens), world_size)
    sizes = _cut(shapes, min(batches, len(order) // world_size * world_size))
    return np.split(order, np.cumsum(sizes)[:-1]) if len(order) else []


def _alike(
    source: Lengths, target: Lengths, counts: NDArray[np.int64], tokens: int
) -> NDArray[np.int64]:
    """An order of shapes in which neighbours differ little on either side.

    Target lengths are joined to bands. Inside a band the source length rises, in the next one it
    falls: a batch across the border of two is alike, too. A band is as wide as its batches are in
    source lengths, so that neither side is padded much more than the other.
    """
    band, bands = 0, np.zeros(int(target.max()) + 1, np.int64)
    pairs = total = squares = 0
    by_target = np.lexsort((source, target))
    shapes = _listed(source[by_target], target[by_target], counts[by_target])
    first = shapes[0][1]
    for length, of_length in groupby(shapes, lambda shape: shape[1]):
        for each, _, count in of_length:
            pairs, total, squares = pairs + count, total + count * each, squares + count * each**2
        bands[length] = band
        mean = total / pairs
        # Most of them lie within it; from 1 to 3 standard deviations make next to no difference.
        spread = 2.4 * sqrt(max(squares / pairs - mean**2, 0))
        batches = pairs / (tokens / (mean + length))
        if length + 1 - first >= spread / batches:
            band, first = band + 1, length + 1
            pairs = total = squares = 0
    band_of = bands[target]
    turn = np.where(band_of % 2, -1, 1)
    return np.lexsort((turn * target, turn * source, band_of))


def _how_many(shapes: Sequence[Shape], tokens: int, world_size: int, accumulation: int) -> int:
    """Batches to make: as few as the budget allows, but equally many for each rank and update.

    Raises:
        ValueError: there are too few pairs for it.
    """
    pairs = sum(count for *_, count in shapes)
    _refuse_too_few(pairs, world_size)
    batches = _multiple(_count(shapes, tokens), world_size)
    if batches > pairs:
        raise ValueError(
            f"{pairs} pairs, nearly each a batch of its own, cannot be shared evenly by"
            f" {world_size} ranks; raise `data.batch.tokens` or use fewer devices"
        )
    even = _multiple(batches, world_size * accumulation)
    return even if batches > world_size * accumulation and even <= pairs else batches


def _cut(shapes: Sequence[Shape], batches: int) -> NDArray[np.int64]:
    """Rows of each of `batches` batches, one after the other, none larger than need be.

    `batches` is at most the number of pairs.
    """
    if not shapes:
        return np.empty(0, np.int64)
    sources, targets, counts = zip(*shapes, strict=True)
    budgets = range(1, sum(counts) * (max(sources) + max(targets)) + 1)
    least = budgets[
        bisect_left(budgets, True, key=lambda tokens: _count(shapes, tokens) <= batches)
    ]
    # One piece less for all would make too many. Each pair more that has it adds a batch or none:
    # the batch that it begins is cut into two that fit, and `_fill` makes as few as can be. So
    # some number of pairs makes just enough, and the largest fills the last batch, too.
    pairs = range(sum(counts) + 1)
    tight = bisect_right(pairs, batches, key=lambda some: _count(shapes, least, some)) - 1
    sizes, times = np.array(_fill(shapes, least, tight)).T
    return np.repeat(sizes, times)


def _count(shapes: Sequence[Shape], tokens: int, tight: int = 0) -> int:
    return sum(times for _, times in _fill(shapes, tokens, tight))


def _fill(shapes: Sequence[Shape], tokens: int, tight: int = 0) -> list[tuple[int, int]]:
    """Fill batch after batch with neighbours until the next pair would exceed the budget.

    A pair that exceeds it alone is a batch. No other cut into runs of neighbours has fewer.

    Args:
        shapes: in order.
        tokens: the budget; a batch that begins with one of the first `tight` pairs has one less.
        tight: see there.

    Returns:
        How many rows, and in how many batches on end.
    """
    sizes: list[tuple[int, int]] = []
    rows = longest_source = longest_target = budget = 0  # of the batch that is being filled
    for source, target, count, now in _budgeted(shapes, tokens, tight):
        if not rows:
            longest_source, longest_target, budget = 0, 0, now
        longest_source = max(longest_source, source)
        longest_target = max(longest_target, target)
        room = max(budget // (longest_source + longest_target) - rows, 0)
        if count <= room:
            rows += count
            continue
        if rows:
            sizes.append((rows + room, 1))
            count -= room
        longest_source, longest_target, budget = source, target, now
        full = max(budget // (source + target), 1)
        times, rows = divmod(count, full)
        if times:
            sizes.append((full, times))
    return [*sizes, (rows, 1)] if rows else sizes


def _budgeted(
    shapes: Sequence[Shape], tokens: int, tight: int
) -> Iterator[tuple[int, int, int, int]]:
    """The shapes with the budget of a batch that begins there."""
    for source, target, count in shapes:
        few = min(count, tight)
        tight -= few
        if few:
            yield source, target, few, tokens - 1
        if few < count:
            yield source, target, count - few, tokens


def _listed(source: Lengths, target: Lengths, counts: NDArray[np.int64]) -> list[Shape]:
    """Python's integers, which a loop goes through faster."""
    return list(zip(source.tolist(), target.tolist(), counts.tolist(), strict=True))


def _some(shapes: Sequence[Shape], of_pairs: Indices) -> list[Shape]:
    """The shapes of some pairs, in the same order, by the number that each has in it."""
    counts = np.bincount(of_pairs, minlength=len(shapes)).tolist()
    numbered = zip(shapes, counts, strict=True)
    return [(source, target, count) for (source, target, _), count in numbered if count]


def _multiple(least: int, of: int) -> int:
    return ceil(least / of) * of


def _refuse_too_long(lengths: Lengths, tokens: int) -> None:
    longest = int(lengths.sum(axis=1).max())
    if longest > tokens:
        raise ValueError(
            f"a pair of {longest} pieces, both sides together, is longer than a batch of {tokens}"
            " tokens; raise `data.batch.tokens` or lower `data.max_length`"
        )


def _refuse_too_few(pairs: int, world_size: int) -> None:
    if 1 < world_size > pairs:
        raise ValueError(f"fewer pairs ({pairs}) than ranks ({world_size}): use fewer devices")
