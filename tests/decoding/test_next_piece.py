"""Which pieces may follow, and with what probability."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from zhen.decoding import DecodeOptions
from zhen.decoding.next_piece import NEVER, next_log_probs, repeating

PAD, BOS, EOS = range(3)
LOGITS = torch.tensor([[5.0, 4.0, 1.0, 2.0, 3.0], [0.0, 0.0, 0.0, 0.0, 0.0]])


def log_probs(beginnings: list[list[int]], **options) -> torch.Tensor:
    return next_log_probs(
        LOGITS.clone(), beginnings, DecodeOptions(**options), never=(PAD, BOS), eos_id=EOS
    )


def test_padding_and_the_start_piece_leave_their_probability_to_the_others() -> None:
    found = log_probs([[], []])
    assert (found[:, [PAD, BOS]] == NEVER).all()
    torch.testing.assert_close(found[:, EOS:], LOGITS[:, EOS:].log_softmax(-1))


def test_what_the_options_forbid_leaves_its_probability_to_nobody() -> None:
    free = log_probs([[3], [3, 4, 3]])
    found = log_probs([[3], [3, 4, 3]], min_new_tokens=2, no_repeat_ngram_size=2)
    assert found[0, EOS] == found[1, 4] == NEVER
    allowed = found != NEVER
    assert allowed.sum() == 4
    assert torch.equal(found[allowed], free[allowed])


def test_half_precision_becomes_single_before_the_softmax() -> None:
    found = next_log_probs(LOGITS.half(), [[], []], DecodeOptions(), never=(PAD, BOS), eos_id=EOS)
    assert found.dtype == torch.float32


@pytest.mark.parametrize(
    ("ids", "n", "expected"),
    [
        ([], 1, []),
        ([7, 8, 7], 1, [7, 8, 7]),
        ([7, 8, 7], 2, [8]),
        ([7, 8, 9, 7, 8], 3, [9]),
        ([7, 7, 7], 2, [7, 7]),
        ([7, 8], 3, []),
    ],
)
def test_repeating(ids: list[int], n: int, expected: list[int]) -> None:
    assert repeating(ids, n) == expected


@given(st.lists(st.integers(0, 2), max_size=12), st.integers(1, 4), st.integers(0, 2))
def test_a_piece_repeats_when_the_run_it_ends_is_there_already(
    ids: list[int], n: int, piece: int
) -> None:
    runs = [ids[i : i + n] for i in range(len(ids) - n + 1)]
    new = [*ids, piece][-n:]
    assert (piece in repeating(ids, n)) == (len(new) == n and new in runs)
