"""What all contestants of the race share: the job, the pairs, and the clock that watches them.

Needs torch and numpy alone, since a contestant may live in another environment than zhen.

Shapes: B batch, S source length, T target length.
"""

import json
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from scripts.race.operations import Shape
from torch import Tensor, nn

Ids = list[int]
# A padded batch of sources (B, S) -> the ids of each translation, which may go on after its end.
Translate = Callable[[Tensor], list[Ids]]
EVAL_ROWS = 64


@dataclass(frozen=True)
class Job:
    """What a contestant is to train, and for how long."""

    folder: str  # for whatever it writes, its report among that
    pairs: str  # the file that `read_pairs` reads
    shape: dict[str, int]
    pad_id: int
    bos_id: int
    eos_id: int
    tokens: int  # padded pieces of a batch, both sides
    rows: int  # pairs of a batch, where batches have a fixed number of them
    dropout: float = 0.1
    label_smoothing: float = 0.1
    lr: float = 7e-4  # peak of the inverse square root
    lr_warmup: int = 400  # updates
    clip: float = 1.0
    precision: str = "32-true"
    device: str = "cpu"  # or cuda
    threads: int = 1
    seed: int = 0
    warmup: int = 10  # updates before the clock starts
    updates: int = 50  # after that; 0: until the time is over
    seconds: float = 0.0
    evaluate_every: int = 0  # updates; 0: never
    longest: int = 128  # pieces of a translation at most

    @classmethod
    def read(cls, folder: str | Path) -> "Job":
        return cls(**json.loads((Path(folder) / "job.json").read_text()))

    def write(self) -> None:
        (Path(self.folder) / "job.json").write_text(json.dumps(asdict(self)))

    def read_pairs(self) -> dict[str, list[Ids]]:
        """The ids of `source`, `target`, `val_source`, all without control pieces."""
        found: dict[str, list[Ids]] = json.loads(Path(self.pairs).read_text())
        return found

    def encoded(self) -> list[tuple[Ids, Ids]]:
        """The training pairs, each side with its end piece."""
        pairs, end = self.read_pairs(), [self.eos_id]
        return [(s + end, t + end) for s, t in zip(pairs["source"], pairs["target"], strict=True)]

    def schedule(self, done: int) -> float:
        """The share of `lr` in the update after `done` ones (Vaswani et al. 2017, 5.3)."""
        update, warmup = done + 1, max(1, self.lr_warmup)
        return min(update / warmup, (warmup / update) ** 0.5)

    def padded(self, rows: list[Ids]) -> Tensor:
        """(B, longest), filled up at the end."""
        longest = max(map(len, rows))
        return torch.tensor([[*row, *[self.pad_id] * (longest - len(row))] for row in rows])


class Clock:
    """Notes what each update trained on, and when; writes `report.json` when all is done.

    A token is a label that is no padding, the end piece included. The same lines count them for
    every contestant, in the tensor that its loss was made of.

    Args:
        job: what to do.
        model: to be evaluated.
        translate: greedily, with `model`.
        pads_output: whether padding goes through the output matrix.
    """

    def __init__(
        self, job: Job, model: nn.Module, translate: Translate, *, pads_output: bool = True
    ) -> None:
        self._job, self._model, self._translate = job, model, translate
        self._pads_output = pads_output
        self._done = 0
        self._lengths: list[tuple[Tensor, Tensor, int, int]] = []
        self._scored: list[dict[str, Any]] = []
        self._evaluating = 0.0
        self._start = self._now()

    def update(self, source: Tensor, labels: Tensor) -> bool:
        """Take note of an update that is over.

        Args:
            source: (B, S), and
            labels: (B, T), padded with `pad_id`.

        Returns:
            Whether the job is done, and its report written.
        """
        job = self._job
        self._done += 1
        if self._done <= job.warmup:
            self._start = self._now()
            return False
        real = [(each != job.pad_id).sum(dim=1) for each in (source, labels)]
        self._lengths.append((real[0], real[1], source.size(1), labels.size(1)))
        counted = self._done - job.warmup
        seconds = self._seconds() if job.seconds or counted == job.updates else 0.0
        over = counted == job.updates or 0 < job.seconds <= seconds
        if job.evaluate_every and (over or self._done % job.evaluate_every == 0):
            self._evaluate(seconds)
        if over:
            self._report(seconds)
        return over

    def _now(self) -> float:
        if self._job.device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()

    def _seconds(self) -> float:
        return self._now() - self._start - self._evaluating

    def _evaluate(self, seconds: float) -> None:
        """Translate the validation sources, while the clock stands still."""
        begin = self._now()
        job, training = self._job, self._model.training
        sources = [[*ids, job.eos_id] for ids in job.read_pairs()["val_source"]]
        order = sorted(range(len(sources)), key=lambda i: len(sources[i]))
        found: list[Ids] = [[] for _ in sources]
        self._model.eval()
        with torch.no_grad():
            for start in range(0, len(order), EVAL_ROWS):
                rows = order[start : start + EVAL_ROWS]
                source = job.padded([sources[i] for i in rows]).to(job.device)
                for i, ids in zip(rows, self._translate(source), strict=True):
                    found[i] = ids[: ids.index(job.eos_id)] if job.eos_id in ids else ids
        self._model.train(training)
        self._scored.append({"seconds": seconds, "update": self._done, "found": found})
        self._evaluating += self._now() - begin

    def _report(self, seconds: float) -> None:
        job, shape = self._job, Shape(**self._job.shape)
        tokens = pieces = padded = 0
        useful = made = 0.0
        for source, target, longest_source, longest_target in self._lengths:
            s, t = source.cpu().numpy(), target.cpu().numpy()
            widest_s, widest_t = (s * 0 + n for n in (longest_source, longest_target))
            tokens += int(t.sum())
            pieces += int(s.sum() + t.sum())
            padded += len(s) * (longest_source + longest_target)
            useful += shape.operations(s, t)
            made += shape.operations(widest_s, widest_t, None if self._pads_output else t)
        kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        report = {
            "seconds": seconds,
            "updates": len(self._lengths),
            "tokens": tokens,
            "real": pieces / padded,
            "useful": useful,
            "made": made,
            "parameters": sum(p.numel() for p in self._model.parameters()),
            "peak_gib": (
                torch.cuda.max_memory_allocated() / 2**30
                if job.device == "cuda"
                else kib / (2**30 if sys.platform == "darwin" else 2**20)
            ),
            "scored": self._scored,
        }
        (Path(job.folder) / "report.json").write_text(json.dumps(report))


def start(run: Callable[[Job], None]) -> None:
    """Let a contestant do the job whose folder the command line names."""
    job = Job.read(sys.argv[1])
    torch.set_num_threads(job.threads)
    torch.manual_seed(job.seed)
    run(job)
