"""Greedy and beam search against hand-made distributions, exhaustive search and the model."""

import itertools
import math
import random
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.decoding.table import (
    BOS,
    EOS,
    PAD,
    A,
    B,
    C,
    Prefix,
    Table,
    assert_same,
    by_chance,
    everything,
    fixed,
    forced,
    pad,
    search,
    some_sources,
)

from zhen.decoding import Hypothesis
from zhen.model import Transformer

# The most probable first piece, A, leads only to improbable sentences.
TRAP: dict[Prefix, dict[int, float]] = {
    (): {A: 0.6, B: 0.4},
    (A,): {A: 0.34, B: 0.33, C: 0.33},
    (B,): {C: 0.9, A: 0.1},
}


@pytest.mark.parametrize(("num_beams", "ids", "p"), [(1, [A, A], 0.6 * 0.34), (2, [B, C], 0.36)])
def test_greedy_is_trapped_where_beam_search_is_not(num_beams: int, ids: list, p: float) -> None:
    best = search(fixed(TRAP), num_beams=num_beams, length_penalty=0.0)[0][0]
    assert best.ids == ids
    assert best.score == pytest.approx(math.log(p), abs=1e-5)


@given(st.integers(0, 10**6), st.integers(1, 3), st.sampled_from([-1.0, 0.0, 0.6, 1.0, 2.0]))
@settings(max_examples=60, deadline=None)
def test_a_beam_as_wide_as_the_space_is_exhaustive(seed: int, limit: int, penalty: float) -> None:
    model = by_chance(seed, [EOS, A, B])
    expected = everything(model, A, limit, penalty)
    options = {"max_new_tokens": limit, "length_penalty": penalty}
    assert_same(search(model, num_beams=len(expected), **options)[0], expected)
    # One beam more than there are hypotheses: nothing impossible fills the place.
    assert_same(search(model, num_beams=len(expected) + 1, **options)[0], expected)


@given(st.integers(0, 10**6), st.integers(2, 5), st.integers(1, 6), st.floats(0.0, 2.0))
@settings(max_examples=80, deadline=None)
def test_a_narrow_beam(seed: int, k: int, limit: int, penalty: float) -> None:
    """Sorted, distinct, enough, each with the score that exhaustive search gives it."""
    model = by_chance(seed, [EOS, A, B, C])
    scores = {tuple(h.ids): h.score for h in everything(model, A, limit, penalty)}
    found = search(model, num_beams=k, max_new_tokens=limit, length_penalty=penalty)[0]
    assert len(found) == min(k, len(scores))
    assert [h.score for h in found] == sorted((h.score for h in found), reverse=True)
    assert len({tuple(h.ids) for h in found}) == len(found)
    for hypothesis in found:
        assert hypothesis.score == pytest.approx(scores[tuple(hypothesis.ids)], abs=1e-4)


