"""Where the random numbers of this process stand, as plain data that a checkpoint can hold.

Lightning's checkpoint has none of it, so that dropout would draw other numbers after a resume.
"""

import random
from typing import Any

import numpy as np
import torch

State = dict[str, Any]


def random_state(device: torch.device) -> State:
    """The generators of Python, numpy and PyTorch, that of `device` included."""
    name, keys, *rest = np.random.get_state(legacy=True)
    state = {
        "python": random.getstate(),
        # As a list, since a checkpoint is loaded with weights_only=True, which knows no arrays.
        "numpy": [name, [int(key) for key in keys], *rest],
        "torch": torch.get_rng_state(),
    }
    if device.type == "cuda":
        state["cuda"] = torch.cuda.get_rng_state(device)
    return state


def set_random_state(state: State, device: torch.device) -> None:
    """Go on from `state`; what it does not have, such as a GPU's generator, stays as it is."""
    random.setstate(state["python"])
    name, keys, *rest = state["numpy"]
    np.random.set_state((name, np.array(keys, dtype=np.uint32), *rest))
    torch.set_rng_state(state["torch"])
    if device.type == "cuda" and "cuda" in state:
        torch.cuda.set_rng_state(state["cuda"], device)
