"""Small steps run on one thread, and the caller's number comes back whatever happens."""

from collections.abc import Iterator

import pytest
import torch
from tests.decoding.table import BOS, EOS, pad

from zhen.decoding import DecodeOptions, generate
from zhen.decoding.threads import WORTH_SHARING, Threads
from zhen.model import Transformer


@pytest.fixture(autouse=True)
def four_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    yield
    torch.set_num_threads(before)


def test_by_rows_and_weights(model: Transformer) -> None:
    weights = sum(parameter.numel() for parameter in model.parameters())
    with Threads(model) as threads:
        for rows, expected in ((WORTH_SHARING // weights + 1, 4), (1, 1), (10**9, 4), (64, 1)):
            threads.fit(rows)
            assert torch.get_num_threads() == expected
    assert torch.get_num_threads() == 4


@pytest.mark.parametrize("options", [{}, {"num_beams": 3}, {"do_sample": True}])
def test_decoding_uses_them_and_gives_them_back(
    model: Transformer, options: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    step = model.step

    def watched(*arguments: object) -> torch.Tensor:
        seen.append(torch.get_num_threads())
        if len(seen) == 3:
            raise RuntimeError("stop")
        return step(*arguments)

    monkeypatch.setattr(model, "step", watched)
    with pytest.raises(RuntimeError, match="stop"):
        generate(
            model, pad([[5, 6, EOS]]), DecodeOptions(min_new_tokens=9, **options),
            bos_id=BOS, eos_id=EOS,
        )  # fmt: skip
    assert seen == [1, 1, 1] and torch.get_num_threads() == 4
