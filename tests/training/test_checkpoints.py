"""A training that is killed and goes on ends as one that was not: weights, scores, rows."""

import contextlib
import csv
import json
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lightning as L
import pytest
import torch
from lightning.pytorch.plugins import MixedPrecision
from tests.conftest import Maker

from zhen.data import BatchOptions, TokenizerOptions
from zhen.errors import Stopped, UserError
from zhen.training.averages import Averages
from zhen.training.checkpoints import Checkpoints, WholeFiles
from zhen.training.loggers import CsvLogger
from zhen.training.schedule import Linear


class Killed(BaseException):
    """What happens to the process; nothing catches it."""


class Harm(L.Callback):
    """Does something in the n-th call of a hook."""

    def __init__(self, hook: str, number: int, what: Callable[[], None]) -> None:
        self._left, self._what = number, what
        setattr(self, hook, self._call)

    def _call(self, *arguments: Any, **named: Any) -> None:
        self._left -= 1
        if self._left == 0:
            self._what()


def die() -> None:
    raise Killed


def end() -> None:
    signal.raise_signal(signal.SIGUSR1)


class Trace(L.Callback):
    """The pairs of each batch, the rate it was learned at, and what each validation found."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def on_train_batch_end(
        self, trainer: L.Trainer, module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        rate = module.lr_schedulers().get_last_lr()
        self.seen.append(f"{trainer.current_epoch} {batch_idx} {batch.indices} {rate}")

    def on_validation_end(self, trainer: L.Trainer, module: Any) -> None:
        batch = trainer.fit_loop.epoch_loop.batch_idx
        self.seen.append(
            f"{trainer.current_epoch} {batch} validation at {trainer.global_step}:"
            f" {module.validation.loss}"
        )


class Run:
    """A run of six batches an epoch, in a directory of its own."""

    def __init__(self, folder: Path, make: tuple[Maker, Maker, Maker], settings: dict[str, Any]):
        self.folder, self._make, self._settings = folder, make, settings
        self.trace: list[str] = []
        (folder / "checkpoints").mkdir(parents=True)

    def train(self, *harm: L.Callback, **changes: Any) -> "Run":
        """Go on from last.ckpt, if there is one, until the end or until harm is done."""
        make_data, make_module, make_trainer = self._make
        settings = {"max_epochs": 2, **self._settings, **changes}
        keeps = ("monitor", "mode", "every_n_updates", "every_minutes", "keep_every_n_updates")
        kept = {"monitor": "val/chrf"} | {k: settings.pop(k) for k in keeps if k in settings}
        averages = Averages(**settings.pop("averages", {}))
        torch.manual_seed(1)
        data = make_data(
            batch=BatchOptions(tokens=settings.pop("tokens", 180), eval_tokens=80),
            num_workers=settings.pop("num_workers", 0),
            tokenizer=TokenizerOptions(vocab_size=400, dropout=settings.pop("bpe_dropout", 0.0)),
        )
        module = make_module(
            data,
            optimizer=lambda groups: torch.optim.AdamW(groups, lr=0.01),
            schedule=Linear(warmup=1, length=None, min_ratio=0.0),
        )
        torch.manual_seed(2)  # as if it were another process
        trace = Trace()
        self.keeper = Checkpoints(dirpath=str(self.folder / "checkpoints"), **kept)
        self.trainer = make_trainer(
            **settings,
            enable_checkpointing=True,
            callbacks=[averages, trace, *harm, self.keeper],
            logger=[CsvLogger(run_dir=str(self.folder))],
        )
        path = self.keeper.last if self.keeper.last.exists() else None
        with contextlib.suppress(Killed, Stopped):
            self.trainer.fit(module, datamodule=data, ckpt_path=path)
        self.trace += trace.seen
        return self

    def load(self, name: str = "last.ckpt") -> dict[str, Any]:
        return torch.load(self.folder / "checkpoints" / name, weights_only=True)

    @property
    def rows(self) -> list[dict[str, str]]:
        with (self.folder / "metrics.csv").open(encoding="utf-8", newline="") as file:
            return [{k: v for k, v in row.items() if v} for row in csv.DictReader(file)]


@pytest.fixture
def make_run(tmp_path: Path, make_data: Maker, make_module: Maker, make_trainer: Maker) -> Maker:
    def make(name: str, **settings: Any) -> Run:
        return Run(tmp_path / name, (make_data, make_module, make_trainer), settings)

    return make


def same(run: Run, whole: Run) -> None:
    """That `run`, in however many pieces, did what `whole` did."""
    assert run.rows == whole.rows
    assert run.keeper.best_score == whole.keeper.best_score
    # What a killed process did after its last checkpoint was done again, in the same way.
    assert list(dict.fromkeys(run.trace)) == whole.trace
    ours, theirs = run.load(), whole.load()
    for name in ("global_step", "lr_schedulers", "callbacks", "loops"):
        assert ours[name] == theirs[name], name
    for key in ("python", "numpy"):
        assert ours["resume"]["random"][0][key] == theirs["resume"]["random"][0][key]
    for name in ("last.ckpt", "best.ckpt"):
        if (whole.folder / "checkpoints" / name).exists():
            ours, theirs = all_weights(run.load(name)), all_weights(whole.load(name))
            assert ours.keys() == theirs.keys()
            assert all(torch.equal(ours[key], theirs[key]) for key in theirs), name
    assert {file.name for file in run.keeper.dirpath.iterdir()} <= {"last.ckpt", "best.ckpt"}


def all_weights(content: dict[str, Any]) -> dict[str, torch.Tensor]:
    """The trained ones and all that averages are made of."""
    kept = content["averages"]
    sets = {"raw": content["state_dict"], "ema": kept.get("ema", {}), **kept.get("last", {})}
    return {f"{name} {key}": w for name, each in sets.items() for key, w in each.items()}


BY_UPDATES = {"max_epochs": -1, "check_val_every_n_epoch": None}
WAYS: dict[str, dict[str, Any]] = {
    "each epoch": {},
    "each epoch, up to an update": {"max_epochs": -1, "max_steps": 8},
    "within the epoch": {"val_check_interval": 2},
    "by updates": {**BY_UPDATES, "max_steps": 9, "val_check_interval": 4},
    "no validation": {"limit_val_batches": 0},
    "accumulation": {"accumulate_grad_batches": 2, "limit_train_batches": 5},
    "amid accumulation": {"accumulate_grad_batches": 3, "val_check_interval": 2},
    "averages": {
        "averages": {"ema_decay": 0.8, "last": 2, "weights": "average"},
        "accumulate_grad_batches": 2,
        "val_check_interval": 2,
    },
    "workers": {"num_workers": 1},
    # Five batches in the first epoch, six in the second.
    "BPE-dropout": {"bpe_dropout": 0.3, "tokens": 210},
}
# With a checkpoint after each update or with those of validations alone.
MOMENTS = [
    ("on_train_batch_end", 8, die, 1),
    ("on_train_batch_end", 5, die, None),
    ("on_train_epoch_end", 1, die, 1),
    ("on_train_epoch_start", 2, die, 1),
    ("on_validation_batch_start", 2, die, 1),
    ("on_validation_end", 1, die, 2),
    ("on_train_batch_end", 3, end, None),
    ("on_validation_batch_start", 2, end, None),
]


@pytest.mark.parametrize("way", WAYS)
def test_every_way_of_training_goes_on_from_every_moment(make_run: Maker, way: str) -> None:
    whole = make_run("whole", **WAYS[way]).train()
    for i, (hook, number, what, every) in enumerate(MOMENTS):
        if way == "workers" and i not in (0, 6):
            continue  # each costs a second
        if "ZHEN_SOAK_KILLS" not in os.environ and (i + list(WAYS).index(way)) % 2:
            continue  # `make soak` takes them all
        run = make_run(f"{i}", **WAYS[way], every_n_updates=every)
        run.train(Harm(hook, number, what)).train()
        same(run, whole)


def test_it_can_be_killed_several_times(make_run: Maker) -> None:
    whole = make_run("whole").train()
    run = make_run("run", every_n_updates=1)
    for hook in ("on_train_batch_end", "on_validation_end", "on_train_batch_start"):
        run.train(Harm(hook, 2 if "train" in hook else 1, die))
    same(run.train(), whole)


def half() -> dict[str, Any]:
    """What `16-mixed` is on a GPU, made anew: its scale doubles after every third update."""
    scaler = torch.amp.GradScaler("cpu", init_scale=64.0, growth_interval=3)
    return {"plugins": [MixedPrecision("16-mixed", "cpu", scaler)]}


def test_the_scale_of_16_mixed_goes_on(make_run: Maker) -> None:
    whole, run = make_run("whole").train(**half()), make_run("run", every_n_updates=2)
    run.train(Harm("on_train_batch_end", 5, die), **half())
    kept = run.load()["MixedPrecision"]
    assert (kept["scale"], kept["_growth_tracker"]) == (128, 1)  # of update 4
    same(run.train(**half()), whole)
    kept = run.load()["MixedPrecision"]
    assert (kept["scale"], kept["_growth_tracker"]) == (1024, 0)  # of update 12
    assert kept == whole.load()["MixedPrecision"]


def test_batches_that_are_done_are_not_read_again(
    make_run: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    from zhen.data import EncodedPairs
    from zhen.data.batching import PlannedBatch

    run = make_run("run", every_n_updates=1, limit_val_batches=0, max_epochs=1)
    run.train(Harm("on_train_batch_start", 4, die))
    read, real = [], EncodedPairs.__getitem__

    def get(self: Any, indices: Any) -> Any:
        if isinstance(indices, PlannedBatch):
            read.append(indices)
        return real(self, indices)

    monkeypatch.setattr(EncodedPairs, "__getitem__", get)
    done = run.load()["global_step"]
    run.train()
    assert 0 < done < run.trainer.num_training_batches == done + len(read)


def test_the_kill_between_the_two_files(make_run: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, run = make_run("whole").train(), make_run("run")
    with monkeypatch.context() as patch:
        patch.setattr("zhen.training.checkpoints.second_name", lambda *_: die())
        run.train()
    assert [file.name for file in run.keeper.dirpath.iterdir()] == ["last.ckpt"]
    same(run.train(), whole)


def test_best_is_the_best_and_last_the_last(make_run: Maker) -> None:
    for mode, choose in (("max", max), ("min", min)):
        run = make_run(mode, monitor="val/loss", mode=mode, max_epochs=4).train()
        losses = [float(row["val/loss"]) for row in run.rows if "val/loss" in row]
        assert run.keeper.best_score == pytest.approx(choose(losses))
        best = run.load("best.ckpt")["global_step"]
        assert best == (1 + losses.index(choose(losses))) * run.trainer.num_training_batches
        assert run.load()["global_step"] == run.trainer.global_step


def test_no_best_without_a_monitor(make_run: Maker) -> None:
    run = make_run("run", monitor=None).train()
    assert run.keeper.best_path is None
    assert [file.name for file in run.keeper.dirpath.iterdir()] == ["last.ckpt"]


def test_a_monitor_that_no_validation_finds(make_run: Maker) -> None:
    with pytest.raises(UserError, match=r"monitor: a validation finds no 'val/blue'; .*val/bleu"):
        make_run("run", monitor="val/blue").train()


def test_the_clock_asks_for_checkpoints_too(
    make_run: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved: list[int] = []
    real = Checkpoints._save

    def save(self: Checkpoints, trainer: L.Trainer) -> None:
        saved.append(trainer.global_step)
        real(self, trainer)

    monkeypatch.setattr(Checkpoints, "_save", save)
    run = make_run("run", limit_val_batches=0, every_minutes=2.0, max_epochs=1)
    clock = SimpleNamespace(monotonic=lambda: 60.0 * run.trainer.global_step)
    monkeypatch.setattr("zhen.training.checkpoints.time", clock)
    assert run.train().trainer.global_step == 6
    assert saved == [2, 4, 6]


def test_states_that_stay(make_run: Maker) -> None:
    """At a validation, between two, at the end; a run can go on from any of them."""
    run = make_run("run", keep_every_n_updates=3, val_check_interval=2).train()
    numbers = [int(path.stem[7:]) for path in run.keeper.dirpath.glob("update-*.ckpt")]
    assert sorted(numbers) == [3, 6, 9, 12]
    assert all(run.load(f"update-{n}.ckpt")["global_step"] == n for n in numbers)

    whole = all_weights(run.load())
    shutil.copy(run.keeper.dirpath / "update-9.ckpt", run.keeper.last)
    weights = all_weights(run.train().load())
    assert all(torch.equal(weights[key], whole[key]) for key in whole)


@pytest.mark.parametrize("name", ["every_n_updates", "every_minutes", "keep_every_n_updates"])
def test_numbers_that_make_no_sense(name: str) -> None:
    with pytest.raises(ValueError, match=f"`{name}` must be above 0, but is 0"):
        Checkpoints(dirpath="x", monitor=None, **{name: 0})


@pytest.mark.parametrize("accumulations", [(1, 2), (2, 1), (2, 4), (1, 2, 2, 3)])
def test_another_accumulation_passes_over_no_pair(
    make_run: Maker, accumulations: tuple[int, ...]
) -> None:
    """Seven batches, or as many as make whole updates; each training but the last makes one."""
    run = make_run("run", tokens=150, limit_val_batches=0, every_n_updates=1)
    *short, last = accumulations
    seen = []
    for updates, number in enumerate(short, 1):
        run.trace.clear()
        run.train(Harm("on_train_batch_end", 1 + number, die), accumulate_grad_batches=number)
        assert run.load()["global_step"] == updates
        seen += run.trace[:number]  # not the micro-batch that the kill took
    run.trace.clear()
    run.train(accumulate_grad_batches=last)
    whole = run.trainer.num_training_batches
    assert whole == {1: 7, 2: 8, 3: 9, 4: 8}[last]
    for epoch in range(2):
        lines = [line for line in seen + run.trace if line.startswith(f"{epoch} ")]
        pairs = [json.loads(line[line.index("[") : line.index("]") + 1]) for line in lines]
        assert sorted(i for batch in pairs for i in batch) == list(range(100))
        assert int(lines[-1].split()[1]) == whole - 1  # where Lightning ends an epoch


def test_the_rest_of_an_epoch_may_be_less_than_an_update(make_run: Maker) -> None:
    """It has the last of its micro-batches, also where a validation comes between them."""
    now = {"accumulate_grad_batches": 4, "val_check_interval": 7}
    weights = []
    for cut in (False, True):
        run = make_run(f"{cut}", tokens=150, every_n_updates=1, max_epochs=1)
        run.train(Harm("on_train_batch_end", 6, die))
        if cut:
            run.train(Harm("on_train_batch_end", 2, die), **now)
            assert len(run.rows[-1]) > 3  # the validation has kept a state
        assert run.load()["global_step"] == 5
        assert run.train(**now).load()["global_step"] == 6
        weights.append(all_weights(run.load()))
    assert all(torch.equal(weights[0][key], weights[1][key]) for key in weights[0])


def test_another_accumulation_at_the_end_of_an_epoch(make_run: Maker) -> None:
    run = make_run("run", every_n_updates=1, limit_train_batches=5)
    run.train(Harm("on_train_epoch_end", 1, die)).trace.clear()
    run.train(accumulate_grad_batches=2)
    assert [line.split()[:2] for line in run.trace if "validation" not in line] == [
        ["1", str(batch)] for batch in range(5)
    ]


def test_weights_that_are_not_finite_are_not_kept(make_run: Maker) -> None:
    """A finite loss may have an infinite gradient, of which clipping makes NaN."""

    def explode(trainer: L.Trainer, module: L.LightningModule, optimizer: Any) -> None:
        if trainer.global_step == 3:
            next(module.parameters()).grad.fill_(torch.inf)

    harm = L.Callback()
    harm.on_before_optimizer_step = explode
    run = make_run("run", every_n_updates=2, gradient_clip_val=1.0, limit_val_batches=0)
    with pytest.raises(UserError, match=r"^the weights are not finite after 4 updates: the traini"):
        run.train(harm)
    assert run.load()["global_step"] == 2
    assert all(weight.isfinite().all() for weight in run.load()["state_dict"].values())
    with pytest.raises(UserError, match="after 4 updates"):  # at the end, too
        run.train(harm, every_n_updates=None, max_epochs=-1, max_steps=4)
    assert run.load()["global_step"] == 2


def test_a_file_is_whole_or_the_one_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, files = tmp_path / "last.ckpt", WholeFiles()
    files.save_checkpoint({"a": torch.ones(3)}, path)

    def fill(content: Any, file: Any) -> None:
        file.write(b"half")
        try:
            raise OSError(28, "No space left on device")
        except OSError:
            raise RuntimeError("unexpected pos 768 vs 662")  # noqa: B904, as torch does it

    monkeypatch.setattr(torch, "save", fill)
    with pytest.raises(UserError, match=r"dirpath: cannot write .*: No space left on device"):
        files.save_checkpoint({"a": torch.zeros(3)}, path)
    assert files.load_checkpoint(path)["a"].tolist() == [1, 1, 1]
    assert list(tmp_path.iterdir()) == [path]
