"""metrics.csv, what an offline run of Weights & Biases holds, and what TensorBoard reads."""

import contextlib
import csv
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.training.stand_in_wandb import Server, wandb_server
from tests.training.tensorboard_file import events
from tests.training.wandb_file import Stored, parts

from zhen.errors import Stopped, UserError
from zhen.training.loggers import CsvLogger, Sample, TensorBoardLogger, WandbLogger, finished

ROOT = Path(__file__).parents[2]


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


KEYS = ("MODE", "API_KEY", "DIR", "RUN_ID", "RESUME", "SERVICE", "BASE_URL", "ENTITY")
Make = Callable[..., WandbLogger]
SAMPLES = [Sample("你好。", "hello.", "hi|there."), Sample("茶", "", "tea")]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Makes a wandb logger in `tmp_path/run`, as if nobody had ever used wandb here."""
    import wandb

    for name in KEYS:
        monkeypatch.delenv(f"WANDB_{name}", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)

    def make_logger(**changes: Any) -> WandbLogger:
        arguments = {
            "mode": "offline", "project": "zhen", "group": "g", "job_type": "train", "tags": ["a"],
            "notes": "why", "run_dir": str(tmp_path / "run"), "name": "n", "config": {},
        }  # fmt: skip
        return WandbLogger(**{**arguments, **changes})

    yield make_logger
    wandb.teardown()


@pytest.mark.slow
def test_an_offline_run_is_complete_from_its_start(tmp_path: Path, make: Make) -> None:
    config = {"seed": 0, "model": {"d_model": 32, "norm": "pre"}, "name": "中文", "tags": [1, 2]}
    logger = make(config=config)
    logger.log_metrics({"train/loss": 2.5}, step=0)
    logger.log_metrics({"train/loss": 2.0}, step=1)
    logger.log_samples(SAMPLES, step=1)
    logger.log_metrics({"val/bleu": 10.0}, step=1)
    logger.log_metrics({"test/bleu": 12.0}, step=2)
    logger.finish(0)

    (found,) = parts(tmp_path / "run")
    assert found.config == config
    run = found.run
    assert (run.project, run.run_group, run.job_type) == ("zhen", "g", "train")
    assert (list(run.tags), run.notes, run.display_name) == (["a"], "why", "n")
    # One axis for all.
    assert found.column("train/loss") == {0: 2.5, 1: 2.0}
    assert found.column("val/bleu") == {1: 10.0} and found.column("test/bleu") == {2: 12.0}
    assert [row["_step"] for row in found.rows] == [0, 1, 2]
    assert found.status == 0
    (table,) = (tmp_path / "run" / "wandb").glob("offline-run-*/files/media/table/samples_1_*.json")
    assert json.loads(table.read_text(encoding="utf-8")) == {
        "columns": ["source", "hypothesis", "reference"],
        "data": [list(sample) for sample in SAMPLES],
    }
    assert not (tmp_path / "wandb").exists()  # nothing outside the run directory


@pytest.mark.slow
def test_a_run_that_goes_on_is_the_same_one_and_the_next_one_another(
    tmp_path: Path, make: Make
) -> None:
    for step in (0, 1):
        logger = make()
        logger.log_metrics({"train/loss": 2.5}, step=step)
        logger.finish(1 - step)
    other = make(run_dir=str(tmp_path / "other"))
    other.log_metrics({"train/loss": 2.5}, step=0)
    other.finish(143)
    first, second = parts(tmp_path / "run")
    (next_one,) = parts(tmp_path / "other")
    assert first.run.run_id == second.run.run_id != next_one.run.run_id
    assert list(first.column("train/loss")) == [0] and list(second.column("train/loss")) == [1]
    assert (first.status, second.status, next_one.status) == (1, 0, 143)


@pytest.mark.slow
def test_a_server_out_of_reach_leaves_an_offline_run(
    tmp_path: Path, make: Make, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("zhen.training.loggers.WAIT_AT_BEGIN", 2)
    monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("WANDB_API_KEY", "0" * 40)
    began = time.monotonic()
    logger = make(mode="online")
    logger.log_metrics({"train/loss": 2.5}, step=0)
    logger.finish(0)
    assert time.monotonic() - began < 120
    (message,) = (each.getMessage() for each in caplog.records if each.name.startswith("zhen"))
    assert message.startswith(
        "logger.wandb.mode=online does not work, and the run goes on with offline: "
    )
    found = parts(tmp_path / "run")[-1]
    assert found.column("train/loss") == {0: 2.5} and found.status == 0


@pytest.mark.slow
def test_a_full_disk_ends_the_logging_alone(
    tmp_path: Path, make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limit[1]))  # for wandb's own process too
    try:
        logger = make()
        for step in range(500):
            logger.log_metrics({f"train/{name}": 0.5 for name in range(20)}, step=step)
        logger.log_samples([Sample("茶" * 20_000, "tea", "tea")], step=500)
        logger.log_metrics({"train/loss": 2.5}, step=501)
        logger.finish(0)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    messages = [each.getMessage() for each in caplog.records if each.name.startswith("zhen")]
    assert len(messages) == 1 and messages[0].startswith("logger.wandb: nothing more is logged")


def test_no_place_for_the_id_is_no_reason_to_stop(
    tmp_path: Path, make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "run").write_text("a file")
    logger = make()
    logger.log_metrics({"train/loss": 2.5}, step=0)
    logger.finish(0)
    assert "the run goes on with disabled: paths.runs: cannot make" in caplog.text


def test_the_agent_of_a_sweep_says_which_run_it_is(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_RUN_ID", "of-agent")
    assert make().version != "of-agent"  # whoever has set it, all runs would be one
    monkeypatch.setenv("WANDB_SWEEP_ID", "a-sweep")
    assert make().version == "of-agent"


@pytest.mark.parametrize(
    ("error", "status"),
    [(None, 0), (Stopped(signal.SIGTERM), 143), (UserError("x"), 1), (KeyboardInterrupt(), 1)],
)
def test_how_a_run_ended_is_said(
    make: Make, monkeypatch: pytest.MonkeyPatch, error: BaseException | None, status: int
) -> None:
    said: list[int] = []
    monkeypatch.setattr(WandbLogger, "finish", lambda self, status: said.append(status))
    with contextlib.suppress(BaseException), finished([make()]):
        if error is not None:
            raise error
    assert said == [status]


def test_tensorboard(tmp_path: Path) -> None:
    logger = TensorBoardLogger(run_dir=str(tmp_path), config={"name": "真", "seed": 0})
    logger.log_metrics({"train/loss": 2.5}, step=0)
    logger.log_samples(SAMPLES, step=0)
    logger.log_metrics({"val/bleu": 10.0}, step=0)
    logger.close()
    found = events(tmp_path)
    values = {value.tag: (value, each.step) for each in found for value in each.summary.value}
    assert (values["train/loss"][0].simple_value, values["train/loss"][1]) == (2.5, 0)
    assert values["val/bleu"][0].simple_value == 10.0
    (text,) = values["samples/text_summary"][0].tensor.string_val
    assert text.decode() == (
        "| source | hypothesis | reference |\n| --- | --- | --- |\n"
        "| 你好。 | hello. | hi\\|there. |\n| 茶 |  | tea |\n"
    )
    (text,) = values["config/text_summary"][0].tensor.string_val
    assert text.decode() == "```yaml\nname: 真\nseed: 0\n```"
    assert [path.name for path in tmp_path.iterdir()] == ["tensorboard"]  # no hparams.yaml


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_full_disk_ends_the_logging_to_tensorboard_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its writer's queue has room for ten events, and nobody takes them from it any more."""
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limit[1]))
    try:
        logger = TensorBoardLogger(run_dir=str(tmp_path))
        for step in range(2000):
            logger.log_metrics({"train/loss": 2.5, "train/tokens": 9.0}, step=step)
            time.sleep(0.0005)
        logger.log_samples([Sample("茶", "tea", "tea")], step=2000)
        logger.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    messages = [each.getMessage() for each in caplog.records if each.name.startswith("zhen")]
    assert messages == [
        "logger.tensorboard: nothing more is logged there: a thread of its writer has ended"
    ]


