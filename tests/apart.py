"""What the commands that a test starts see of the machine."""

import os
from pathlib import Path

# Variables that would reach into a run.
OUTSIDE = ("WANDB_", "ZHEN_", "SLURM_", "HYDRA_")


def environment_apart(folder: Path) -> dict[str, str]:
    """The tests' own without those, with an empty HOME in `folder`, and one thread."""
    home = folder / "home"
    home.mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OUTSIDE)}
    return {**kept, "HOME": str(home), "OMP_NUM_THREADS": "1"}
