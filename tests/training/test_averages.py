"""Averages of the weights: what is kept, what is scored, and that training does not notice."""

from pathlib import Path
from typing import Any

import lightning as L
import pytest
import torch
from tests.conftest import Maker

from zhen.data import BatchOptions
from zhen.errors import UserError
from zhen.model.averages import Weights, copy_of, mean
from zhen.training.averages import Averages
from zhen.training.checkpoints import Checkpoints
from zhen.translator import Translator


class Notes(L.Callback):
    """The trained weights after each update and at each validation, and what was scored there."""

    def __init__(self) -> None:
        self.updates: list[Weights] = []
        self.validations: list[Weights] = []
        self.scored: list[Weights] = []

    def on_train_batch_end(self, trainer: L.Trainer, module: Any, *_: Any) -> None:
        if trainer.global_step > len(self.updates):
            self.updates.append(copy_of(module.model))

    def on_validation_end(self, trainer: L.Trainer, module: Any) -> None:
        self.validations.append(copy_of(module.model))
        self.scored.append(copy_of(module.scored.model))


class Training:
    """Three epochs of a few updates, each with its validation, and a test."""

    def __init__(self, folder: Path, data: Any, module: Any, make_trainer: Maker, **averages: Any):
        folder.mkdir()
        self.notes, self.module = Notes(), module
        self.keeper = Checkpoints(dirpath=str(folder), monitor="val/loss", mode="min")
        self.trainer = make_trainer(
            max_epochs=3, accumulate_grad_batches=2,
            callbacks=[Averages(**averages), self.notes, self.keeper], enable_checkpointing=True,
        )  # fmt: skip
        self.trainer.fit(module, datamodule=data)
        self.trained, self.updates = copy_of(module.model), self.trainer.global_step
        self.trainer.test(module, datamodule=data, ckpt_path=self.keeper.best, verbose=False)


@pytest.fixture
def train(tmp_path: Path, make_data: Maker, make_module: Maker, make_trainer: Maker) -> Maker:
    def run(**averages: Any) -> Training:
        data = make_data(batch=BatchOptions(tokens=150, eval_tokens=1024))
        module = make_module(data, optimizer=lambda groups: torch.optim.AdamW(groups, lr=0.01))
        name = "-".join(map(str, averages.values())) or "none"
        return Training(tmp_path / name, data, module, make_trainer, **averages)

    return run


def equal(ours: Weights, theirs: Weights) -> bool:
    return all(torch.equal(ours[name], theirs[name]) for name in {*ours, *theirs})


def test_each_kind_is_kept_in_one_file_and_can_be_chosen(train: Maker) -> None:
    plain = train()
    run = train(ema_decay=0.8, last=2, weights="average")
    file = run.keeper.last
    assert equal(plain.trained, run.trained)  # averages change nothing of the training
    assert len(run.notes.updates) == run.updates > 6 and len(run.notes.validations) == 3

    shares = 0.8 ** torch.arange(run.updates - 1, -1, -1)
    shares /= shares.sum()
    every = {name: torch.stack([w[name] for w in run.notes.updates]) for name in run.trained}
    ema = {name: torch.tensordot(shares, stacked, dims=1) for name, stacked in every.items()}
    wanted = {"raw": run.trained, "average": mean(run.notes.validations[-2:]), "ema": ema}
    for name, weights in wanted.items():
        found = Translator.load(file, weights=name)
        assert found.weights == name
        for key, tensor in copy_of(found.model).items():
            torch.testing.assert_close(tensor, weights[key], rtol=1e-5, atol=1e-6)
    # Where nothing is said, what the run scored.
    assert equal(copy_of(Translator.load(file).model), wanted["average"])
    assert Translator.load(plain.keeper.last).weights == "raw"


@pytest.mark.parametrize("weights", ["raw", "ema", "average"])
def test_validation_and_test_score_the_same_kind(train: Maker, weights: str) -> None:
    run = train(ema_decay=0.8, last=2, weights=weights)
    validations, scored = run.notes.validations, run.notes.scored
    for number, each in enumerate(scored, start=1):
        match weights:
            case "raw":
                assert equal(each, validations[number - 1])
            case "average":
                assert equal(each, mean(validations[max(0, number - 2) : number]))
            case "ema":
                assert not equal(each, validations[number - 1])
    content = torch.load(run.keeper.best, weights_only=True)
    best = content["global_step"] * 3 // run.updates - 1
    # The test scores the best of what validation scored, from the file.
    assert equal(copy_of(run.module.scored.model), scored[best])
    assert equal(copy_of(Translator.load(run.keeper.best).model), scored[best])
    assert weights == "raw" or not run.module.scored.model.training


def test_the_best_is_chosen_by_what_is_scored(train: Maker) -> None:
    run = train(last=3, weights="average")
    # The average of a falling loss lags behind: other numbers than those of the raw weights.
    raw = train(last=3)
    assert run.keeper.best_score != raw.keeper.best_score
    assert equal(run.trained, raw.trained)


def test_an_average_that_is_not_there(train: Maker) -> None:
    kept = train(last=2).keeper.last
    with pytest.raises(UserError, match="weights=ema: the checkpoint has only raw, average; "):
        Translator.load(kept, weights="ema")
    kept = train().keeper.last
    with pytest.raises(UserError, match="weights=average: the checkpoint has only raw; "):
        Translator.load(kept, weights="average")


@pytest.mark.parametrize("damage", ["other", "shape", "text", "nan"])
def test_averages_that_are_damaged(train: Maker, damage: str) -> None:
    file = train(ema_decay=0.5).keeper.last
    content = torch.load(file, weights_only=True)
    ema = content["averages"]["ema"]
    name = next(iter(ema))
    match damage:
        case "other":
            ema["more"] = torch.ones(1)
        case "shape":
            ema[name] = ema[name][:1]
        case "text":
            content["averages"]["ema"] = "text"
        case "nan":
            ema[name] = ema[name] * float("nan")
    torch.save(content, file)
    with pytest.raises(UserError, match="is no checkpoint of zhen"):
        Translator.load(file, weights="ema")
    assert Translator.load(file).weights == "raw"


def test_no_validation_to_take_weights_from(
    make_data: Maker, make_module: Maker, make_trainer: Maker
) -> None:
    data = make_data()
    module, callback = make_module(data), Averages(last=2, weights="average")
    trainer = make_trainer(limit_val_batches=0, callbacks=[callback])
    trainer.fit(module, datamodule=data)
    with pytest.raises(UserError, match="there was no validation whose weights could be averaged"):
        trainer.test(module, datamodule=data, verbose=False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ema_decay": 1.0}, "`ema_decay` must be above 0 and below 1, but is 1.0"),
        ({"last": 0}, "`last` must be at least 1, but is 0"),
        ({"weights": "ema"}, "`weights` is ema, which needs `ema_decay`"),
        ({"weights": "average", "ema_decay": 0.9}, "`weights` is average, which needs `last`"),
    ],
)
def test_numbers_that_make_no_sense(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Averages(**arguments)
