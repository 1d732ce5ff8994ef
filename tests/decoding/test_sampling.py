"""Drawing pieces by chance: the distribution, its options, and what the draws depend on."""

import random
from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.decoding.table import (
    EOS,
    A,
    B,
    C,
    Table,
    by_chance,
    forced,
    pad,
    search,
    some_sources,
)
from transformers import (
    LogitsProcessorList,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from zhen.decoding import DecodeOptions
from zhen.decoding.sampling import draw, generator, narrowed
from zhen.model import Transformer

P = torch.tensor([[0.1, 0.4, 0.2, 0.3]])


def drawn_from(p: torch.Tensor, **options) -> dict[int, float]:
    probs = narrowed(p.log(), DecodeOptions(do_sample=True, **options))[0]
    return {piece: value for piece, value in enumerate(probs.tolist()) if value}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {1: 0.4, 3: 0.3, 2: 0.2, 0: 0.1}),
        ({"temperature": 0.5}, {1: 16 / 30, 3: 9 / 30, 2: 4 / 30, 0: 1 / 30}),
        ({"temperature": 1e-300}, {1: 1.0}),
        ({"top_k": 2}, {1: 4 / 7, 3: 3 / 7}),
        ({"top_k": 99}, {1: 0.4, 3: 0.3, 2: 0.2, 0: 0.1}),
        ({"top_p": 0.65}, {1: 4 / 7, 3: 3 / 7}),
        ({"top_p": 0.75}, {1: 4 / 9, 3: 3 / 9, 2: 2 / 9}),
        ({"top_p": 1e-9}, {1: 1.0}),
        # 4/7 of what top-k leaves is enough; of the whole it would not be.
        ({"top_k": 2, "top_p": 0.55}, {1: 1.0}),
        ({"temperature": 0.5, "top_p": 0.5}, {1: 1.0}),
    ],
)
def test_what_is_drawn_from(options: dict, expected: dict[int, float]) -> None:
    assert drawn_from(P, **options) == pytest.approx(expected, abs=2e-6)


@given(st.integers(0, 10**6), st.floats(0.1, 3.0), st.integers(0, 8), st.floats(0.05, 1.0))
@settings(max_examples=100, deadline=None)
def test_as_the_definitions_say(seed: int, temperature: float, top_k: int, top_p: float) -> None:
    p = torch.rand(1, 8, generator=torch.Generator().manual_seed(seed)) + 1e-3
    p = (p / p.sum()).tolist()[0]
    powered = {i: each ** (1 / temperature) for i, each in enumerate(p)}
    order = sorted(powered, key=lambda i: -powered[i])[: top_k or None]
    total = sum(powered[i] for i in order)
    kept, mass = [], 0.0
    for i in order:
        if mass >= top_p - 1e-5:
            break
        kept.append(i)
        mass += powered[i] / total
    if abs(mass - top_p) < 1e-4:  # too near the edge to say
        return
    total = sum(powered[i] for i in kept)
    options = {"temperature": temperature, "top_k": top_k, "top_p": top_p}
    found = drawn_from(torch.tensor([p]), **options)
    assert found == pytest.approx({i: powered[i] / total for i in kept}, abs=1e-4)


@given(st.integers(0, 10**6), st.floats(0.1, 3.0), st.integers(0, 12), st.floats(0.05, 1.0))
@settings(max_examples=100, deadline=None)
def test_as_transformers_narrows(seed: int, temperature: float, top_k: int, top_p: float) -> None:
    logits = 3 * torch.randn(2, 10, generator=torch.Generator().manual_seed(seed))
    warpers = LogitsProcessorList([TemperatureLogitsWarper(temperature)])
    if top_k:
        warpers.append(TopKLogitsWarper(top_k))
    warpers.append(TopPLogitsWarper(top_p))
    expected = warpers(None, logits).softmax(-1)
    found = narrowed(
        logits.log_softmax(-1),
        DecodeOptions(do_sample=True, temperature=temperature, top_k=top_k, top_p=top_p),
    )
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)


def test_without_options_every_piece_can_be_drawn() -> None:
    log_probs = torch.randn(8, 32_000, generator=torch.Generator().manual_seed(0)).log_softmax(-1)
    probs = narrowed(log_probs, DecodeOptions(do_sample=True))
    assert (probs > 0).all()
    torch.testing.assert_close(probs, log_probs.exp())


