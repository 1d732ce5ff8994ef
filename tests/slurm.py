"""A development cluster for tests, and what they ask Slurm about their jobs."""

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "scripts" / "slurm_dev.sh"
NEEDED = os.environ.get("ZHEN_NEEDS_SLURM") == "1"
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch")
PATIENCE = 600  # seconds


def missing() -> str | None:
    """Why there can be no cluster here; None where there can."""
    gone = [name for name in PROGRAMS if shutil.which(name) is None]
    if gone:
        return f"no {', '.join(gone)}: install slurm-wlm and munge"
    return "root is needed to start a Slurm cluster" if os.getuid() else None


class Cluster:
    """Two nodes, n1 and n2, on this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._environment = {**os.environ, "ZHEN_SLURM_DIR": str(folder)}
        self.variables = {"SLURM_CONF": str(folder / "slurm.conf")}

    def start(self) -> str:
        return self._script("start")

    def stop(self) -> None:
        self._script("stop")

    def _script(self, word: str) -> str:
        # To a file: the daemons would keep a pipe open.
        with (self.folder.parent / f"{word}.txt").open("w+") as said:
            done = subprocess.run(
                [SCRIPT, word], env=self._environment, stdout=said, stderr=said, timeout=60
            )
            said.seek(0)
            text = said.read()
        assert done.returncode == 0, text
        return text

    def run(self, *command: str) -> str:
        done = subprocess.run(
            command, env={**os.environ, **self.variables}, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout.strip()

    def lose(self, node: str) -> None:
        """As if the machine had no power: no word, from one moment to the next."""
        os.kill(int((self.folder / f"{node}.pid").read_text()), signal.SIGKILL)

    def restore(self, node: str) -> None:
        self.run("slurmd", "-N", node)


class Job:
    """A job, or a task of a job array, by its number."""

    def __init__(self, cluster: Cluster, number: str) -> None:
        self.cluster, self.number = cluster, number

    def show(self) -> dict[str, str]:
        shown = self.cluster.run("scontrol", "--oneliner", "show", "job", self.number)
        return dict(re.findall(r"(\S+?)=(\S*)", shown))

    def until(self, so: Callable[[dict[str, str]], bool]) -> dict[str, str]:
        """What Slurm tells of the job as soon as it is so."""
        started = time.monotonic()
        while not so(shown := self.show()):
            assert time.monotonic() - started < PATIENCE, f"{shown}: {self.log()}"
            time.sleep(0.2)
        return shown

    def wait_for(self, file: Path) -> None:
        """Until the training has made this file."""
        shown = self.until(lambda shown: file.exists() or not under_way(shown))
        assert file.exists(), f"{shown}: {self.log()}"

    def end(self) -> dict[str, str]:
        """What Slurm tells of the job when it has ended."""
        return self.until(lambda shown: not under_way(shown))

    def log(self) -> str:
        file = Path(self.show()["StdOut"])
        return file.read_text(encoding="utf-8") if file.exists() else "(no log)"


def under_way(shown: dict[str, str]) -> bool:
    """Whether the job has not ended for good."""
    return shown["JobState"] in ("PENDING", "RUNNING", "COMPLETING", "PREEMPTED", "REQUEUED")
