"""Where the time and the memory of an update go (`debug=profile`).

Phases are timed by the hooks around them, operators by PyTorch's profiler. The memory that an
update takes while it lasts comes, on a GPU, from PyTorch's count, and on the CPU, which has none,
from the profiler's record of each allocation.
"""

import gzip
import json
import logging
import os
import time
from itertools import accumulate
from pathlib import Path
from typing import Any

import lightning as L
import torch
from torch.profiler import ProfilerActivity, profile

from zhen.data import Batch
from zhen.files import write_atomic

log = logging.getLogger(__name__)

PHASES = ("wait for the batch", "forward and loss", "backward", "optimizer and the rest")
SAFE = 0.8  # of the memory: what is left over is for allocators and other batches
MIB = 2**20


class Profile(L.Callback):
    """Writes `trace.json.gz` (for chrome://tracing or Perfetto) and `profile.txt`.

    Args:
        run_dir: where the files go.
        warmup: micro-batches before the profile: the first ones make caches and optimizer state.
        batches: micro-batches that are profiled.

    Raises:
        ValueError: a number is below 1.
    """

    def __init__(self, *, run_dir: str, warmup: int, batches: int) -> None:
        for name, value in (("warmup", warmup), ("batches", batches)):
            if value < 1:
                raise ValueError(f"`{name}` must be at least 1, but is {value}")
        self._folder, self._first, self._last = Path(run_dir), warmup, warmup + batches
        self._seconds = dict.fromkeys(PHASES, 0.0)
        self._number = 0  # of micro-batches that are done
        self._profiler: Any = None
        self._padded: list[int] = []

    def on_train_batch_start(
        self, trainer: L.Trainer, module: L.LightningModule, batch: Batch, batch_idx: int
    ) -> None:
        if self._number == self._first and trainer.is_global_zero:
            activities = [ProfilerActivity.CPU]
            if module.device.type == "cuda":
                activities.append(ProfilerActivity.CUDA)
                torch.cuda.reset_peak_memory_stats(module.device)
                self._allocated = torch.cuda.memory_allocated(module.device)
            self._profiler = profile(activities=activities, profile_memory=True)
            self._profiler.start()
            self._clock = time.perf_counter()
        if self._profiler is not None:
            self._padded.append(batch.source.numel() + batch.target.numel())
        self._tick(PHASES[0], module)

    def on_before_backward(
        self, trainer: L.Trainer, module: L.LightningModule, loss: torch.Tensor
    ) -> None:
        self._tick(PHASES[1], module)

    def on_after_backward(self, trainer: L.Trainer, module: L.LightningModule) -> None:
        self._tick(PHASES[2], module)

    def on_train_batch_end(self, trainer: L.Trainer, module: L.LightningModule, *_: Any) -> None:
        self._tick(PHASES[3], module)
        self._number += 1
        if self._number == self._last and self._profiler is not None:
            self._profiler.stop()
            self._write(trainer, module)
            self._profiler = None

    def on_train_end(self, trainer: L.Trainer, module: L.LightningModule) -> None:
        if self._number < self._last and trainer.is_global_zero:
            log.warning(
                "no profile: the training ended after %d micro-batches, the profile takes %d; raise"
                " trainer.max_steps", self._number, self._last,
            )  # fmt: skip
            if self._profiler is not None:
                self._profiler.stop()

    def _tick(self, phase: str, module: L.LightningModule) -> None:
        if self._profiler is None:
            return
        if module.device.type == "cuda":  # it works on while Python goes ahead
            torch.cuda.synchronize(module.device)
        now = time.perf_counter()
        self._seconds[phase] += now - self._clock
        self._clock = now

    def _write(self, trainer: L.Trainer, module: L.LightningModule) -> None:
        trace = self._folder / "trace.json.gz"
        self._profiler.export_chrome_trace(str(trace))
        on = module.device.type
        lasting = state_bytes(trainer, module)
        passing = passing_bytes(trace)
        if on == "cuda":
            passing = torch.cuda.max_memory_allocated(module.device) - self._allocated
        total = memory_bytes(module.device)
        each = max(passing, 1) / max(self._padded)
        budget = int((SAFE * total - lasting) / each)
        seconds = sum(self._seconds.values())
        lines = [f"{len(self._padded)} micro-batches on {on}, {seconds:.2f} s", ""]
        lines += [f"{s / seconds:6.1%}  {phase}" for phase, s in self._seconds.items()]
        lines += [
            "",
            f"{lasting / MIB:,.0f} MiB stay: weights, gradients, optimizer",
            f"{passing / MIB:,.0f} MiB more at the peak of a micro-batch of"
            f" {max(self._padded):,} padded tokens: {each / 1024:,.2f} KiB a token",
            f"{total / MIB:,.0f} MiB is the memory of the device",
            f"data.batch.tokens={budget:,} at most, by estimate, takes {SAFE:.0%} of it",
        ]
        log.info("%s", "\n".join(lines))
        order = "self_device_time_total" if on == "cuda" else "self_cpu_time_total"
        table = self._profiler.key_averages().table(sort_by=order, row_limit=25)
        write_atomic(self._folder / "profile.txt", "\n".join([*lines, "", table, ""]))


def state_bytes(trainer: L.Trainer, module: L.LightningModule) -> int:
    """What lasts from update to update: weights, their gradients and the optimizer's moments."""
    # The gradients are as large as the weights.
    kept: list[torch.Tensor] = [*module.parameters(), *module.parameters()]
    for optimizer in trainer.optimizers:
        for state in optimizer.state.values():
            kept += [each for each in state.values() if isinstance(each, torch.Tensor)]
    return sum(each.numel() * each.element_size() for each in kept)


def passing_bytes(trace: Path) -> int:
    """The most memory of the CPU that was allocated at a time, above that at the trace's start."""
    with gzip.open(trace, "rt", encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    changes = sorted(
        (event["ts"], event["args"]["Bytes"])
        for event in events
        if event["name"] == "[memory]" and event["args"]["Device Type"] == 0
    )
    return max(accumulate((change for _, change in changes), initial=0))


def memory_bytes(device: torch.device) -> int:
    """The memory of the GPU, or of this machine."""
    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).total_memory
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
