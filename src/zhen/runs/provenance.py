"""Where a run came from: enough to make it again, or to know why it cannot be."""

import hashlib
import importlib.metadata
import os
import platform
import shlex
import socket
import subprocess
import sys
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from zhen.compose import ROOT
from zhen.runs.identity import SWEEP, run_id


def provenance(
    cfg: DictConfig, choices: Mapping[str, str | None], corpus: Any, device: str
) -> dict[str, Any]:
    """What made this run, as plain data for `provenance.json`.

    Args:
        cfg: the configuration; its seed is recorded.
        choices: the option of each group that made it.
        corpus: the fingerprint of the pairs, as the data module computed it.
        device: what computes, with its number.
    """
    import torch

    return {
        "run": run_id(),
        "sweep": os.environ.get(SWEEP),
        "started": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "command": command(),
        "directory": os.getcwd(),
        "root": str(ROOT),
        "git": git(ROOT),
        "code": code(),
        "seed": cfg.get("seed"),
        "choices": dict(choices),
        "corpus": corpus,
        "host": socket.gethostname(),
        "device": device,
        "cpu": {"name": cpu_name(), "cores": os.cpu_count()},
        "threads": torch.get_num_threads(),  # the bits of a sum depend on them
        "platform": platform.platform(),
        "python": platform.python_version(),
        "packages": packages(),
    }


def command() -> str:
    """The command that started this process, quoted for a shell."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    program = ["-m", spec.name] if spec is not None else [sys.argv[0]]
    return shlex.join(["python", *program, *sys.argv[1:]])


def git(directory: Path) -> dict[str, Any] | None:
    """Commit and whether files differ from it; None where git or its repository is not there."""
    try:
        # A copy of the project inside someone else's repository has no commit of its own.
        if Path(_git(directory, "rev-parse", "--show-toplevel")).resolve() != directory.resolve():
            return None
        commit = _git(directory, "rev-parse", "HEAD")
        return {"commit": commit, "dirty": bool(_git(directory, "status", "--porcelain"))}
    except (OSError, subprocess.SubprocessError):
        return None


def uncommitted(directory: Path) -> bytes:
    """What `git apply` makes of the commit what is in `directory`; empty where nothing differs.

    All that is tracked, and new files of the code and the configuration; what else lies about, such
    as corpora, is no part of it.
    """
    if git(directory) is None:
        return b""
    # Whatever the user has made of `git diff`.
    diff = ["diff", "--binary", "--no-ext-diff", "--no-textconv", "--no-color"]
    diff += ["--src-prefix=a/", "--dst-prefix=b/"]
    new = ["ls-files", "-z", "--others", "--exclude-standard", "--", "src", "configs"]
    try:
        patch = _output(directory, *diff, "HEAD")
        for name in _output(directory, *new).split(b"\0")[:-1]:
            line = [*diff, "--no-index", "--", os.devnull, os.fsdecode(name)]
            patch += _output(directory, *line, statuses=(0, 1))  # 1: they differ
    except (OSError, subprocess.SubprocessError):
        return b""
    return patch


def code(directory: Path = ROOT) -> str:
    """A hash of the code: the same wherever it lies, committed or not."""
    digest, source = hashlib.sha256(), directory / "src" / "zhen"
    for file in sorted(source.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            content = hashlib.sha256(file.read_bytes()).hexdigest()
            digest.update(f"{content}  {file.relative_to(source)}\n".encode())
    return digest.hexdigest()


def _git(directory: Path, *arguments: str) -> str:
    return os.fsdecode(_output(directory, *arguments)).strip()


def _output(directory: Path, *arguments: str, statuses: tuple[int, ...] = (0,)) -> bytes:
    # No lock: the user may be committing at this very moment.
    line = ["git", "--no-optional-locks", "-C", str(directory), *arguments]
    done = subprocess.run(line, capture_output=True, timeout=10)
    if done.returncode not in statuses:
        raise subprocess.CalledProcessError(done.returncode, line, done.stdout, done.stderr)
    return done.stdout


def packages() -> dict[str, str]:
    """Versions of all installed packages, by name."""
    found = {
        each.metadata["Name"]: each.version
        for each in importlib.metadata.distributions()
        if each.metadata["Name"]
    }
    return dict(sorted(found.items(), key=lambda item: item[0].lower()))


def cpu_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
