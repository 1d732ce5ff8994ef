"""`torch.compile` for shapes that change with every batch."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import torch
from torch.fx.experimental import _config as shapes

P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """`function` with its operators fused, compiled at its first call.

    Every length and number of rows is a variable of what is compiled, so that one form serves all
    batches; only a batch of a single row gets one more. A function is compiled, not a module: a
    compiled module has other names for its weights, and so would its checkpoints.
    """
    shapes.use_duck_shape = False  # lengths that are equal in the first batch may differ later
    return torch.compile(function, dynamic=True)
