"""Who has Slurm's warning."""

import signal
from typing import Any

import lightning as L
import pytest

from zhen.training.signals import no_other_owner

SLURM = {"JOB_NAME": "zhen-toy", "JOB_ID": "1", "NTASKS": "1", "PROCID": "0", "LOCALID": "0"}


@pytest.fixture
def in_slurm(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**SLURM, "NODEID": "0"}.items():
        monkeypatch.setenv(f"SLURM_{name}", value)


class Look(L.Callback):
    """Notes who has the warning, where ours is not installed: before the training, in the test."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def on_train_start(self, *_: Any) -> None:
        self.seen.append(signal.getsignal(signal.SIGUSR1))

    on_test_start = on_train_start


@pytest.mark.parametrize("ours", [True, False])
def test_lightning_neither_saves_nor_requeues(
    in_slurm: None, make_data: Any, make_module: Any, make_trainer: Any, ours: bool
) -> None:
    """It would, if it were not kept from that: then this test would mean nothing."""
    look, data = Look(), make_data()
    plugins = no_other_owner() if ours else None
    trainer = make_trainer(callbacks=[look], plugins=plugins, max_steps=1)
    module = make_module(data)
    trainer.fit(module, datamodule=data)
    trainer.test(module, datamodule=data, verbose=False)
    assert len(look.seen) == 2
    assert all((each is signal.SIG_DFL) == ours for each in look.seen)


def test_elsewhere_lightning_finds_its_own_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_NTASKS", raising=False)
    assert no_other_owner() == []


def test_torchrun_inside_of_a_job(in_slurm: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    assert no_other_owner() == []
