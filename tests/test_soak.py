"""Real trainings, killed again and again, end as one that nobody touched.

`make soak` kills twenty times; the tests, twice.
"""

import csv
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.apart import environment_apart

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
KILLS = int(os.environ.get("ZHEN_SOAK_KILLS", "2"))
UPDATES = 36
# Where, and in which call at most: a process makes so many at least.
PLACES = {"moment": 0, "validation": 4, "writing": 3, "linking": 1, "renaming": 3, "update": 20}


class Soak:
    """A run, and the processes that train it one after the other."""

    def __init__(self, folder: Path, tsv: dict[str, Path]) -> None:
        self.folder, self.run = folder, folder / "runs" / "debug" / "killed"
        self.settings = [
            "debug=fast",
            "data=files",
            *(f"data.{name}={path}" for name, path in tsv.items()),
            f"trainer.max_steps={UPDATES}",
            "trainer.val_check_interval=6",
            "trainer.limit_val_batches=1.0",
            "data.batch.tokens=300",
            "data.batch.eval_tokens=40",
            "callbacks.checkpoint.monitor=val/chrf",
            "callbacks.checkpoint.every_n_updates=2",
            "callbacks.averages.ema_decay=0.9",
            "callbacks.averages.last=2",
            "callbacks.averages.weights=average",
            "optimizer.lr=0.01",
            "scheduler=linear",
            "scheduler.warmup=5",
        ]
        self.environment = environment_apart(folder)

    def start(self, place: str, number: int, run_id: str) -> subprocess.Popen[bytes]:
        paths = [f"paths.runs={self.folder / 'runs'}", f"paths.cache={self.folder / 'cache'}"]
        command = [sys.executable, "-m", "zhen.train"]
        if place not in ("", "moment"):
            command = [sys.executable, str(ROOT / "tests" / "killed.py"), place, str(number)]
        return subprocess.Popen(
            [*command, *self.settings, *paths, "resume=auto"],
            cwd=self.folder,
            env={**self.environment, "ZHEN_RUN_ID": run_id},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )

    def kill_somewhere(self, place: str, rng: random.Random) -> bool:
        """Go on with the run and kill it; False where it was faster and has ended."""
        before = self.last_row()
        process = self.start(place, rng.randint(1, max(PLACES[place], 1)), "killed")
        if place == "moment":
            while process.poll() is None and self.last_row() == before:
                time.sleep(0.01)
            time.sleep(rng.uniform(0, 1.0))
            process.send_signal(signal.SIGKILL)
        error = process.communicate(timeout=300)[1].decode()
        assert process.returncode in (-signal.SIGKILL, 0), error
        return process.returncode != 0

    def last_row(self) -> bytes:
        file = self.run / "metrics.csv"
        return file.read_bytes()[-40:] if file.exists() else b""


def end_of(run: Path) -> dict[str, Any]:
    """What a training that ended leaves, but for times."""
    results = json.loads((run / "results.json").read_text(encoding="utf-8"))
    with (run / "metrics.csv").open(encoding="utf-8", newline="") as file:
        rows = [{k: v for k, v in row.items() if v} for row in csv.DictReader(file)]
    content = torch.load(run / "checkpoints" / "last.ckpt", weights_only=True)
    return {
        "test": results["test"],
        "updates": results["updates"],
        "rows": rows,
        "schedule": content["lr_schedulers"],
        "best": content["callbacks"]["Checkpoints"],
        "hypotheses": (run / "test.hyp").read_bytes(),
    }


def weights(run: Path, name: str) -> dict[str, torch.Tensor]:
    content = torch.load(run / "checkpoints" / name, weights_only=True)
    moments = {
        f"{i} {key}": tensor
        for i, state in content["optimizer_states"][0]["state"].items()
        for key, tensor in state.items()
    }
    kept = content["averages"]
    averages = {
        f"{kind} {name}": tensor
        for kind, each in {"ema": kept["ema"], **kept["last"]}.items()
        for name, tensor in each.items()
    }
    return {**content["state_dict"], **moments, **averages}


def test_killed_at_any_moment(tmp_path: Path, tsv: dict[str, Path]) -> None:
    soak, seed = Soak(tmp_path, tsv), random.randrange(2**32)
    rng = random.Random(seed)
    print(f"seed {seed}")  # shown where the test fails
    whole = soak.start("", 0, "whole")
    error = whole.communicate(timeout=300)[1].decode()
    assert whole.returncode == 0, error
    kills = 0
    while kills < KILLS:
        places = list(PLACES)
        rng.shuffle(places)
        for place in places:
            if kills < KILLS and soak.kill_somewhere(place, rng):
                kills += 1
        last = soak.start("", 0, "killed")
        error = last.communicate(timeout=300)[1].decode()
        assert last.returncode == 0, error
        other = soak.run.parent / "whole"
        assert end_of(soak.run) == end_of(other)
        for name in ("last.ckpt", "best.ckpt"):
            ours, theirs = weights(soak.run, name), weights(other, name)
            assert ours.keys() == theirs.keys()
            assert all(torch.equal(ours[key], theirs[key]) for key in ours)
        assert sorted(path.name for path in (soak.run / "checkpoints").iterdir()) == [
            "best.ckpt",
            "last.ckpt",
        ]
        shutil.rmtree(soak.run)
