"""What computes, and with which precision: what was asked for is what runs, or it is refused."""

import importlib.util
import os
import shutil
import sys
import sysconfig
from pathlib import Path

import lightning as L
import torch

from zhen.errors import UserError

AMPERE = (8, 0)  # the first NVIDIA GPUs with bfloat16 and TF32
NAMES = {"cpu": "the CPU", "cuda": "this GPU", "mps": "the GPU of this Mac"}


def set_up_device(accelerator: str, precision: str, *, tf32: bool, compile: bool) -> None:
    """`check_device`, and then the switches of this process that belong to no object.

    Raises:
        UserError: as `check_device`.
    """
    check_device(accelerator, precision, tf32=tf32, compile=compile)
    torch.set_float32_matmul_precision("high" if tf32 else "highest")
    # With `trainer.deterministic`, PyTorch also fills every new tensor, to expose reads of
    # uninitialised memory. Nothing here reads any, and on a CPU it costs a tenth of the speed.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]


def check_device(accelerator: str, precision: str, *, tf32: bool, compile: bool) -> None:
    """Refuse, before any work, what Lightning would replace or fail on later.

    Args:
        accelerator: auto, cpu, gpu, cuda or mps, as `lightning.Trainer` has it.
        precision: 32-true, bf16-mixed, 16-mixed or 64-true.
        tf32: whether float32 matrices are multiplied in TF32.
        compile: whether the training step is compiled.

    Raises:
        UserError: the device is not there, or cannot do it; names what can be done.
    """
    device = pick(accelerator)
    able = precisions(device)
    if precision not in able:
        raise UserError(
            f"trainer.precision={precision}: {NAMES[device]} cannot do it; trainer.precision may be"
            f" {', '.join(able)}"
        )
    if tf32 and not has_ampere(device):
        raise UserError(
            f"tf32=true: {NAMES[device]} has no TF32, only NVIDIA's since Ampere have; take"
            " tf32=false"
        )
    missing = missing_for_compile(device) if compile else None
    if missing is not None:
        raise UserError(
            f"compile=true needs {missing}, which is not here: install it, or take compile=false"
        )


def pick(accelerator: str) -> str:
    """The type of device that `accelerator` means on this machine: cpu, cuda or mps.

    Raises:
        UserError: there is none.
    """
    gpus = [
        name
        for name, there in (
            ("mps", torch.backends.mps.is_available()),
            ("cuda", torch.cuda.is_available()),
        )
        if there
    ]
    wanted = {"auto": [*gpus, "cpu"], "gpu": gpus}.get(accelerator, [accelerator])
    found = [name for name in wanted if name in (*gpus, "cpu")]
    if not found:
        raise UserError(
            f"trainer.accelerator={accelerator}: PyTorch finds no such device here; take"
            f" {' or '.join([*gpus, 'cpu'])} (trainer=cpu, or trainer=ddp_cpu for several ranks)"
        )
    return found[0]


def precisions(device: str) -> list[str]:
    """The values of `trainer.precision` that a type of device can do."""
    return {
        "cpu": ["32-true", "bf16-mixed", "64-true"],
        "cuda": ["32-true", *(["bf16-mixed"] if has_ampere(device) else []), "16-mixed", "64-true"],
        "mps": ["32-true"],
    }[device]


def has_ampere(device: str) -> bool:
    """Whether every GPU here is of NVIDIA's Ampere generation or newer."""
    count = torch.cuda.device_count() if device == "cuda" else 0
    return count > 0 and min(map(torch.cuda.get_device_capability, range(count))) >= AMPERE


def missing_for_compile(device: str) -> str | None:
    """What `torch.compile` lacks on this machine, None if nothing: it writes C++ or Triton."""
    if device == "mps":
        return "a CPU or an NVIDIA GPU"
    if device == "cuda":
        if importlib.util.find_spec("triton") is None:
            return "the package triton"
        names = [os.environ.get("CC"), "gcc", "clang"]
        return None if any(map(shutil.which, filter(None, names))) else "a C compiler (gcc)"
    compiler = os.environ.get("CXX") or ("clang++" if sys.platform == "darwin" else "g++")
    if shutil.which(compiler) is None:
        return f"a C++ compiler ({compiler})"
    header = Path(sysconfig.get_path("include"), "Python.h")
    return None if header.exists() else f"{header} (the package python3-dev)"


def described(trainer: L.Trainer, *, tf32: bool, compile: bool) -> str:
    """`2 ranks x cpu, 32-true, compiled` and the like, from what Lightning made of the settings."""
    device = trainer.strategy.root_device
    name = device.type
    if device.type == "cuda":
        name += f" ({torch.cuda.get_device_name(device)})"
    ranks = f"{trainer.world_size} rank{'s' if trainer.world_size > 1 else ''}"
    machines = f" on {trainer.num_nodes} machines" if trainer.num_nodes > 1 else ""
    precision = f"{trainer.precision}{' with TF32' if tf32 else ''}"
    return f"{ranks}{machines} x {name}, {precision}{', compiled' if compile else ''}"
