"""The LightningModule in real, tiny trainings."""

import math
import pickle
from pathlib import Path
from typing import Any

import lightning as L
import pytest
import torch
from lightning.pytorch.loggers.logger import DummyLogger
from tests.conftest import Maker

from zhen.data import Batch, BatchOptions
from zhen.decoding import DecodeOptions
from zhen.model import Transformer
from zhen.training.loss import token_loss
from zhen.training.module import SplitTotals, TranslationModule, parameter_groups
from zhen.training.scores import score


class Notes(DummyLogger):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[dict[str, float]] = []

    def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
        self.rows.append(dict(metrics))


class Order(L.Callback):
    """Keeps the pairs of each training batch, by epoch."""

    def __init__(self) -> None:
        self.epochs: dict[int, list[list[int]]] = {}

    def on_train_batch_end(
        self, trainer: L.Trainer, module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        self.epochs.setdefault(trainer.current_epoch, []).append(batch.indices)


def test_each_epoch_has_another_order_and_every_pair(
    make_data: Maker, make_module: Maker, make_trainer: Maker
) -> None:
    found = []
    for _ in range(2):
        data, order = make_data(), Order()
        trainer = make_trainer(max_epochs=2, limit_val_batches=0, callbacks=[order])
        trainer.fit(make_module(data), datamodule=data)
        found.append(order.epochs)
    assert found[0] == found[1]
    first, second = found[0][0], found[0][1]
    assert first != second
    for epoch in (first, second):
        assert sorted(i for batch in epoch for i in batch) == list(range(100))


@pytest.mark.parametrize("limit", [1.0, 7])
def test_an_update_has_the_tokens_that_its_batches_say(
    make_data: Maker, make_module: Maker, make_trainer: Maker, limit: float | int
) -> None:
    """As Lightning groups batches to updates, the last of an epoch with fewer."""

    class Updates(L.Callback):
        def __init__(self) -> None:
            self.said: list[set[int]] = []
            self.seen: list[int] = []

        def on_train_batch_start(
            self, trainer: L.Trainer, module: Any, batch: Batch, batch_idx: int
        ) -> None:
            if trainer.global_step == len(self.said):  # the first since an update
                self.said.append(set())
                self.seen.append(0)
            self.said[-1].add(batch.update_tokens)
            self.seen[-1] += batch.tokens

    updates = Updates()
    trainer = make_trainer(
        max_epochs=2, accumulate_grad_batches=3, limit_train_batches=limit,
        limit_val_batches=0, callbacks=[updates],
    )  # fmt: skip
    data = make_data(batch=BatchOptions(tokens=130, eval_tokens=64))
    trainer.fit(make_module(data), datamodule=data)
    assert len(updates.seen) == trainer.global_step > 4
    assert [{tokens} for tokens in updates.seen] == updates.said


def test_training_logs_loss_per_token_and_the_rate_of_that_update(
    make_data: Maker, make_module: Maker, make_trainer: Maker
) -> None:
    data, notes = make_data(batch=BatchOptions(tokens=66, eval_tokens=64)), Notes()
    module = make_module(
        data,
        optimizer=lambda groups: torch.optim.SGD(groups, lr=1.0),
        schedule=lambda update, total: 0.001 * update,
        label_smoothing=0.1,
    )
    batch = next(iter(data.train_dataloader()))
    module.eval()  # no dropout: the first loss is known
    before = token_loss(module.model, batch, 0.1)
    trainer = make_trainer(logger=notes, limit_val_batches=0, limit_train_batches=4)
    trainer.fit(module, datamodule=data)
    assert [row["train/lr"] for row in notes.rows] == pytest.approx([0.001, 0.002, 0.003, 0.004])
    assert all(math.isfinite(row["train/loss"]) for row in notes.rows)
    assert notes.rows[0]["train/loss"] == pytest.approx(
        before.smoothed.item() / before.tokens, rel=1e-5
    )


@pytest.mark.parametrize("eval_tokens", [1, 30, 4096])
def test_validation_does_not_depend_on_batch_size(
    make_data: Maker, make_module: Maker, make_trainer: Maker, eval_tokens: int
) -> None:
    data = make_data(batch=BatchOptions(tokens=256, eval_tokens=eval_tokens))
    module = make_module(data, label_smoothing=0.1).eval()
    trainer = make_trainer()
    trainer.validate(module, datamodule=data, verbose=False)
    found = module.validation
    assert found is not None

    pairs = data.split("val")
    single = [token_loss(module.model, pairs[[i]], 0.1) for i in range(len(pairs))]
    tokens = sum(each.tokens for each in single)
    assert found.nll == pytest.approx(sum(e.nll.item() for e in single) / tokens, rel=1e-5)
    assert found.loss == pytest.approx(sum(e.smoothed.item() for e in single) / tokens, rel=1e-5)
    assert found.perplexity == pytest.approx(math.exp(found.nll), rel=1e-5)
    # In file order, against the raw references.
    assert (found.sources, found.references) == (pairs.sources, pairs.targets)
    assert found.hypotheses == module.translator.translate(pairs.sources, DecodeOptions())
    assert found.scores == score(found.hypotheses, pairs.targets, "en")
    assert trainer.callback_metrics["val/bleu"] == pytest.approx(found.scores.bleu, rel=1e-5)


class Keep(L.Callback):
    """Writes what a test found where the process that started it can read it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def on_test_end(self, trainer: L.Trainer, module: Any) -> None:
        if trainer.is_global_zero:
            self._path.write_bytes(pickle.dumps(module.tests["test"]))


@pytest.mark.slow
def test_scores_do_not_depend_on_the_number_of_ranks(
    make_data: Maker, make_module: Maker, make_trainer: Maker, tmp_path: Path
) -> None:
    found = []
    for ranks, eval_tokens in ((1, 1024), (2, 30)):
        data = make_data(batch=BatchOptions(tokens=256, eval_tokens=eval_tokens))
        module = make_module(data, label_smoothing=0.1)
        trainer = make_trainer(
            devices=ranks, strategy="ddp_spawn" if ranks > 1 else "auto",
            callbacks=[Keep(tmp_path / "found")],
        )  # fmt: skip
        trainer.test(module, datamodule=data, verbose=False)
        found.append(pickle.loads((tmp_path / "found").read_bytes()))
    one, two = found
    assert (two.sources, two.references) == (one.sources, one.references)
    assert two.sources == data.split("test").sources  # each once, in file order
    assert two.hypotheses == one.hypotheses and two.scores == one.scores
    assert (two.loss, two.nll) == pytest.approx((one.loss, one.nll), rel=1e-6)


def test_each_test_part_is_scored_apart_and_decoded_as_asked(
    make_data: Maker, make_module: Maker, make_trainer: Maker, tsv: dict[str, Path]
) -> None:
    data = make_data(test={"easy": str(tsv["test"]), "hard": str(tsv["val"])})
    short = DecodeOptions(num_beams=2, max_new_tokens=2)
    module = make_module(data, decode=short).eval()
    trainer = make_trainer()
    trainer.test(module, datamodule=data, verbose=False)
    assert list(module.tests) == ["easy", "hard"]
    assert module.tests["easy"].references == data.split("easy").targets
    assert module.tests["hard"].references == data.split("hard").targets
    sources = data.split("easy").sources
    assert module.tests["easy"].hypotheses == module.translator.translate(sources, short)
    metrics = set(trainer.callback_metrics)
    assert {"test/easy/bleu", "test/easy/chrf", "test/hard/perplexity", "test/hard/nll"} <= metrics


def test_a_part_of_a_split_is_scored_against_its_own_references(
    make_data: Maker, make_module: Maker, make_trainer: Maker
) -> None:
    data = make_data(batch=BatchOptions(tokens=256, eval_tokens=24))
    module = make_module(data)
    make_trainer(limit_val_batches=2).validate(module, datamodule=data, verbose=False)
    found, pairs = module.validation, data.split("val")
    assert found is not None
    assert 0 < len(found.sources) < 10
    together = dict(zip(pairs.sources, pairs.targets, strict=True))
    assert [together[source] for source in found.sources] == found.references


def test_a_sentence_seen_twice_counts_once(make_data: Maker, make_module: Maker) -> None:
    data = make_data()
    module, pairs, totals = make_module(data), data.split("val"), SplitTotals()
    for indices in ([1, 0], [1, 2]):
        loss = token_loss(module.model, pairs[indices], 0.0)
        totals.update(pairs[indices], loss, [f"text {i}" for i in indices])
    assert totals.compute(pairs, "en").hypotheses == ["text 0", "text 1", "text 2"]


def test_checkpoint_is_plain_data_and_enough_to_translate(
    make_data: Maker, make_module: Maker, make_trainer: Maker, tmp_path: Path
) -> None:
    from zhen.translator import Translator

    data = make_data(source_lang="en")
    module = make_module(data)
    trainer = make_trainer(limit_val_batches=0, limit_train_batches=2)
    trainer.fit(module, datamodule=data)
    path = tmp_path / "x.ckpt"
    trainer.save_checkpoint(path)
    content = torch.load(path, weights_only=True)
    assert set(content["zhen"]) == {"version", "model", "tokenizer", "source_lang", "target_lang"}
    loaded = Translator.load(path)
    assert (loaded.source_lang, loaded.target_lang) == ("en", "zh")
    lines = data.split("test").sources
    module.eval()
    assert loaded.translate(lines, DecodeOptions()) == module.translator.translate(
        lines, DecodeOptions()
    )


def test_weight_decay_spares_vectors() -> None:
    model = Transformer(
        vocab_size=9, d_model=4, num_heads=1, d_ff=4, num_encoder_layers=1, num_decoder_layers=1
    )
    decayed, spared = parameter_groups(model)
    assert "weight_decay" not in decayed and spared["weight_decay"] == 0.0
    assert all(p.ndim == 2 for p in decayed["params"])
    assert all(p.ndim == 1 for p in spared["params"])
    grouped = [id(p) for p in decayed["params"] + spared["params"]]
    assert sorted(grouped) == sorted(id(p) for p in model.parameters())  # tied ones once
    assert len(set(grouped)) == len(grouped)


def test_each_rank_draws_numbers_of_its_own(
    make_data: Maker, make_module: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, drawn = make_module(make_data()), []
    for rank in (0, 1, 2, 1):
        monkeypatch.setattr(TranslationModule, "global_rank", rank)
        torch.manual_seed(5)
        module.on_fit_start()
        drawn.append(torch.rand(1).item())
    torch.manual_seed(5)
    assert drawn[0] == torch.rand(1).item()
    assert len(set(drawn)) == 3 and drawn[1] == drawn[3]
