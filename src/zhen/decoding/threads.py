"""How many CPU threads a step of decoding deserves."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from zhen.model import Transformer

# Rows times parameters, a rough measure of a step's work, from which a second thread pays; found
# with `make bench` on two cores. Below, waking it for every operator takes longer than it saves.
WORTH_SHARING = 400_000_000


@contextmanager
def fitting_threads(model: Transformer) -> Iterator[Callable[[int], None]]:
    """Gives what to call before each step with the rows it decodes, to set torch's threads.

    They are torch's for the whole process, and on leaving they are again as many as they were.
    On a GPU it changes nothing that matters there.
    """
    parameters = model.num_parameters
    now = before = torch.get_num_threads()

    def fit(rows: int) -> None:
        nonlocal now
        wanted = before if rows * parameters >= WORTH_SHARING else 1
        if wanted != now:
            torch.set_num_threads(wanted)
            now = wanted

    try:
        yield fit
    finally:
        torch.set_num_threads(before)
