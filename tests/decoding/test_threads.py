"""Small steps run on one thread, and the caller's number comes back whatever happens."""

from collections.abc import Iterator

import pytest
import torch
from tests.decoding.table import EOS, pad, search, some_sources

from zhen.decoding import threads
from zhen.model import Transformer


@pytest.fixture(autouse=True)
def four_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def seen(model: Transformer, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of threads at each step, where three rows are worth sharing."""
    weights = sum(parameter.numel() for parameter in model.parameters())
    monkeypatch.setattr(threads, "WORTH_SHARING", 3 * weights)
    numbers: list[int] = []
    step = model.step

    def watched(*arguments: object) -> torch.Tensor:
        numbers.append(torch.get_num_threads())
        return step(*arguments)

    monkeypatch.setattr(model, "step", watched)
    return numbers


@pytest.mark.parametrize(
    ("sentences", "options", "expected"),
    [
        (2, {}, [1] * 4),
        (3, {}, [4] * 4),
        (1, {"num_beams": 2}, [1] * 4),
        (1, {"num_beams": 3}, [4] * 4),
        (2, {"num_beams": 2}, [4] * 4),
        (1, {"do_sample": True, "num_return_sequences": 2}, [1] * 4),
        (1, {"do_sample": True, "num_return_sequences": 3}, [4] * 4),
    ],
)
def test_by_the_rows_of_a_step(
    model: Transformer, seen: list[int], sentences: int, options: dict, expected: list[int]
) -> None:
    search(model, pad([[5, 6, EOS]] * sentences), min_new_tokens=4, max_new_tokens=4, **options)
    assert seen == expected and torch.get_num_threads() == 4


def test_fewer_as_sentences_finish(model: Transformer, seen: list[int]) -> None:
    found = search(model, pad(some_sources(3)))
    assert len({len(best[0].ids) for best in found}) > 1  # else the test says nothing
    assert set(seen) == {4, 1} and seen == sorted(seen, reverse=True)
    assert torch.get_num_threads() == 4


def test_the_number_comes_back_after_an_error(
    model: Transformer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        assert torch.get_num_threads() == 1
        raise RuntimeError("stop")

    monkeypatch.setattr(model, "step", fails)
    with pytest.raises(RuntimeError, match="stop"):
        search(model, pad([[5, 6, EOS]]))
    assert torch.get_num_threads() == 4