def test_rounding_does_not_change_what_is_drawn() -> None:
    """Nor does another order of the pieces, where several are as likely as each other."""
    options = DecodeOptions(do_sample=True)
    log_probs = torch.randn(200, 8000, generator=torch.Generator().manual_seed(0)).log_softmax(-1)
    log_probs[:, 4000:] = log_probs[:, :4000]
    shaken = log_probs + 1e-6 * torch.randn(200, 8000, generator=torch.Generator().manual_seed(1))

    def drawn(p: torch.Tensor) -> torch.Tensor:
        return draw(p, options, [generator(0, [row], 0) for row in range(len(p))])[1]

    assert torch.equal(drawn(log_probs), drawn(shaken))


def test_frequencies_are_the_probabilities() -> None:
    """Chi-square with 3 degrees of freedom passes 16.3 once in a thousand; the seed is fixed."""
    model = Table(lambda *_: {A: 0.5, B: 0.3, C: 0.15, EOS: 0.05}, vocab_size=6)
    count = 4000
    options = {"do_sample": True, "num_return_sequences": count, "max_new_tokens": 1}
    found = Counter(tuple(h.ids) for h in search(model, **options)[0])
    expected = {(A,): 0.5, (B,): 0.3, (C,): 0.15, (): 0.05}
    chi = sum((found[ids] - count * p) ** 2 / (count * p) for ids, p in expected.items())
    assert chi < 16.3


def test_a_sample_depends_on_the_seed_and_the_sentence_alone(model: Transformer) -> None:
    sources = some_sources(8)

    def samples(of: list[list[int]], count: int = 2, seed: int = 0) -> list[list[list[int]]]:
        options = {"num_return_sequences": count, "seed": seed, "max_new_tokens": 12}
        found = search(model, pad(of), do_sample=True, **options)
        return [[hypothesis.ids for hypothesis in each] for each in found]

    alone = [samples([source])[0] for source in sources]
    assert len({tuple(ids) for found in alone for ids in found}) > 8
    order = random.Random(1).sample(range(8), 8)
    torch.manual_seed(99)  # has no part in it
    for size in (3, 8):
        for start in range(0, 8, size):
            part = order[start : start + size]
            assert samples([sources[i] for i in part]) == [alone[i] for i in part]
    # The first translation stays the same when there are more of them; another seed draws others.
    assert all(one[0] in both for one, both in zip(samples(sources, count=1), alone, strict=True))
    assert samples(sources, seed=1) != alone


def test_the_score_is_the_model_s_whatever_narrows_the_draw(model: Transformer) -> None:
    options = {"do_sample": True, "num_return_sequences": 3, "top_k": 5, "temperature": 0.7}
    for source in some_sources(4):
        ids = pad([source])
        found = search(model, ids, max_new_tokens=15, length_penalty=0.5, **options)[0]
        assert [h.score for h in found] == sorted((h.score for h in found), reverse=True)
        for hypothesis in found:
            said = [*hypothesis.ids, EOS][:15]
            expected = forced(model, ids, said) / len(said) ** 0.5
            assert hypothesis.score == pytest.approx(expected, abs=1e-4)


def test_drawing_from_the_likeliest_alone_is_greedy_search() -> None:
    for seed in range(20):
        table = by_chance(seed, [EOS, A, B, C])
        greedy = search(table, [A, B], max_new_tokens=8)
        assert search(table, [A, B], max_new_tokens=8, do_sample=True, top_k=1) == greedy
        assert search(table, [A, B], max_new_tokens=8, do_sample=True, top_p=1e-6) == greedy


def test_what_the_options_forbid_is_never_drawn() -> None:
    model = by_chance(3, [EOS, A, B, C])
    options = {"min_new_tokens": 3, "no_repeat_ngram_size": 2, "max_new_tokens": 9}
    for found in search(model, [A], do_sample=True, num_return_sequences=50, **options)[0]:
        runs = [tuple(found.ids[i : i + 2]) for i in range(len(found.ids) - 1)]
        assert len(found.ids) >= 3 and len(set(runs)) == len(runs)
