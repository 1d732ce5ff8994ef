"""metrics.csv, and what an offline wandb run holds from its start."""

import csv
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from zhen.training.loggers import CsvLogger


def rows(run_dir: Path) -> list[dict[str, str]]:
    with (run_dir / "metrics.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_columns_grow_and_rows_stay(tmp_path: Path) -> None:
    logger = CsvLogger(run_dir=str(tmp_path))
    logger.log_metrics({"train/loss": 2.5}, step=0)
    logger.log_metrics({"train/loss": 2.0}, step=1)
    logger.log_metrics({"val/bleu": 10.0}, step=1)
    logger.log_metrics({"train/loss": 1.5, "a,b": 1.0}, step=2)
    assert rows(tmp_path) == [
        {"step": "0", "train/loss": "2.5", "val/bleu": "", "a,b": ""},
        {"step": "1", "train/loss": "2.0", "val/bleu": "", "a,b": ""},
        {"step": "1", "train/loss": "", "val/bleu": "10.0", "a,b": ""},
        {"step": "2", "train/loss": "1.5", "val/bleu": "", "a,b": "1.0"},
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["metrics.csv"]


def test_a_run_that_goes_on_keeps_its_rows(tmp_path: Path) -> None:
    CsvLogger(run_dir=str(tmp_path)).log_metrics({"train/loss": 2.5}, step=0)
    again = CsvLogger(run_dir=str(tmp_path))
    again.log_hyperparams({"x": 1})
    again.log_metrics({"train/loss": 2.0}, step=1)
    again.log_metrics({"val/loss": 3.0}, step=1)
    again.finalize("success")
    assert [row["step"] for row in rows(tmp_path)] == ["0", "1", "1"]
    assert (again.save_dir, again.name, again.version) == (str(tmp_path), "", "")


def records(path: Path) -> Iterator[Any]:
    """What `wandb sync` would send: protobuf records in LevelDB's log format."""
    from wandb.proto.wandb_internal_pb2 import Record

    data, at, whole = path.read_bytes(), 7, b""  # after the file's own header
    while at + 7 <= len(data):
        room = 32768 - at % 32768  # no chunk crosses a block
        if room < 7:
            at += room
            continue
        _, size, kind = struct.unpack("<IHB", data[at : at + 7])
        whole += data[at + 7 : at + 7 + size]
        at += 7 + size
        if kind in (1, 4):  # a whole record, or the last chunk of one
            yield Record.FromString(whole)
            whole = b""


@pytest.mark.slow
def test_offline_wandb_run_begins_with_the_whole_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import wandb

    from zhen.training.loggers import WandbLogger

    for name in ("WANDB_MODE", "WANDB_API_KEY", "WANDB_DIR", "WANDB_RUN_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    config = {"seed": 0, "model": {"d_model": 32, "norm": "pre"}, "name": "中文", "tags": [1, 2]}
    logger = WandbLogger(
        mode="offline",
        project="zhen",
        group="g",
        tags=["a"],
        run_dir=str(tmp_path / "run"),
        name="n",
        config=config,
    )
    (tmp_path / "run").mkdir()
    logger.log_metrics({"train/loss": 2.5}, step=0)
    wandb.finish()

    (file,) = (tmp_path / "run" / "wandb").glob("offline-run-*/run-*.wandb")
    found = list(records(file))
    kinds = [each.WhichOneof("record_type") for each in found]
    assert kinds.index("run") < kinds.index("history")
    run = found[kinds.index("run")].run
    stored = {each.key: wandb.util.json.loads(each.value_json) for each in run.config.update}
    stored.pop("_wandb")
    assert stored == config
    assert (run.project, run.run_group, list(run.tags), run.display_name) == (
        "zhen",
        "g",
        ["a"],
        "n",
    )
    assert not (tmp_path / "wandb").exists()  # nothing outside the run directory
