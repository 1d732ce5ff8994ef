"""Dropout drops the right share, everywhere alike, and scales what it keeps."""

import pytest
import torch
from torch import nn

from zhen.model.dropout import Dropout

SIZE = 200_000
SIGMAS = 6


def dropped(p: float, size: int = SIZE) -> torch.Tensor:
    """True where one call dropped an element."""
    return Dropout(p)(torch.ones(size)) == 0


@pytest.mark.parametrize("p", [0.01, 0.1, 0.3, 0.5, 0.9])
def test_share_dropped_and_mean(p: float) -> None:
    torch.manual_seed(0)
    output = Dropout(p)(torch.ones(SIZE))
    error = SIGMAS * (p * (1 - p) / SIZE) ** 0.5
    assert (output == 0).double().mean().item() == pytest.approx(p, abs=error)
    assert output.double().mean().item() == pytest.approx(1.0, abs=error / (1 - p))
    kept = output[output != 0]
    torch.testing.assert_close(kept, torch.full_like(kept, 1 / (1 - p)), rtol=1e-3, atol=0)


@pytest.mark.parametrize("p", [0.1, 0.5])
def test_neighbours_are_independent(p: float) -> None:
    """Four elements share one draw; none of them may know of another."""
    torch.manual_seed(0)
    lanes = dropped(p).view(-1, 4).double()
    count = lanes.size(0)
    for lane in range(4):
        error = SIGMAS * (p * (1 - p) / count) ** 0.5
        assert lanes[:, lane].mean().item() == pytest.approx(p, abs=error)
        for other in range(lane):
            both = (lanes[:, lane] * lanes[:, other]).mean().item()
            assert both == pytest.approx(p * p, abs=SIGMAS * (p * p * (1 - p * p) / count) ** 0.5)


def test_reproducible_from_the_seed_and_new_each_time() -> None:
    torch.manual_seed(7)
    first, second = dropped(0.5), dropped(0.5)
    torch.manual_seed(7)
    assert torch.equal(dropped(0.5), first)
    assert torch.equal(dropped(0.5), second)
    assert not torch.equal(first, second)


def test_off_in_evaluation_and_at_zero() -> None:
    x = torch.randn(10)
    assert torch.equal(Dropout(0.9).eval()(x), x)
    assert torch.equal(Dropout(0.0).train()(x), x)
    # And follows the module it stands in.
    assert torch.equal(nn.Sequential(Dropout(0.9)).eval()(x), x)


def test_gradient_is_mask_times_scale() -> None:
    torch.manual_seed(0)
    x = torch.rand(1000, dtype=torch.float64) + 1
    x.requires_grad_()
    output = Dropout(0.25)(x)
    above = torch.randn(1000, dtype=torch.float64)
    (gradient,) = torch.autograd.grad(output, x, above)
    expected = above * (output != 0) / 0.75
    torch.testing.assert_close(gradient, expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 5), (2, 3, 7), (4, 0, 2)])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_any_shape_and_type(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    output = Dropout(0.5)(torch.ones(shape, dtype=dtype))
    assert output.shape == shape
    assert output.dtype == dtype
    assert ((output == 0) | (output == 2)).all()


def test_an_input_that_is_no_contiguous_block() -> None:
    x = torch.arange(1.0, 13).view(3, 4).T
    output = Dropout(0.5)(x)
    assert ((output == 0) | (output == 2 * x)).all()


def test_close_to_one() -> None:
    """`p` is rounded, but never to 1, where there is no scale."""
    assert Dropout(1 - 1e-9)(torch.ones(1000)).isfinite().all()
