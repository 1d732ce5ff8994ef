"""The profile of a training: what it writes, and what it says of memory."""

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.conftest import Maker
from torch.profiler import profile

from zhen.data import BatchOptions
from zhen.training.profile import Profile, memory_bytes, passing_bytes, state_bytes


@pytest.fixture
def fit(
    tmp_path: Path,
    tsv: dict[str, Path],
    make_data: Maker,
    make_module: Maker,
    make_trainer: Maker,
) -> Maker:
    train = tmp_path / "train.tsv"
    train.write_bytes(tsv["train"].read_bytes() * 5)  # or the batches of an epoch would be small

    def run(warmup: int, batches: int, tokens: int = 100) -> tuple[Any, Any]:
        batch = BatchOptions(tokens=tokens, eval_tokens=64)
        data = make_data(train=str(train), max_length=16, batch=batch)
        module = make_module(data, optimizer=lambda groups: torch.optim.Adam(groups))
        callback = Profile(run_dir=str(tmp_path), warmup=warmup, batches=batches)
        trainer = make_trainer(
            limit_val_batches=0, max_epochs=-1, max_steps=8, callbacks=[callback]
        )
        trainer.fit(module, datamodule=data)
        return trainer, module

    return run


def test_it_writes_a_trace_and_a_table(fit: Maker, tmp_path: Path) -> None:
    trainer, module = fit(warmup=3, batches=2)
    with gzip.open(tmp_path / "trace.json.gz", "rt", encoding="utf-8") as file:
        names = [event["name"] for event in json.load(file)["traceEvents"]]
    assert names.count("Optimizer.step#Adam.step") == 2
    text = (tmp_path / "profile.txt").read_text(encoding="utf-8")
    assert "2 micro-batches on cpu" in text and "aten::mm" in text
    shares = [float(each) for each in re.findall(r"^ *([\d.]+)%  \w", text, flags=re.MULTILINE)]
    assert len(shares) == 4 and sum(shares) == pytest.approx(100, abs=0.3)

    # Weights, gradients, two moments, and Adam's count of steps for each tensor.
    parameters = list(module.parameters())
    assert state_bytes(trainer, module) == 16 * sum(p.numel() for p in parameters) + 4 * len(
        parameters
    )


def test_the_budget_follows_from_what_is_written_beside_it(fit: Maker, tmp_path: Path) -> None:
    trainer, module = fit(warmup=1, batches=3)
    text = (tmp_path / "profile.txt").read_text(encoding="utf-8").replace(",", "")
    each = float(re.search(r"([\d.]+) KiB a token", text)[1]) * 1024  # type: ignore[index]
    budget = int(re.search(r"data.batch.tokens=(\d+)", text)[1])  # type: ignore[index]
    total = memory_bytes(module.device)
    assert budget * each + state_bytes(trainer, module) == pytest.approx(0.8 * total, rel=0.01)


def test_a_training_with_the_budget_takes_no_more_than_the_memory(
    fit: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = 2 * 2**20
    monkeypatch.setattr("zhen.training.profile.memory_bytes", lambda device: given)
    fit(warmup=2, batches=6, tokens=100)
    text = (tmp_path / "profile.txt").read_text(encoding="utf-8").replace(",", "")
    budget = int(re.search(r"data.batch.tokens=(\d+)", text)[1])  # type: ignore[index]
    assert budget > 300  # several times what was measured
    trainer, module = fit(warmup=2, batches=6, tokens=budget)
    taken = state_bytes(trainer, module) + passing_bytes(tmp_path / "trace.json.gz")
    assert 0.5 * given < taken < given


def test_passing_memory_is_the_most_at_a_time(tmp_path: Path) -> None:
    before = torch.ones(2**18)  # 1 MiB, not counted
    with profile(profile_memory=True) as profiler:
        for _ in range(3):
            one = torch.ones(2**18)
            two = one + before
            del one, two
    trace = tmp_path / "trace.json.gz"
    profiler.export_chrome_trace(str(trace))
    assert passing_bytes(trace) == pytest.approx(2 * 2**20, rel=0.01)


def test_a_training_that_is_too_short(
    fit: Maker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fit(warmup=6, batches=20)
    assert "no profile: the training ended after 8 micro-batches, the profile takes 26" in (
        caplog.text
    )
    assert not (tmp_path / "profile.txt").exists()


@pytest.mark.parametrize("name", ["warmup", "batches"])
def test_numbers_that_make_no_sense(name: str) -> None:
    with pytest.raises(ValueError, match=f"`{name}` must be at least 1, but is 0"):
        Profile(**{"run_dir": "x", "warmup": 1, "batches": 1, name: 0})