def test_a_tensorboard_file_that_cannot_be_made_is_no_reason_to_stop(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "run").write_text("a file")
    logger = TensorBoardLogger(run_dir=str(tmp_path / "run"))
    logger.log_metrics({"train/loss": 2.5}, step=0)
    logger.close()
    assert "logger.tensorboard: nothing more is logged there: " in caplog.text


def test_tensorboard_hides_what_is_done_again(tmp_path: Path) -> None:
    before = TensorBoardLogger(run_dir=str(tmp_path))
    before.log_metrics({"train/loss": 2.5}, step=4)
    before.close()
    time.sleep(1.1)  # its files are named by the second
    logger = TensorBoardLogger(run_dir=str(tmp_path), start=4)
    logger.log_metrics({"train/loss": 2.5}, step=4)
    logger.close()
    starts = [each.step for each in events(tmp_path) if each.HasField("session_log")]
    assert starts == [0, 4]


def log_two_parts(make: Make, **changes: Any) -> None:
    """Four updates of a run that failed after the second one and went on."""
    for steps, status in (([0, 1], 1), ([2, 3], 0)):
        logger = make(config={"seed": 7}, **changes)
        for step in steps:
            logger.log_metrics({"train/loss": 2.5 - step}, step=step)
        logger.finish(status)


