"""Where a training stands, in the counters of Lightning's loops, as a checkpoint holds them.

Lightning writes down how far the hook that saves has come, and after a restart guesses from that
what is still to be done. Rewritten here, the counters say one of two things: a number of batches of
an epoch is done, with all that belongs to them, or the validation after them is still due.
"""

from typing import Any

Checkpoint = dict[str, Any]
COUNTS = ("ready", "started", "processed", "completed")


def between_updates(checkpoint: Checkpoint, accumulation: int, validation_due: bool) -> None:
    """Rewrite the counters as they are after the last whole update of the epoch that has begun.

    Args:
        checkpoint: as Lightning makes it, in any hook of the training or its validation.
        accumulation: micro-batches of an update; those of a half-made one are taken back.
        validation_due: whether the validation after that update is still to be made.
    """
    loops = checkpoint["loops"]["fit_loop"]
    epochs, batches = loops["epoch_progress"], loops["epoch_loop.batch_progress"]
    current = batches["current"]
    # When a batch is about to begin, this already speaks of that one.
    batches["is_last_batch"] &= current["ready"] == current["processed"]
    half_made = 0 if batches["is_last_batch"] else current["processed"] % accumulation
    for each in ("total", "current"):
        begun = epochs[each]["started"]
        epochs[each].update(ready=begun, started=begun, processed=begun - 1, completed=begun - 1)
        _set(batches[each], batches[each]["processed"] - half_made)
    # The gradients of a half-made update were cleared for it.
    updates = loops["epoch_loop.automatic_optimization.optim_progress"]["optimizer"]
    for each in ("total", "current"):
        updates["zero_grad"][each].update(
            updates["step"][each], started=updates["step"][each]["ready"]
        )
    validation = loops["epoch_loop.val_loop.batch_progress"]
    validation["is_last_batch"] = not validation_due
    for each in ("total", "current"):
        _set(validation[each], 0)
    if validation_due:  # "in the middle of it": Lightning then begins it anew
        validation["total"].update(ready=1, started=1)
    # That of the last update: Lightning adds one when it goes on.
    loops["epoch_loop.state_dict"]["_batches_that_stepped"] = checkpoint["global_step"] - 1


def with_other_batches(
    checkpoint: Checkpoint, before: tuple[int, int], now: tuple[int, int]
) -> None:
    """Count in batches of another size, beginning with a whole update that is not done yet.

    Args:
        checkpoint: with counters as `between_updates` leaves them.
        before: number of ranks and accumulation when it was written.
        now: those of the training that goes on.
    """
    if before == now:
        return
    (ranks_before, _), (ranks, accumulation) = before, now
    loops = checkpoint["loops"]["fit_loop"]
    epochs, batches = loops["epoch_progress"], loops["epoch_loop.batch_progress"]
    done, total = batches["current"]["processed"], batches["total"]["processed"]
    moved = done * ranks_before // ranks // accumulation * accumulation
    if batches["is_last_batch"]:  # the epoch ends, however many batches it would have
        moved, batches["is_last_batch"] = 0, False
        for each in ("total", "current"):
            _set(epochs[each], epochs[each]["started"])
    _set(batches["current"], moved)
    _set(batches["total"], (total - done) * ranks_before // ranks + moved)


def epoch_and_batch(checkpoint: Checkpoint) -> tuple[int, int]:
    """Where the training goes on, both counted from 0."""
    loops = checkpoint["loops"]["fit_loop"]
    done = loops["epoch_progress"], loops["epoch_loop.batch_progress"]
    epoch, batch = (each["current"]["processed"] for each in done)
    return epoch, batch


def _set(counts: dict[str, int], number: int) -> None:
    counts.update(dict.fromkeys(COUNTS, number))
