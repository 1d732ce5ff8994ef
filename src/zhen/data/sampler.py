"""What hands the batches of a plan to the loader of one rank."""

from collections.abc import Callable, Iterator

from torch.utils.data import Sampler

from zhen.data.batching import EpochPlan, PlannedBatch


class TrainingSampler(Sampler[PlannedBatch]):
    """The batches of one rank, another plan each epoch; Lightning calls `set_epoch`.

    Args:
        plan: gives the plan of an epoch, each with as many batches.
        rank: of this process.
        epoch: the first one, counted from 0.
        first: the batch with which that one begins; what comes before it is not read.
    """

    def __init__(
        self, plan: Callable[[int], EpochPlan], rank: int, *, epoch: int = 0, first: int = 0
    ) -> None:
        self._make_plan, self._rank = plan, rank
        self._epoch, self._plan, self._first = epoch, plan(epoch), first

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