def check_whole(server: Server) -> None:
    """That they are one run there, with all that was logged."""
    (found,) = server.runs.values()
    assert [(row["_step"], row["train/loss"]) for row in found.rows] == [
        (step, 2.5 - step) for step in range(4)
    ]
    assert found.config == {"seed": 7} and found.status == 0
    about = found.about
    assert (about["groupName"], about["jobType"], about["tags"], about["notes"]) == (
        "g", "train", ["a"], "why",
    )  # fmt: skip


@pytest.mark.slow
def test_both_parts_of_an_offline_run_are_sent_as_the_pages_say(tmp_path: Path, make: Make) -> None:
    run_dir = tmp_path / "runs" / "NAME" / "ID"
    log_two_parts(make, run_dir=str(run_dir))
    program = tmp_path / ".venv" / "bin" / "wandb"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m wandb "$@"\n')
    program.chmod(0o755)
    path = f"{program.parent}:{os.environ['PATH']}"  # as after `. .venv/bin/activate`
    for page in ("cluster", "experiments"):
        text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
        (line,) = re.findall(r"^ +(.*wandb sync runs/\S+)", text, re.MULTILINE)
        for mark in run_dir.rglob("*.synced"):
            mark.unlink()
        with wandb_server() as server:
            variables = {"WANDB_BASE_URL": server.url, "WANDB_API_KEY": "0" * 40, "PATH": path}
            done = subprocess.run(
                ["bash", "-c", line], cwd=tmp_path, env={**os.environ, **variables},
                capture_output=True, text=True, timeout=120,
            )  # fmt: skip
        assert done.returncode == 0, f"{line}\n{done.stderr}"
        check_whole(server)


@pytest.mark.slow
def test_an_online_run_that_goes_on_is_the_same_one(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "0" * 40)
    with wandb_server() as server:
        monkeypatch.setenv("WANDB_BASE_URL", server.url)
        log_two_parts(make, mode="online")
    check_whole(server)


@pytest.mark.slow
def test_a_server_that_is_lost_on_the_way_holds_nobody_up(
    tmp_path: Path, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zhen.training.loggers.WAIT_AT_END", 2)
    monkeypatch.setenv("WANDB_API_KEY", "0" * 40)
    with wandb_server() as server:
        monkeypatch.setenv("WANDB_BASE_URL", server.url)
        logger = make(mode="online")
        logger.log_metrics({"train/loss": 2.5}, step=0)
    (found,) = server.runs.values()
    assert found.about["notes"] == "why"
    began = time.monotonic()
    logger.log_metrics({"train/loss": 2.0}, step=1)
    logger.finish(0)
    assert time.monotonic() - began < 120
    (file,) = (tmp_path / "run" / "wandb").glob("run-*/run-*.wandb")
    assert Stored(file).column("train/loss") == {0: 2.5, 1: 2.0}  # to be sent by `wandb sync`
