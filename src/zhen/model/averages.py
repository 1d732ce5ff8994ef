"""Averages of a model's weights, which often translate better than the weights of any one moment.

Two kinds: the plain mean of a few sets (Vaswani et al. 2017, section 6.1, took those of the last 5
checkpoints), and an exponential one that every update moves a little (Polyak and Juditsky 1992).
"""

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import get_ema_multi_avg_fn

Weights = dict[str, Tensor]  # each parameter once, by its name: a tied matrix is not stored twice


def copy_of(model: nn.Module) -> Weights:
    """The weights as they are now, in the CPU's memory."""
    return {name: p.detach().to("cpu", copy=True) for name, p in model.named_parameters()}


@torch.no_grad()
def put(weights: Mapping[str, Tensor], model: nn.Module) -> None:
    """Write `weights` over those of `model`.

    Raises:
        ValueError: they are of a model of another form.
    """
    parameters = dict(model.named_parameters())
    if shapes(weights) != shapes(parameters):
        raise ValueError("its averages are of another model")
    for name, parameter in parameters.items():
        parameter.copy_(weights[name])


def shapes(weights: Mapping[str, Tensor]) -> dict[str, torch.Size]:
    """The shape of each weight."""
    return {name: tensor.shape for name, tensor in weights.items()}


def mean(sets: list[Weights]) -> Weights:
    """The plain mean of at least one set."""
    return {name: sum(each[name] for each in sets) / len(sets) for name in sets[0]}  # type: ignore[misc]


def move_exponential(average: nn.Module, model: nn.Module, decay: float, number: int) -> None:
    """Let update `number`, counted from 1, with the weights of `model`, enter an average.

    After n updates w(1) ... w(n) it is Σ decay^(n-i) w(i) / Σ decay^(n-i). The division keeps out
    the random numbers that `average` began with, as Adam's correction of its moments does (Kingma
    and Ba 2015, section 3).

    Args:
        average: of the same form; changed in place.
    """
    kept = (decay - decay**number) / (1 - decay**number)
    get_ema_multi_avg_fn(kept)(list(average.parameters()), list(model.parameters()), None)
