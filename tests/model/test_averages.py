"""Averages of weights against their formulas."""

import copy

import pytest
import torch

from zhen.model import Transformer
from zhen.model.averages import copy_of, mean, move_exponential, put


def make(seed: int, **changes: int) -> Transformer:
    torch.manual_seed(seed)
    sizes = {"vocab_size": 9, "d_model": 8, "num_heads": 2, "d_ff": 8, "num_encoder_layers": 1}
    return Transformer(**{**sizes, "num_decoder_layers": 1, **changes})  # type: ignore[arg-type]


def test_a_copy_has_each_weight_once_and_stays_as_it_is() -> None:
    model = make(0)
    kept = copy_of(model)
    assert model.output.weight is model.embedding.pieces.weight
    assert sum(w.numel() for w in kept.values()) == sum(p.numel() for p in model.parameters())
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 1
    assert all(torch.equal(kept[name], before[name]) for name in before)


def test_the_plain_average_is_the_mean() -> None:
    models = [make(seed) for seed in range(3)]
    found = mean([copy_of(model) for model in models])
    for name in found:
        every = torch.stack([dict(model.named_parameters())[name].detach() for model in models])
        torch.testing.assert_close(found[name], every.mean(dim=0))


@pytest.mark.parametrize("decay", [0.5, 0.999])
def test_the_exponential_average_is_its_formula(decay: float) -> None:
    average, models = make(99).double(), [make(seed).double() for seed in range(5)]
    for number, model in enumerate(models, start=1):
        move_exponential(average, model, decay, number)
        shares = decay ** torch.arange(number - 1, -1, -1, dtype=torch.float64)
        shares /= shares.sum()
        for name, found in average.named_parameters():
            every = [dict(m.named_parameters())[name] for m in models[:number]]
            wanted = sum(share * each for share, each in zip(shares, every, strict=True))
            torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-9)


def test_weights_are_put_where_they_belong() -> None:
    model, other = make(0), make(1)
    put(copy_of(other), model)
    pairs = zip(model.state_dict().values(), other.state_dict().values(), strict=True)
    assert all(torch.equal(*pair) for pair in pairs)
    assert model.output.weight is model.embedding.pieces.weight


@pytest.mark.parametrize("changes", [{"num_encoder_layers": 2}, {"d_ff": 1}], ids=str)
def test_weights_of_another_form_are_refused(changes: dict[str, int]) -> None:
    model = make(0)
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(ValueError, match="of another model"):
        put(copy_of(make(0, **changes)), model)
    assert all(torch.equal(before[name], w) for name, w in model.state_dict().items())
