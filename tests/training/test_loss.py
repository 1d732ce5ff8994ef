"""The loss: equal to sums by hand and to torch's own, untouched by padding."""

import math

import pytest
import torch
from torch.nn import CrossEntropyLoss
from torch.nn import functional as F

from zhen.data import Batch
from zhen.data.ragged import pad
from zhen.model import Transformer
from zhen.training.loss import SmoothedCrossEntropy, token_loss

PAIRS = [([5, 6, 7], [8, 9]), ([5], [4, 5, 6, 7, 8]), ([9, 8], [3])]
BOS, EOS = 1, 2


@pytest.fixture
def model() -> Transformer:
    torch.manual_seed(0)
    return Transformer(
        vocab_size=11,
        d_model=8,
        num_heads=2,
        d_ff=16,
        num_encoder_layers=1,
        num_decoder_layers=1,
        dropout=0.0,
        max_positions=16,
    )


def batch_of(pairs: list[tuple[list[int], list[int]]], extra: int = 0) -> Batch:
    """A batch with `extra` columns of padding on both sides."""
    tokens = sum(len(t) + 1 for _, t in pairs)
    return Batch(
        indices=list(range(len(pairs))),
        source=F.pad(pad([[*s, EOS] for s, _ in pairs], 0), (0, extra)),
        target=F.pad(pad([[BOS, *t] for _, t in pairs], 0), (0, extra)),
        labels=F.pad(pad([[*t, EOS] for _, t in pairs], 0), (0, extra)),
        tokens=tokens,
        update_tokens=tokens,
    )


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_equals_the_sum_by_hand_over_single_tokens(model: Transformer, smoothing: float) -> None:
    nll = smoothed = count = 0.0
    for source, target in PAIRS:
        logits = model(torch.tensor([[*source, EOS]]), torch.tensor([[BOS, *target]]))[0]
        for position, label in enumerate([*target, EOS]):
            logs = (logits[position].exp() / logits[position].exp().sum()).log().tolist()
            wanted = [smoothing / 11] * 11
            wanted[label] += 1 - smoothing
            nll -= logs[label]
            smoothed -= sum(p * q for p, q in zip(wanted, logs, strict=True))
            count += 1
    found = token_loss(model, batch_of(PAIRS), smoothing)
    assert found.tokens == count == 11
    assert found.nll.item() == pytest.approx(nll, rel=1e-5)
    assert found.smoothed.item() == pytest.approx(smoothed, rel=1e-5)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.9])
def test_equals_torch_on_tokens_without_padding(model: Transformer, smoothing: float) -> None:
    batch = batch_of(PAIRS)
    real = batch.labels != 0
    logits = model(batch.source, batch.target)[real]
    wanted = CrossEntropyLoss(label_smoothing=smoothing, reduction="sum")(
        logits, batch.labels[real]
    )
    found = token_loss(model, batch, smoothing)
    torch.testing.assert_close(found.smoothed, wanted)
    ours = torch.autograd.grad(found.smoothed, list(model.parameters()))
    torchs = torch.autograd.grad(wanted, list(model.parameters()))
    torch.testing.assert_close(ours, torchs)


def test_padding_changes_neither_loss_nor_gradient(model: Transformer) -> None:
    parameters = list(model.parameters())
    tight, wide = (token_loss(model, batch_of(PAIRS, extra), 0.1) for extra in (0, 5))
    assert tight.tokens == wide.tokens
    torch.testing.assert_close(wide.smoothed, tight.smoothed)
    torch.testing.assert_close(wide.nll, tight.nll)
    torch.testing.assert_close(
        torch.autograd.grad(wide.smoothed, parameters),
        torch.autograd.grad(tight.smoothed, parameters),
    )


def test_a_batch_is_the_sum_of_its_pairs(model: Transformer) -> None:
    whole = token_loss(model, batch_of(PAIRS), 0.1)
    parts = [token_loss(model, batch_of([pair]), 0.1) for pair in PAIRS]  # without any padding
    torch.testing.assert_close(whole.smoothed, sum(part.smoothed for part in parts))
    torch.testing.assert_close(whole.nll, sum(part.nll for part in parts))


def test_an_impossible_label_is_finite(model: Transformer) -> None:
    with torch.no_grad():
        model.output.weight.mul_(1e4)  # probabilities that are 0 in float32
        found = token_loss(model, batch_of(PAIRS), 0.1)
    assert math.isfinite(found.smoothed.item()) and math.isfinite(found.nll.item())


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_gradient_written_out_is_that_of_the_value(smoothing: float) -> None:
    logits = torch.randn(4, 7, dtype=torch.float64, requires_grad=True)
    labels = torch.tensor([0, 6, 3, 3])
    (2.5 * SmoothedCrossEntropy.apply(logits, labels, smoothing)[0]).backward()
    wanted = torch.full((4, 7), smoothing / 7, dtype=torch.float64)
    wanted[range(4), labels] += 1 - smoothing
    value = -2.5 * (wanted * logits.log_softmax(-1)).sum()
    torch.testing.assert_close(logits.grad, torch.autograd.grad(value, logits)[0])
