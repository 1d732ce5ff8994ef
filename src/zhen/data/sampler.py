"""What hands the batches of a plan to the loader of one rank."""

from collections.abc import Callable, Iterator

from torch.utils.data import Sampler

from zhen.data.batching import EpochPlan, PlannedBatch


class TrainingSampler(Sampler[PlannedBatch]):
    """The batches of one rank, another plan each epoch; Lightning calls `set_epoch`.

    Args:
        plan: gives the plan of an epoch, each with as many batches.
        rank: of this process.
    """

    def __init__(self, plan: Callable[[int], EpochPlan], rank: int) -> None:
        self._make_plan, self._rank = plan, rank
        self._epoch, self._plan, self._first = 0, plan(0), 0

    def start(self, epoch: int, batch: int) -> None:
        """Begin with batch `batch` of `epoch`, once; what comes before it is not read."""
        self.set_epoch(epoch)
        self._first = batch

    def set_epoch(self, epoch: int) -> None:
        if epoch != self._epoch:
            self._epoch, self._plan, self._first = epoch, self._make_plan(epoch), 0

    def __len__(self) -> int:
        return len(self._plan)

    def __getitem__(self, i: int) -> PlannedBatch:
        """Batch `i` of this epoch; nothing before it needs to be read."""
        return self._plan.batch(self._rank, i)

    def __iter__(self) -> Iterator[PlannedBatch]:
        return (self[i] for i in range(self._first, len(self)))
