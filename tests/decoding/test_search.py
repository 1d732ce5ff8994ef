"""Greedy and beam search against hand-made distributions, exhaustive search and the model itself.

`Table` stands in for the Transformer: its next-piece distribution is a function of the source's
first piece and of the pieces so far.
"""

import itertools
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from zhen.decoding import DecodeOptions, Hypothesis, generate
from zhen.model import Transformer

PAD, BOS, EOS, A, B, C = range(6)
Prefix = tuple[int, ...]
Distribution = Callable[[int, Prefix], dict[int, float]]


@dataclass
class TableCache:
    rows: list[tuple[int, Prefix]]
    length: int = 0

    def select(self, rows: Tensor) -> None:
        self.rows = [self.rows[row] for row in rows.tolist()]


class Table:
    """The part of a Transformer that decoding uses."""

    pad_id = PAD

    def __init__(self, next_piece: Distribution, vocab_size: int, max_positions: int = 100) -> None:
        self.next_piece = next_piece
        self.vocab_size = vocab_size
        self.max_positions = max_positions
        self.batch_sizes: list[int] = []

    def start(self, source: Tensor) -> TableCache:
        return TableCache([(first, ()) for first in source[:, 0].tolist()])

    def step(self, last: Tensor, cache: TableCache) -> Tensor:
        """log P as logits; what the distribution leaves out is impossible."""
        self.batch_sizes.append(len(cache.rows))
        assert len(last) == len(cache.rows)
        cache.rows = [
            (first, (*prefix, piece))
            for (first, prefix), piece in zip(cache.rows, last.tolist(), strict=True)
        ]
        cache.length += 1
        logits = torch.full((len(cache.rows), self.vocab_size), float("-inf"))
        for row, (first, prefix) in enumerate(cache.rows):
            assert prefix[0] == BOS
            for piece, p in self.next_piece(first, prefix[1:]).items():
                logits[row, piece] = math.log(p)
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


def assert_same(found: Sequence[Hypothesis], expected: Sequence[Hypothesis]) -> None:
    assert [h.ids for h in found] == [h.ids for h in expected]
    assert [h.score for h in found] == pytest.approx([h.score for h in expected], abs=1e-4)


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


@pytest.mark.parametrize("num_beams", [1, 3])
def test_probabilities_that_are_no_numbers_still_give_a_hypothesis(num_beams: int) -> None:
    model = Table(lambda *_: {A: float("nan"), B: float("nan"), EOS: float("nan")}, vocab_size=5)
    assert len(search(model, [A, B], num_beams=num_beams, max_new_tokens=4)) == 2


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
    assert model.batch_sizes[0] == 4 and model.batch_sizes[-1] == 2


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


@pytest.mark.parametrize("options", [{"num_beams": 0}, {"num_beams": -1}, {"max_new_tokens": 0}])
def test_counts_below_one_are_refused(options: dict[str, int]) -> None:
    ((name, value),) = options.items()
    with pytest.raises(ValueError, match=f"`{name}` must be at least 1, but is {value}"):
        DecodeOptions(**options)


V = 20


@pytest.fixture(scope="module", params=["pre", "post"])
def model(request: pytest.FixtureRequest) -> Transformer:
    """Small and untrained, but with opinions: its matrices are enlarged."""
    torch.manual_seed(3)
    model = Transformer(
        vocab_size=V, d_model=16, num_heads=2, d_ff=32, num_encoder_layers=1,
        num_decoder_layers=2, norm=request.param, max_positions=40, tie_embeddings=False,
    ).eval()  # fmt: skip
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim > 1 and "embedding" not in name:
                parameter *= 1.5
        model.output.weight[EOS] *= 2
    return model


def pad(rows: Sequence[Sequence[int]]) -> Tensor:
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[PAD] * (longest - len(row))] for row in rows])


def some_sources(count: int) -> list[list[int]]:
    rng = random.Random(0)
    return [[rng.randrange(3, V) for _ in range(rng.randint(1, 9))] + [EOS] for _ in range(count)]


@pytest.mark.parametrize("num_beams", [1, 4])
def test_results_depend_neither_on_the_batch_nor_on_the_order(
    model: Transformer, num_beams: int
) -> None:
    sources = some_sources(12)
    options = {"num_beams": num_beams, "length_penalty": 0.8}
    alone = [search(model, pad([source]), **options)[0] for source in sources]
    assert len({tuple(best[0].ids) for best in alone}) > 3  # else the test says nothing
    order = random.Random(1).sample(range(12), 12)
    for size in (2, 5, 12):
        for start in range(0, 12, size):
            part = order[start : start + size]
            for i, found in zip(
                part, search(model, pad([sources[i] for i in part]), **options), strict=True
            ):
                assert_same(found, alone[i])


@pytest.mark.parametrize("num_beams", [1, 4])
@pytest.mark.parametrize("penalty", [0.0, 0.6, 1.0])
@torch.no_grad()
def test_the_score_is_the_forced_log_probability(
    model: Transformer, num_beams: int, penalty: float
) -> None:
    limit = 15
    unfinished = 0
    for source in some_sources(6):
        ids = pad([source])
        for hypothesis in search(
            model, ids, num_beams=num_beams, length_penalty=penalty, max_new_tokens=limit
        )[0]:
            cut = len(hypothesis.ids) == limit
            unfinished += cut
            said = hypothesis.ids if cut else [*hypothesis.ids, EOS]
            logits = model(ids, torch.tensor([[BOS, *said[:-1]]]))[0]
            logits[:, [PAD, BOS]] = float("-inf")
            log_p = logits.log_softmax(-1)[range(len(said)), said].sum().item()
            assert hypothesis.score == pytest.approx(log_p / len(said) ** penalty, abs=1e-4)
    assert unfinished < 6 * num_beams


def test_decoding_leaves_no_trace(model: Transformer) -> None:
    """Neither gradients nor randomness: the same twice."""
    ids = pad(some_sources(3))
    for num_beams in (1, 3):
        one, other = (search(model, ids, num_beams=num_beams) for _ in range(2))
        assert one == other
    assert all(parameter.grad is None for parameter in model.parameters())


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
