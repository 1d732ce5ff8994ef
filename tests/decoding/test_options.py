"""Options out of range, or at odds with each other: one line that says what may be."""

import pytest

from zhen.decoding import DecodeOptions


@pytest.mark.parametrize("name", ["num_beams", "num_return_sequences"])
@pytest.mark.parametrize("value", [0, -1, 10_001, 10**20])
def test_counts_out_of_range_are_refused(name: str, value: int) -> None:
    with pytest.raises(ValueError, match=f"^`{name}` must be from 1 to 10000, but is {value}$"):
        DecodeOptions(**{name: value})


@pytest.mark.parametrize("value", [0, -1])
def test_no_room_for_a_piece_is_refused(value: int) -> None:
    with pytest.raises(ValueError, match=f"^`max_new_tokens` must be at least 1, but is {value}$"):
        DecodeOptions(max_new_tokens=value)


@pytest.mark.parametrize("name", ["min_new_tokens", "no_repeat_ngram_size", "top_k", "seed"])
def test_counts_below_zero_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"^`{name}` must be at least 0, but is -1$"):
        DecodeOptions(do_sample=True, **{name: -1})


NAN = float("nan")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"length_penalty": 11.0}, "`length_penalty` must be from -10 to 10, but is 11.0"),
        ({"length_penalty": NAN}, "`length_penalty` must be from -10 to 10, but is nan"),
        ({"temperature": 0.0}, "`temperature` must be above 0 and at most 1000000, but is 0.0"),
        (
            {"temperature": float("inf")},
            "`temperature` must be above 0 and at most 1000000, but is inf",
        ),
        ({"temperature": NAN}, "`temperature` must be above 0 and at most 1000000, but is nan"),
        ({"top_p": 1.5}, "`top_p` must be above 0 and at most 1, but is 1.5"),
        ({"top_p": 0.0}, "`top_p` must be above 0 and at most 1, but is 0.0"),
        ({"top_p": NAN}, "`top_p` must be above 0 and at most 1, but is nan"),
        ({"num_beams": 2}, "`num_beams` must be 1 with `do_sample=true`, but is 2"),
    ],
)
def test_values_out_of_range_are_refused(options: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError) as error:
        DecodeOptions(do_sample=True, **options)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": 0.5}, "`temperature` must be 1.0 without `do_sample=true`, but is 0.5"),
        ({"top_k": 5}, "`top_k` must be 0 without `do_sample=true`, but is 5"),
        ({"top_p": 0.9}, "`top_p` must be 1.0 without `do_sample=true`, but is 0.9"),
        ({"seed": 1}, "`seed` must be 0 without `do_sample=true`, but is 1"),
        (
            {"num_beams": 2, "num_return_sequences": 3},
            "`num_return_sequences` must be at most `num_beams` (2) without `do_sample=true`,"
            " but is 3",
        ),
        (
            {"min_new_tokens": 5, "max_new_tokens": 4},
            "`min_new_tokens` must be at most `max_new_tokens` (4), but is 5",
        ),
    ],
)
def test_options_at_odds_are_refused(options: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError) as error:
        DecodeOptions(**options)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [12, 30, 50]),
        ({"min_new_tokens": 20}, [21, 30, 50]),
        ({"min_new_tokens": 10**30}, [50, 50, 50]),
        ({"max_new_tokens": 7}, [7, 7, 7]),
        ({"max_new_tokens": 10**30}, [50, 50, 50]),
    ],
)
def test_limits(options: dict[str, int], expected: list[int]) -> None:
    assert [DecodeOptions(**options).limit(length, 50) for length in (1, 10, 40)] == expected


def test_the_score() -> None:
    assert DecodeOptions(length_penalty=2.0).score(-9.0, 3) == -1.0
    assert DecodeOptions(length_penalty=0.0).score(-9.0, 3) == -9.0
    assert DecodeOptions().score(0.0, 0) == -float("inf")
