"""How many CPU threads a step of decoding deserves."""

from types import TracebackType

import torch

from zhen.model import Transformer

# Multiplications from which a second thread pays, measured with `make bench` on two cores: below,
# waking it for every operator of a step takes longer than it saves.
WORTH_SHARING = 400_000_000


class Threads:
    """While it is entered, steps with little to compute run on one thread. No effect on GPUs."""

    def __init__(self, model: Transformer) -> None:
        self.weights = sum(parameter.numel() for parameter in model.parameters())
        self.all = self.now = torch.get_num_threads()

    def fit(self, rows: int) -> None:
        """Choose for a step that decodes so many rows."""
        self._set(self.all if rows * self.weights >= WORTH_SHARING else 1)

    def _set(self, count: int) -> None:
        if count != self.now:
            torch.set_num_threads(count)
            self.now = count

    def __enter__(self) -> "Threads":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._set(self.all)
