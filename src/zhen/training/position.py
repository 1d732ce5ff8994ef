"""Where a training stands, in the counters of Lightning's loops, as a checkpoint holds them.

Lightning writes down how far the hook that saves has come, and after a restart guesses from that
what is still to be done. Rewritten here, the counters say one of two things: a number of batches of
an epoch is done, with all that belongs to them, or the validation after them is still due.
"""

from typing import Any

Checkpoint = dict[str, Any]
COUNTS = ("ready", "started", "processed", "completed")


def half_made(batches: int, accumulation: int, first: int) -> int:
    """Micro-batches of the update that is not whole after so many batches of the epoch.

    Args:
        batches: that are done, counted as in a whole epoch.
        accumulation: micro-batches of an update; Lightning makes one where it divides `batches`.
        first: the batch with which the plan of this epoch begins.
    """
    return min(batches % accumulation, batches - first)


def between_updates(
    checkpoint: Checkpoint, accumulation: int, first: int, validation_due: bool
) -> None:
    """Rewrite the counters as they are after the last whole update of the epoch that has begun.

    Args:
        checkpoint: as Lightning makes it, in any hook of the training or its validation.
        accumulation: micro-batches of an update; those of a half-made one are taken back.
        first: the batch with which the plan of this epoch begins.
        validation_due: whether the validation after that update is still to be made.
    """
    loops = checkpoint["loops"]["fit_loop"]
    epochs, batches = loops["epoch_progress"], loops["epoch_loop.batch_progress"]
    current = batches["current"]
    # When a batch is about to begin, this already speaks of that one.
    batches["is_last_batch"] &= current["ready"] == current["processed"]
    back = 0
    if not batches["is_last_batch"]:
        back = half_made(current["processed"], accumulation, first)
    for each in ("total", "current"):
        begun = epochs[each]["started"]
        epochs[each].update(ready=begun, started=begun, processed=begun - 1, completed=begun - 1)
        _set(batches[each], batches[each]["processed"] - back)
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


def with_other_batches(checkpoint: Checkpoint, rest: range, before: int, now: int) -> None:
    """Count in batches of another size.

    Args:
        checkpoint: with counters as `between_updates` leaves them.
        rest: the batches of a rank that end the epoch; if there are none, it is over.
        before: number of ranks when it was written.
        now: that of the training that goes on.
    """
    loops = checkpoint["loops"]["fit_loop"]
    epochs, batches = loops["epoch_progress"], loops["epoch_loop.batch_progress"]
    done, total = batches["current"]["processed"], batches["total"]["processed"]
    first = rest.start if rest else 0
    if not rest:
        batches["is_last_batch"] = False
        for each in ("total", "current"):
            _set(epochs[each], epochs[each]["started"])
    _set(batches["current"], first)
    _set(batches["total"], (total - done) * before // now + first)


def epoch_is_over(checkpoint: Checkpoint) -> bool:
    """Whether all batches of the epoch that has begun are done."""
    return bool(checkpoint["loops"]["fit_loop"]["epoch_loop.batch_progress"]["is_last_batch"])


def epoch_and_batch(checkpoint: Checkpoint) -> tuple[int, int]:
    """Where the training goes on, both counted from 0."""
    loops = checkpoint["loops"]["fit_loop"]
    done = loops["epoch_progress"], loops["epoch_loop.batch_progress"]
    epoch, batch = (each["current"]["processed"] for each in done)
    return epoch, batch


def _set(counts: dict[str, int], number: int) -> None:
    counts.update(dict.fromkeys(COUNTS, number))
