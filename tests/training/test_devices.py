"""What a device cannot do is refused before any work, with what it can do."""

import shutil
import sysconfig
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from zhen.errors import UserError
from zhen.training.devices import check_device, described, set_up_device


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """One without a GPU, whatever this one has."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    return monkeypatch


def with_gpus(machine: pytest.MonkeyPatch, *generations: tuple[int, int]) -> None:
    machine.setattr(torch.cuda, "is_available", lambda: True)
    machine.setattr(torch.cuda, "device_count", lambda: len(generations))
    machine.setattr(torch.cuda, "get_device_capability", lambda i: generations[i])


def refusal(accelerator: str, precision: str, tf32: bool = False, compile: bool = False) -> str:
    with pytest.raises(UserError) as refused:
        check_device(accelerator, precision, tf32=tf32, compile=compile)
    return str(refused.value)


def test_the_cpu(machine: pytest.MonkeyPatch) -> None:
    for precision in ("32-true", "bf16-mixed", "64-true"):
        check_device("auto", precision, tf32=False, compile=False)
    assert refusal("auto", "16-mixed") == (
        "trainer.precision=16-mixed: the CPU cannot do it; trainer.precision may be 32-true,"
        " bf16-mixed, 64-true"
    )
    assert refusal("cpu", "32-true", tf32=True).startswith("tf32=true: the CPU has no TF32, only")
    for accelerator in ("gpu", "cuda", "mps"):
        assert refusal(accelerator, "32-true").startswith(
            f"trainer.accelerator={accelerator}: PyTorch finds no such device here; take cpu ("
        )


@pytest.mark.parametrize("accelerator", ["auto", "gpu", "cuda"])
def test_gpus(machine: pytest.MonkeyPatch, accelerator: str) -> None:
    with_gpus(machine, (9, 0), (8, 0))
    for precision in ("32-true", "bf16-mixed", "16-mixed", "64-true"):
        check_device(accelerator, precision, tf32=True, compile=False)
    with_gpus(machine, (9, 0), (7, 5))  # one of them is older
    check_device(accelerator, "16-mixed", tf32=False, compile=False)
    assert refusal(accelerator, "bf16-mixed") == (
        "trainer.precision=bf16-mixed: this GPU cannot do it; trainer.precision may be 32-true,"
        " 16-mixed, 64-true"
    )
    assert refusal(accelerator, "32-true", tf32=True).startswith("tf32=true: this GPU has no TF32")


def test_compile_needs_a_compiler(machine: pytest.MonkeyPatch, tmp_path: Path) -> None:
    machine.setenv("CXX", "my-g++")
    assert refusal("cpu", "32-true", compile=True) == (
        "compile=true needs a C++ compiler (my-g++), which is not here: install it, or take"
        " compile=false"
    )
    machine.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    machine.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    assert "Python.h (the package python3-dev), which is" in refusal("cpu", "32-true", compile=True)
    (tmp_path / "Python.h").touch()
    check_device("cpu", "32-true", tf32=False, compile=True)


@pytest.mark.parametrize(("tf32", "precision"), [(True, "high"), (False, "highest")])
def test_tf32_is_switched_on_and_off(
    machine: pytest.MonkeyPatch, tf32: bool, precision: str
) -> None:
    with_gpus(machine, (8, 0))
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("medium")  # left by somebody else
        set_up_device("gpu", "32-true", tf32=tf32, compile=False)
        assert torch.get_float32_matmul_precision() == precision
    finally:
        torch.set_float32_matmul_precision(before)


def test_the_log_says_what_runs(machine: pytest.MonkeyPatch) -> None:
    """On GPUs, which the trainings of the other tests do not have."""
    machine.setattr(torch.cuda, "get_device_name", lambda device: f"H200 number {device.index}")
    trainer: Any = SimpleNamespace(
        strategy=SimpleNamespace(root_device=torch.device("cuda", 1)),
        world_size=8, num_nodes=2, precision="32-true",
    )  # fmt: skip
    assert described(trainer, tf32=True, compile=True) == (
        "8 ranks on 2 machines x cuda (H200 number 1), 32-true with TF32, compiled"
    )
    trainer.precision = "16-mixed"
    assert described(trainer, tf32=False, compile=False).endswith("(H200 number 1), 16-mixed")