@given(st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_greedy_takes_the_most_probable_piece_each_time(seed: int) -> None:
    model = by_chance(seed, [EOS, A, B, C])
    ids, log_p = [], 0.0
    for _ in range(8):
        piece, p = max(model.next_piece(A, tuple(ids)).items(), key=lambda item: item[1])
        ids.append(piece)
        log_p += math.log(p)
        if piece == EOS:
            break
    expected = Hypothesis([piece for piece in ids if piece != EOS], log_p / len(ids))
    (found,) = search(model, max_new_tokens=8)[0]
    assert_same([found], [expected])


def test_the_length_penalty_favours_long_hypotheses_above_one() -> None:
    # "A" has log .5 / 2, "B B B" has log .4 / 4.
    model = fixed({(): {A: 0.5, B: 0.4, C: 0.1}, (B,): {B: 1.0}, (B, B): {B: 1.0}})
    best = {
        penalty: search(model, num_beams=3, length_penalty=penalty)[0][0].ids
        for penalty in (-1.0, 0.0, 1.0, 3.0)
    }
    assert best == {-1.0: [A], 0.0: [A], 1.0: [B, B, B], 3.0: [B, B, B]}


@given(st.integers(0, 10**6), st.lists(st.floats(-1.0, 3.0), min_size=2, max_size=5))
@settings(max_examples=40, deadline=None)
def test_a_larger_length_penalty_never_shortens_the_best(seed: int, penalties: list) -> None:
    model = by_chance(seed, [EOS, A, B])
    lengths = [
        len(search(model, num_beams=15, max_new_tokens=3, length_penalty=penalty)[0][0].ids)
        for penalty in sorted(penalties)
    ]
    assert lengths == sorted(lengths)


def test_a_beginning_at_the_limit_competes_with_what_is_finished() -> None:
    """Two bad sentences are finished when the limit cuts the far better third."""
    model = fixed({(): {EOS: 0.1, A: 0.9}, (A,): {EOS: 0.05, B: 0.95}, (A, B): {C: 1.0}})
    best = search(model, num_beams=2, max_new_tokens=3, length_penalty=0.0)[0]
    assert [hypothesis.ids for hypothesis in best] == [[A, B, C], []]


@pytest.mark.parametrize("num_beams", [1, 2, 4])
def test_padding_and_the_start_piece_are_never_said(num_beams: int) -> None:
    model = Table(lambda *_: {PAD: 0.5, BOS: 0.3, A: 0.15, EOS: 0.05}, vocab_size=4)
    found = search(model, num_beams=num_beams, max_new_tokens=2)[0]
    assert all(piece == A for hypothesis in found for piece in hypothesis.ids)
    # And the others share their probability: P(A) = 0.75, P(end) = 0.25.
    scores = {len(hypothesis.ids): hypothesis.score for hypothesis in found}
    assert scores[2] == pytest.approx(math.log(0.75), abs=1e-5)


@pytest.mark.parametrize("options", [{}, {"num_beams": 3}, {"do_sample": True}])
def test_where_the_model_gives_no_numbers_nothing_is_said(options: dict) -> None:
    model = Table(lambda *_: {A: float("nan"), B: float("nan"), EOS: float("nan")}, vocab_size=5)
    found = search(model, [A, B], max_new_tokens=4, **options)
    assert found == [[Hypothesis([], -math.inf)]] * 2


def test_a_beam_without_numbers_leaves_the_others_alone() -> None:
    nothing = dict.fromkeys((A, B, C, EOS), float("nan"))
    first = {A: 0.5, B: 0.3, C: 0.2}
    model = Table(lambda _, prefix: nothing if prefix[:1] == (A,) else {**first, EOS: 0.1}, 6)
    found = search(model, num_beams=3, max_new_tokens=3)[0]
    assert len(found) == 3 and all(h.ids[:1] != [A] for h in found)


def count_down(first: int, prefix: Prefix) -> dict[int, float]:
    """As many pieces as the source's first piece says, most probably."""
    left = first - len(prefix)
    return {A: 0.9, EOS: 0.1} if left > 0 else {A: 0.1, EOS: 0.9}


def test_finished_sentences_leave_the_batch() -> None:
    model = Table(count_down, vocab_size=4)
    found = search(model, [2, 5, 2, 3])
    assert [len(best[0].ids) for best in found] == [2, 5, 2, 3]
    assert model.batch_sizes == [4, 4, 4, 2, 1, 1]
    model = Table(count_down, vocab_size=4)
    search(model, [2, 9], num_beams=2, length_penalty=0.0)
    assert model.batch_sizes[:2] == [2, 4] and model.batch_sizes[-1] == 2


@pytest.mark.parametrize("num_beams", [1, 3])
def test_limits_are_each_sentence_s_own(num_beams: int) -> None:
    sources = torch.tensor([[A, PAD, PAD, PAD], [A, A, A, PAD], [A, A, A, A]])
    endless = Table(lambda *_: {A: 0.999, EOS: 0.001}, vocab_size=4, max_positions=17)

    def lengths(**options) -> list[int]:
        found = search(endless, sources, num_beams=num_beams, length_penalty=2.0, **options)
        return [len(best[0].ids) for best in found]

    assert lengths() == [12, 16, 17]  # twice the source and 10, within the positions
    assert lengths(max_new_tokens=5) == [5, 5, 5]
    assert lengths(max_new_tokens=1) == [1, 1, 1]
    assert lengths(max_new_tokens=10**6) == [17, 17, 17]


def test_the_best_of_the_beams_are_returned() -> None:
    model = by_chance(1, [EOS, A, B, C])
    everything_found = search(model, num_beams=4, max_new_tokens=5)[0]
    for n in (1, 3):
        found = search(model, num_beams=4, max_new_tokens=5, num_return_sequences=n)[0]
        assert found == everything_found[:n]


@given(st.integers(0, 10**6), st.integers(0, 3), st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_what_is_too_short_or_repeats_is_left_out(seed: int, least: int, n: int) -> None:
    """Of all sentences those that the options allow, each with the score it has anyway."""
    model = by_chance(seed, [EOS, A, B])
    limit = 3

    def allowed(ids: list[int]) -> bool:
        runs = [tuple(ids[i : i + n]) for i in range(len(ids) - n + 1)] if n else []
        return len(ids) >= least and len(set(runs)) == len(runs)

    expected = [h for h in everything(model, A, limit, 1.0) if allowed(h.ids)]
    options = {"max_new_tokens": limit, "min_new_tokens": least, "no_repeat_ngram_size": n}
    found = search(model, num_beams=15, **options)[0]
    if expected:
        assert_same(found, expected)
    (greedy,) = search(model, **options)[0]
    assert allowed(greedy.ids) or not expected


@pytest.mark.parametrize("num_beams", [1, 3])
def test_where_nothing_may_follow_the_beginning_stands(num_beams: int) -> None:
    """Every piece would repeat, and the end would come too early."""
    model = by_chance(5, [EOS, A, B])
    options = {"min_new_tokens": 5, "no_repeat_ngram_size": 1, "max_new_tokens": 9}
    for found in search(model, [A, B], num_beams=num_beams, **options):
        assert found
        assert all(sorted(hypothesis.ids) == [A, B] for hypothesis in found)


@pytest.mark.parametrize("num_beams", [1, 3])
def test_a_long_minimum_makes_room_for_itself(num_beams: int) -> None:
    model = Table(lambda *_: {A: 0.1, EOS: 0.9}, vocab_size=4)
    (found,) = search(model, num_beams=num_beams, min_new_tokens=30, num_return_sequences=1)
    assert found[0].ids == [A] * 30


@pytest.mark.parametrize("num_beams", [1, 4])
def test_results_depend_neither_on_the_batch_nor_on_the_order(
    model: Transformer, num_beams: int
) -> None:
    sources = some_sources(64)
    options = {"num_beams": num_beams, "length_penalty": 0.8}
    alone = [search(model, pad([source]), **options)[0] for source in sources]
    assert len({tuple(best[0].ids) for best in alone}) > 3  # else the test says nothing
    order = random.Random(1).sample(range(64), 64)
    for size in (7, 64):
        for start in range(0, 64, size):
            part = order[start : start + size]
            for i, found in zip(
                part, search(model, pad([sources[i] for i in part]), **options), strict=True
            ):
                assert_same(found, alone[i])


@pytest.mark.parametrize("num_beams", [1, 4])
@pytest.mark.parametrize("penalty", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("forbidden", [{}, {"min_new_tokens": 6, "no_repeat_ngram_size": 2}])
def test_the_score_is_the_forced_log_probability(
    model: Transformer, num_beams: int, penalty: float, forbidden: dict
) -> None:
    """Whatever the options forbid on the way."""
    limit, unfinished = 15, 0
    options = {"num_beams": num_beams, "length_penalty": penalty, "max_new_tokens": limit}
    for source in some_sources(6):
        for hypothesis in search(model, pad([source]), **options, **forbidden)[0]:
            said = [*hypothesis.ids, EOS][:limit]
            unfinished += EOS not in said
            expected = forced(model, pad([source]), said) / len(said) ** penalty
            assert hypothesis.score == pytest.approx(expected, abs=1e-4)
    assert unfinished < 6 * num_beams


@pytest.mark.parametrize("options", [{}, {"num_beams": 3}, {"do_sample": True}])
def test_decoding_leaves_no_trace(model: Transformer, options: dict) -> None:
    """It changes neither its input nor the state of any random numbers: the same twice."""
    ids = pad(some_sources(3))
    before, states = ids.clone(), (torch.get_rng_state(), random.getstate())
    assert search(model, ids, **options) == search(model, ids, **options)
    assert torch.equal(ids, before)
    assert torch.equal(torch.get_rng_state(), states[0]) and random.getstate() == states[1]


@pytest.mark.parametrize("options", [{}, {"num_beams": 3}, {"do_sample": True}])
def test_each_position_is_projected_once(model: Transformer, options: dict) -> None:
    """The source's keys and values once in a search, the target's only the newest of each step."""
    heard: dict[str, list[int]] = {}

    def listen(name: str) -> Callable:
        return lambda _, args: heard.setdefault(name, []).append(args[0].size(1))

    projections = [
        (name, module) for name, module in model.named_modules() if name.endswith("key_proj")
    ]
    hooks = [module.register_forward_pre_hook(listen(name)) for name, module in projections]
    search(model, pad([[5, 6, 7, EOS]]), max_new_tokens=8, min_new_tokens=8, **options)
    for hook in hooks:
        hook.remove()
    k = options.get("num_beams", 1)
    for name, lengths in heard.items():
        if name.startswith("encoder") or "cross" in name:
            assert lengths == [4], name
        else:
            assert lengths == [1, *[k] * 7], name
    assert len(heard) == 1 + 2 * 2


def test_an_empty_source_still_gives_a_hypothesis(model: Transformer) -> None:
    for num_beams in (1, 3):
        found = search(model, pad([[], [5, EOS]]), num_beams=num_beams)
        assert all(math.isfinite(h.score) for hypotheses in found for h in hypotheses)
        assert_same(found[1], search(model, pad([[5, EOS]]), num_beams=num_beams)[0])


def test_every_combination_of_one_step_is_ranked() -> None:
    """The first step starts from one beginning, not from k equal ones."""
    model = fixed({(): {A: 0.5, B: 0.3, C: 0.2}})
    found = search(model, num_beams=3, max_new_tokens=1)[0]
    assert [hypothesis.ids for hypothesis in found] == [[A], [B], [C]]
    assert all(one != other for one, other in itertools.pairwise(found))
