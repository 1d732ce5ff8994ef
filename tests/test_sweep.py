"""`python -m zhen.sweep` with real trainings: each job a run, and what becomes of the others."""

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from omegaconf import OmegaConf
from tests.apart import environment_apart

pytestmark = pytest.mark.slow


class Place:
    """Where some sweeps of a toy model lie, and what they have in common."""

    def __init__(self, folder: Path, tsv: dict[str, Path]) -> None:
        self.folder, self.runs = folder, folder / "runs"
        self.paths = [f"paths.runs={self.runs}", f"paths.cache={folder / 'cache'}"]
        self.toy = ["debug=fast", "data=files", *(f"data.{n}={p}" for n, p in tsv.items())]
        self.toy += ["name=toy", "trainer=cpu", "trainer.max_steps=2", "scheduler.warmup=1"]
        self.environment = environment_apart(folder)

    def start(self, *words: str, **variables: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "zhen.sweep", *self.paths, *words],
            cwd=self.folder,
            env={**self.environment, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # A suite that runs in the background ignores SIGINT, and so would its children.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def run(self, *words: str, **variables: str) -> tuple[int, str, str]:
        """Exit status, output and errors of a sweep."""
        process = self.start(*words, **variables)
        out, err = process.communicate(timeout=400)
        return process.returncode, out, err

    def results(self, name: str) -> float:
        content = (self.runs / "toy" / name / "results.json").read_text(encoding="utf-8")
        return json.loads(content)["test"]["test"]["loss"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, tsv: dict[str, Path]) -> Place:
    return Place(tmp_path_factory.mktemp("place"), tsv)


@pytest.fixture(scope="module")
def grid(place: Place) -> tuple[int, str, str]:
    """Two jobs, the first of which fails: runs/toy/grid, grid-1 and grid-2."""
    words = [*place.toy, "optimizer.lr=1e30,1e-3", "logger=default", "seed=3"]
    return place.run(*words, ZHEN_RUN_ID="grid")


def test_a_failed_job_is_named_and_the_others_are_trained(
    place: Place, grid: tuple[int, str, str]
) -> None:
    status, out, err = grid
    failed = place.runs / "toy" / "grid-1"
    assert status == 1
    assert err.splitlines()[-1] == (
        f"error: 1 of 2 jobs failed: {failed} (log.txt says why); to try again what is not"
        f" finished: make sweep resume={place.runs / 'toy' / 'grid'}"
    )
    assert place.results("grid-2") > 0 and not (failed / "results.json").exists()
    table = out[out.index("The sweep ") :].splitlines()
    assert re.fullmatch(r"job +state +val/bleu +words", table[1])
    assert re.fullmatch(r"1 +failed +- +optimizer\.lr=1e\+30", table[2])
    assert re.fullmatch(r"2 +finished +\S+ +optimizer\.lr=0\.001", table[3])


def test_each_job_is_a_run_of_its_own_in_one_group(
    place: Place, grid: tuple[int, str, str]
) -> None:
    runs = [place.runs / "toy" / name for name in ("grid-1", "grid-2")]
    for run, rate in zip(runs, (1e30, 1e-3), strict=True):
        config = OmegaConf.load(run / "config.yaml")
        assert (config.optimizer.lr, config.seed, config.logger.wandb.group) == (rate, 3, "grid")
        assert "resume=auto" not in OmegaConf.load(run / "overrides.yaml")
        about = json.loads((run / "provenance.json").read_text())
        assert (about["sweep"], about["run"]) == ("grid", run.name)
    assert len({(run / "wandb" / "id.txt").read_text() for run in runs}) == 2  # H7
    found = (place.runs / "toy").glob("grid*")
    assert {path.name for path in found} == {"grid", "grid-1", "grid-2"}


def test_a_job_is_what_its_words_train_alone(place: Place, grid: tuple[int, str, str]) -> None:
    """No trace of the job before: the same loss, bit for bit."""
    (alone,) = [
        job
        for job in yaml.safe_load((place.runs / "toy/grid/sweep.yaml").read_text())["jobs"]
        if "optimizer.lr=0.001" in job
    ]
    done = subprocess.run(
        [sys.executable, "-m", "zhen.train", *alone, "logger=csv"],
        env={**place.environment, "ZHEN_RUN_ID": "alone"}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert place.results("alone") == place.results("grid-2")
    shutil.rmtree(place.runs / "toy" / "alone")


def test_ctrl_c_keeps_the_running_job_and_the_sweep_can_go_on(place: Place) -> None:
    words = [*place.toy, "seed=1,2", "trainer.max_steps=2000", "trainer.val_check_interval=1000"]
    sweep = place.start(*words, "trainer.limit_val_batches=1", ZHEN_RUN_ID="long")
    run = place.runs / "toy" / "long-1"
    while not (run / "metrics.csv").exists():
        assert sweep.poll() is None, sweep.communicate()
        time.sleep(0.1)
    sweep.send_signal(signal.SIGINT)
    out, err = sweep.communicate(timeout=120)
    assert sweep.returncode == 130, err
    assert "SIGINT: the state is kept after this update" in err and "Traceback" not in err
    assert (run / "checkpoints" / "last.ckpt").exists()
    assert re.search(r"\n1 +stopped .*\n2 +waiting ", out)
    assert out.endswith(f"To go on:  make sweep resume={run.with_name('long')}\n")

    path = run.with_name("long") / "sweep.yaml"
    content = yaml.safe_load(path.read_text())
    shorter = ("trainer.max_steps=2000", "trainer.max_steps=200")
    content["words"] = [each.replace(*shorter) for each in content["words"]]
    path.write_text(yaml.safe_dump(content))  # so that this test ends
    status, out, err = place.run("resume=last")
    assert status == 0, err
    assert "it goes on after update" in err and re.search(r"\n1 +finished .*\n2 +finished ", out)
    assert place.results("long-1") > 0 and place.results("long-2") > 0

    status, out, err = place.run("resume=last", "seed=3")
    assert (status, out) == (1, "")
    assert err == "error: `seed=3`: a sweep goes on with its own words: take it out\n"


def test_a_bad_word_in_the_last_job_begins_none(place: Place) -> None:
    status, out, err = place.run(*place.toy, "model=tiny,small,smal", ZHEN_RUN_ID="bad")
    assert (status, out) == (1, "")
    assert err.startswith("error: `model=smal`: no such model; did you mean `small`?")
    assert not (place.runs / "toy" / "bad").exists()


def test_jobs_of_two_ranks_each(place: Place) -> None:
    """H1, H4: every rank has its own job's words, and each job exits by itself."""
    words = [*place.toy, "trainer=ddp_cpu", "model.d_model=16,32"]
    status, _, err = place.run(*words, ZHEN_RUN_ID="ddp")
    assert status == 0, err
    for number, width in ((1, 16), (2, 32)):
        run = place.runs / "toy" / f"ddp-{number}"
        parameters = [
            re.findall(r"([\d,]+) parameters", (run / log).read_text())
            for log in ("log.txt", "log.1.txt")
        ]
        assert parameters[0] == parameters[1] != []
        assert OmegaConf.load(run / "config.yaml").model.d_model == width
        assert place.results(run.name) > 0
