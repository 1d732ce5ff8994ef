"""Claim 5: the gradient of an update depends on its pairs alone.

Every update here is one of all pairs, shared out in different ways; Lightning by itself would
average the means of micro-batches and ranks, which differ where their numbers of tokens do.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.training import toy_training
from tests.training.toy_training import UPDATES, train

WHOLE = 100_000  # tokens: all pairs in one batch
TOLERANCES = {"64-true": 1e-12, "32-true": 1e-6}


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sentences of very different lengths."""
    path = tmp_path_factory.mktemp("exact") / "pairs.tsv"
    lines = [
        f"{'我喜欢茶。' * (i % 5 + 1)}\t{'I like tea. ' * (i % 3 + 1)}{i}\n" for i in range(60)
    ]
    path.write_text("".join(lines), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def wanted(pairs: Path) -> dict[str, dict[str, Any]]:
    """By precision: one rank, one batch."""
    return {precision: train(pairs, tokens=WHOLE, precision=precision) for precision in TOLERANCES}


def assert_same(found: dict[str, Any], wanted: dict[str, Any], precision: str) -> None:
    assert len(found["gradients"]) == len(wanted["gradients"]) == UPDATES
    for ours, theirs in zip(
        [*found["gradients"], found["weights"]],
        [*wanted["gradients"], wanted["weights"]],
        strict=True,
    ):
        for name, value in theirs.items():
            tolerance = TOLERANCES[precision]
            torch.testing.assert_close(ours[name], value, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("precision", TOLERANCES)
@pytest.mark.parametrize(
    ("tokens", "accumulate", "batches"),
    [(180, 8, 8), (400, 4, 4), (1000, 2, 2), (400, 8, 4)],
    ids=["8 micro-batches", "4", "2", "an update cut short: 4 of 8"],
)
def test_micro_batches_do_not_matter(
    pairs: Path,
    wanted: dict[str, dict[str, Any]],
    tokens: int,
    accumulate: int,
    batches: int,
    precision: str,
) -> None:
    found = train(pairs, tokens=tokens, accumulate=accumulate, precision=precision)
    assert found["batches"] == batches * UPDATES
    assert_same(found, wanted[precision], precision)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("devices", "tokens", "accumulate", "precision"),
    [
        (2, 900, 1, "64-true"),
        (3, 150, 3, "64-true"),
        (2, 400, 8, "32-true"),
        (3, 150, 3, "32-true"),
    ],
)
def test_ranks_do_not_matter(
    pairs: Path,
    wanted: dict[str, dict[str, Any]],
    tmp_path: Path,
    devices: int,
    tokens: int,
    accumulate: int,
    precision: str,
) -> None:
    options = {
        "devices": devices, "tokens": tokens, "accumulate": accumulate, "precision": precision,
    }  # fmt: skip
    saved = tmp_path / "found.pt"
    command = [sys.executable, toy_training.__file__, str(pairs), str(saved), json.dumps(options)]
    subprocess.run(command, check=True, timeout=300)
    assert_same(torch.load(saved), wanted[precision], precision)
