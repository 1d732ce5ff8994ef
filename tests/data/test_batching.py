"""Plans of batches: complete, within budget, reproducible, equal for all ranks."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zhen.data.batching import Batch, Lengths, cut, plan_batches, plan_in_order, share

LENGTHS = st.lists(st.tuples(st.integers(1, 20), st.integers(1, 20)), min_size=1, max_size=60).map(
    lambda rows: np.array(rows, dtype=np.int64)
)
BUDGETS = st.integers(20, 200)


def every(batches: list[Batch]) -> list[int]:
    return sorted(int(i) for batch in batches for i in batch)


@given(lengths=LENGTHS, tokens=BUDGETS, seed=st.integers(0, 9), epoch=st.integers(0, 9))
def test_each_pair_is_in_one_batch_within_budget(
    lengths: Lengths, tokens: int, seed: int, epoch: int
) -> None:
    for plan in (plan_batches(lengths, tokens, seed, epoch), plan_in_order(lengths, tokens)):
        assert every(plan) == list(range(len(lengths)))
        assert all(0 < len(batch) * lengths[batch].max() <= tokens for batch in plan)


@given(lengths=LENGTHS, tokens=BUDGETS)
def test_no_batch_could_have_taken_the_next_pair(lengths: Lengths, tokens: int) -> None:
    plan = plan_in_order(lengths, tokens)
    for batch, after in pairwise(plan):
        more = [*batch, after[0]]
        assert len(more) * lengths[more].max() > tokens


def test_batches_hold_similar_lengths() -> None:
    lengths = np.random.default_rng(0).integers(1, 60, size=(2000, 1)).repeat(2, axis=1)
    plan = plan_batches(lengths, 512, seed=0, epoch=0)
    padded = sum(len(batch) * lengths[batch].max() for batch in plan)
    assert padded < 1.03 * lengths[:, 0].sum()


def test_order_differs_by_epoch_and_seed_and_comes_again() -> None:
    lengths = np.random.default_rng(0).integers(1, 20, size=(200, 2))

    def plan(seed: int, epoch: int) -> list[list[int]]:
        return [batch.tolist() for batch in plan_batches(lengths, 100, seed, epoch)]

    assert plan(0, 0) == plan(0, 0)
    assert plan(0, 0) != plan(0, 1)
    assert plan(0, 0) != plan(1, 0)
    # Not the same batches in another order: pairs meet new neighbours.
    assert {frozenset(b) for b in plan(0, 0)} != {frozenset(b) for b in plan(0, 1)}


def test_evaluation_begins_with_the_longest_source() -> None:
    lengths = np.array([[3, 9], [7, 1], [5, 5]])
    assert [batch.tolist() for batch in plan_in_order(lengths, 9)] == [[1], [2], [0]]


@given(lengths=LENGTHS, tokens=BUDGETS, world_size=st.integers(1, 7))
def test_ranks_share_every_pair_in_equal_counts(
    lengths: Lengths, tokens: int, world_size: int
) -> None:
    plan = plan_batches(lengths, tokens, 0, 0)
    if len(lengths) < world_size:
        with pytest.raises(ValueError, match="fewer pairs than ranks"):
            share(plan, 0, world_size)
        return
    parts = [share(plan, rank, world_size) for rank in range(world_size)]
    assert every([batch for part in parts for batch in part]) == list(range(len(lengths)))
    assert len({len(part) for part in parts}) == 1
    assert all(len(batch) for part in parts for batch in part)


def test_pairs_that_stand_alone_are_shared_too() -> None:
    plan = plan_batches(np.full((5, 2), 9), 9, 0, 0)
    assert [len(batch) for batch in plan] == [1] * 5
    parts = [share(plan, rank, 2) for rank in range(2)]
    assert [len(part) for part in parts] == [2, 2]
    assert every([*parts[0], *parts[1]]) == list(range(5))


def test_one_rank_keeps_the_plan() -> None:
    plan = plan_batches(np.full((50, 2), 5), 25, 0, 0)
    assert share(plan, 0, 1) == plan


def test_pair_longer_than_the_budget_is_refused() -> None:
    lengths = np.array([[3, 3], [4, 11]])
    with pytest.raises(ValueError, match=r"a pair of 11 pieces is longer than a batch of 10 tok"):
        plan_batches(lengths, 10, 0, 0)
    assert every(plan_batches(lengths, 11, 0, 0)) == [0, 1]


def test_nothing_makes_no_batches() -> None:
    assert cut(np.array([], dtype=np.int64), np.array([], dtype=np.int64), 10) == []
