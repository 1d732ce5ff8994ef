"""What a run says while it works."""

import logging
import re
from datetime import timedelta

import pytest
from lightning.pytorch.callbacks import Timer
from tests.conftest import Maker

from zhen.data import Batch
from zhen.training.callbacks import Progress, Samples


@pytest.mark.parametrize("seconds", [0, -1.0])
def test_progress_refuses_no_time(seconds: float) -> None:
    with pytest.raises(ValueError, match="`refresh_seconds` must be above 0, but is"):
        Progress(refresh_seconds=seconds)


def test_samples_refuses_a_negative_count() -> None:
    with pytest.raises(ValueError, match="`count` must be at least 0, but is -1"):
        Samples(count=-1)


def test_lines_where_there_is_no_terminal(
    make_data: Maker, make_module: Maker, make_trainer: Maker, caplog: pytest.LogCaptureFixture
) -> None:
    data, progress = make_data(), Progress(refresh_seconds=1e-9)
    trainer = make_trainer(max_epochs=2, limit_val_batches=0, callbacks=[progress])
    with caplog.at_level(logging.INFO, "zhen.training"):
        trainer.fit(make_module(data), datamodule=data)
    lines = [each.getMessage() for each in caplog.records if each.name.startswith("zhen.training")]
    form = r"update \d+  epoch [12]  loss \d\.\d{3}  [\d,]+ tokens/s  \d:\d\d:\d\d left"
    assert len(lines) == trainer.global_step
    assert all(re.fullmatch(form, line) for line in lines)
    assert lines[-1].startswith(f"update {trainer.global_step}  epoch 2")
    assert lines[-1].endswith("0:00:00 left")


def test_speed_counts_real_target_tokens_and_no_validation(
    make_data: Maker,
    make_module: Maker,
    make_trainer: Maker,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Time passes while a batch is moved to its device alone, a second for each.
    now = 0
    monkeypatch.setattr("zhen.training.callbacks.time.monotonic", lambda: float(now))

    def move(batch: Batch, loader: int) -> Batch:
        nonlocal now
        now += 1
        return batch

    data, progress = make_data(), Progress(refresh_seconds=1e9)
    module = make_module(data)
    monkeypatch.setattr(module, "on_before_batch_transfer", move)
    trainer = make_trainer(limit_train_batches=4, val_check_interval=2, callbacks=[progress])
    trainer.fit(module, datamodule=data)
    batches = list(data.train_dataloader())[:4]
    real = sum(int((batch.labels != 0).sum()) for batch in batches)
    # Neither a validation counts, nor the wait for the batch after it.
    assert progress.tokens_per_second == real / 2


@pytest.mark.parametrize(
    ("limits", "seconds", "share"),
    [
        ({"max_steps": 2, "max_epochs": -1}, 1e-6, 1.0),
        ({"max_steps": 8, "max_epochs": -1, "limit_train_batches": 2}, 1e-6, None),
        ({"max_epochs": -1, "max_steps": 2, "max_time": timedelta(seconds=100)}, 50.0, 1.0),
    ],
)
def test_share_done(
    make_data: Maker,
    make_module: Maker,
    make_trainer: Maker,
    limits: dict[str, object],
    seconds: float,
    share: float | None,
) -> None:
    data, progress = make_data(), Progress(refresh_seconds=1e9)
    trainer = make_trainer(limit_val_batches=0, callbacks=[progress], **limits)
    trainer.fit(make_module(data), datamodule=data)
    assert progress._share_done(trainer, seconds) == (1.0 if share is None else share)


def test_without_an_end_only_the_clock_tells(
    make_data: Maker,
    make_module: Maker,
    make_trainer: Maker,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data, progress = make_data(), Progress(refresh_seconds=1e9)
    clock = Timer(timedelta(seconds=0.3))
    trainer = make_trainer(max_epochs=-1, limit_val_batches=0, callbacks=[progress, clock])
    trainer.fit(make_module(data), datamodule=data)
    monkeypatch.setattr(clock, "time_remaining", lambda: 30.0)
    assert progress._share_done(trainer, 10.0) == pytest.approx(0.25)
    trainer.callbacks.remove(clock)
    assert progress._share_done(trainer, 10.0) == 0


def test_samples_show_sentences_beside_their_references(
    make_data: Maker, make_module: Maker, make_trainer: Maker, caplog: pytest.LogCaptureFixture
) -> None:
    data = make_data()
    module = make_module(data)
    with caplog.at_level(logging.INFO, "zhen.training"):
        make_trainer(callbacks=[Samples(count=2)]).validate(module, datamodule=data, verbose=False)
    lines = [each.getMessage() for each in caplog.records if each.name.startswith("zhen.training")]
    found = module.validation
    assert lines[0].startswith(f"validation at update 0: BLEU {found.scores.bleu:.1f}, chrF ")
    assert lines[1:] == [
        line
        for i in (0, 5)
        for line in (
            f"  {found.sources[i]}",
            f"    -> {found.hypotheses[i]}",
            f"     = {found.references[i]}",
        )
    ]
