"""√d_model · E[id] + PE[position], against a plain loop over the formula."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from zhen.model import Embedding, sinusoidal_positions


@given(st.integers(1, 40), st.integers(1, 16).map(lambda half: 2 * half))
@settings(max_examples=40, deadline=None)
def test_positions_equal_a_plain_loop(length: int, d_model: int) -> None:
    table = sinusoidal_positions(length, d_model)
    assert table.shape == (length, d_model)
    assert table.dtype == torch.float32
    for position in range(length):
        for i in range(d_model // 2):
            angle = position / 10000 ** (2 * i / d_model)
            assert table[position, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert table[position, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-6)


def test_late_positions_keep_their_precision() -> None:
    row = sinusoidal_positions(50_001, 4)[50_000]
    expected = [math.sin(50_000), math.cos(50_000), math.sin(500), math.cos(500)]
    assert row.tolist() == pytest.approx(expected, abs=1e-6)


def make(**changes: float) -> Embedding:
    sizes = {"vocab_size": 11, "d_model": 6, "max_positions": 8, "dropout": 0.0} | changes
    return Embedding(**sizes)


def test_scaled_pieces_plus_positions() -> None:
    embedding = make()
    ids = torch.tensor([[3, 5, 3], [0, 10, 1]])
    output = embedding(ids)
    for row in range(2):
        for t in range(3):
            expected = math.sqrt(6) * embedding.pieces.weight[ids[row, t]]
            expected = expected + sinusoidal_positions(8, 6)[t]
            torch.testing.assert_close(output[row, t], expected)


@given(st.integers(0, 5))
def test_offset_shifts_the_positions_alone(offset: int) -> None:
    embedding = make()
    ids = torch.arange(6).unsqueeze(0)
    torch.testing.assert_close(embedding(ids[:, offset:], offset), embedding(ids)[:, offset:])


def test_scaled_pieces_begin_with_variance_one() -> None:
    torch.manual_seed(0)
    embedding = make(vocab_size=1000, d_model=128)
    assert (embedding.pieces.weight * embedding.scale).std().item() == pytest.approx(1, abs=0.02)


def test_dropout_in_training_alone() -> None:
    embedding = make(vocab_size=100, d_model=64, max_positions=50, dropout=0.5)
    ids = torch.arange(50).unsqueeze(0)
    assert 0.4 < (embedding.train()(ids) == 0).double().mean() < 0.6
    assert (embedding.eval()(ids) == 0).double().mean() < 0.1


def test_positions_are_no_part_of_a_checkpoint() -> None:
    assert list(make().state_dict()) == ["pieces.weight"]


@pytest.mark.parametrize(("length", "offset"), [(9, 0), (1, 8), (4, 5)])
def test_longer_than_the_positions(length: int, offset: int) -> None:
    embedding = make()
    with pytest.raises(ValueError, match=r"a sequence of 9 pieces .* `max_positions` \(8\)"):
        embedding(torch.zeros(1, length, dtype=torch.long), offset)


def test_an_odd_width() -> None:
    with pytest.raises(ValueError, match=r"`d_model` must be even .* but is 7"):
        make(d_model=7)
