"""Where a run came from: enough to make it again, or to know why it cannot be."""

import importlib.metadata
import os
import platform
import shlex
import socket
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from zhen.compose import ROOT
from zhen.runs.identity import SWEEP, run_id


def provenance(cfg: DictConfig, corpus: Any, device: str) -> dict[str, Any]:
    """What made this run, as plain data for `provenance.json`.

    Args:
        cfg: the configuration; its seed is recorded.
        corpus: the fingerprint of the pairs, as the data module computed it.
        device: what computes, with its number.
    """
    return {
        "run": run_id(),
        "sweep": os.environ.get(SWEEP),
        "started": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "command": command(),
        "directory": os.getcwd(),
        "git": git(ROOT),
        "seed": cfg.get("seed"),
        "corpus": corpus,
        "host": socket.gethostname(),
        "device": device,
        "cpu": {"name": cpu_name(), "cores": os.cpu_count()},
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


def _git(directory: Path, *arguments: str) -> str:
    # No lock: the user may be committing at this very moment.
    line = ["git", "--no-optional-locks", "-C", str(directory), *arguments]
    done = subprocess.run(line, capture_output=True, text=True, check=True, timeout=10)
    return done.stdout.strip()


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
