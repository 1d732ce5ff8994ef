"""Draw a run's learning curve: python scripts/learning_curve.py RUN_DIRECTORY PICTURE.png

Left: training and validation loss by update. Right: validation BLEU by update.
"""

import csv
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # no screen
from matplotlib import pyplot as plt

Curve = tuple[list[int], list[float]]


def read_curve(rows: list[dict[str, str]], name: str) -> Curve:
    """The updates at which `name` was logged, and its values."""
    # Lightning counts steps from 0: what it logs at step 0 comes after the first update.
    points = [(int(row["step"]) + 1, float(row[name])) for row in rows if row.get(name)]
    return [step for step, _ in points], [value for _, value in points]


def main(run: Path, picture: Path) -> None:
    with (run / "metrics.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    figure, (losses, scores) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    losses.plot(*read_curve(rows, "train/loss"), label="training", linewidth=0.6)
    losses.plot(*read_curve(rows, "val/loss"), label="validation", marker=".")
    losses.set(xlabel="updates", ylabel="label-smoothed loss (nats per token)")
    losses.legend()
    scores.plot(*read_curve(rows, "val/bleu"), marker=".", color="tab:green")
    scores.set(xlabel="updates", ylabel="validation BLEU (greedy)")
    figure.savefig(picture, dpi=110)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python scripts/learning_curve.py RUN_DIRECTORY PICTURE.png")
    main(Path(sys.argv[1]), Path(sys.argv[2]))
