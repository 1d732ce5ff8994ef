"""The machine's matrix throughput in the race's precision: python -m scripts.race.ceiling JOB"""

import json
import time
from pathlib import Path
from statistics import median

import torch
from scripts.race.job import Job, start

SIZES = {"cpu": 2048, "cuda": 8192}
REPEATS, SECONDS = 20, 10.0  # whichever ends first


def throughput(device: str, dtype: torch.dtype, size: int) -> float:
    """Operations a second of one large product, the median of some, 2 · n³ each."""
    a, b = (torch.randn(size, size, dtype=torch.float32).to(device, dtype) for _ in range(2))
    seconds: list[float] = []
    while len(seconds) < REPEATS and sum(seconds) < SECONDS:
        begin = time.perf_counter()
        torch.mm(a, b)
        if device == "cuda":
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - begin)
    return 2 * size**3 / median(seconds[len(seconds) // 4 :])  # the first ones warm up


def run(job: Job) -> None:
    dtype = torch.bfloat16 if job.precision.startswith("bf16") else torch.float32
    found = throughput(job.device, dtype, SIZES[job.device])
    (Path(job.folder) / "report.json").write_text(json.dumps({"throughput": found}))


if __name__ == "__main__":
    start(run)
