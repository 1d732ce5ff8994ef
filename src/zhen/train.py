"""Train a model, then test its best checkpoint.

    python -m zhen.train model=small trainer.max_epochs=3

Reads configs/train.yaml; writes one run directory (see `zhen.runs.directory`).
"""

from __future__ import annotations

import logging
import os
import time
from typing import TYPE_CHECKING, Any

from omegaconf import DictConfig

from zhen.config import (
    build,
    build_all,
    current_choices,
    current_overrides,
    resolve,
    run_command,
    settings_refused_late,
)

if TYPE_CHECKING:
    import lightning as L

    from zhen.data import TranslationData
    from zhen.runs.directory import RunDirectory
    from zhen.runs.resume import Resumed
    from zhen.translator import Translator

log = logging.getLogger("zhen.train")  # as a command, __name__ is __main__


def train(cfg: DictConfig) -> float | None:
    """Train and test as `cfg` says; returns the best validation score, for sweepers."""
    import lightning as L

    from zhen.files import make_directory
    from zhen.runs.directory import DEVICES, RunDirectory, is_main
    from zhen.runs.parts import make_data, rehearse
    from zhen.runs.results import peak_memory, print_summary, write_results
    from zhen.runs.resume import find
    from zhen.training.callbacks import Progress
    from zhen.training.checkpoints import Checkpoints
    from zhen.training.clock import Clock
    from zhen.training.devices import described, set_up_device
    from zhen.training.loggers import finished
    from zhen.training.module import TranslationModule
    from zhen.training.ranks import ending_together
    from zhen.training.signals import no_other_owner
    from zhen.training.weights import load_origin

    started = time.monotonic()
    before = find(cfg, current_overrides())
    if before is not None:
        cfg = before.cfg
        if before.is_finished:
            before.say_finished()
            return None
    saved = before.checkpoint if before is not None else None
    switches = {"tf32": cfg.tf32, "compile": cfg.compile}
    set_up_device(cfg.trainer.accelerator, cfg.trainer.precision, **switches)
    origin = load_origin(cfg, current_overrides()) if cfg.init_from and saved is None else None
    L.seed_everything(cfg.seed, workers=True, verbose=False)

    # Whatever may refuse a value is made here, before anything is written.
    data = make_data(cfg, known=before if saved is not None else origin)
    make_optimizer = build(cfg.optimizer, "optimizer")
    schedule = build(cfg.scheduler, "scheduler")
    decode = build(cfg.decode, "decode")
    callbacks = build_all(cfg.callbacks, "callbacks")
    keeper = next((each for each in callbacks if isinstance(each, Checkpoints)), None)
    whole: dict[str, Any] = {"config": resolve(cfg)}
    start = {"start": before.update if before is not None else 0}
    supplied = {"wandb": whole, "tensorboard": {**whole, **start}}
    loggers = build_all(cfg.logger, "logger", supplied)
    trainer = build(
        cfg.trainer, "trainer",
        callbacks=[*callbacks, Clock(cfg.paths.run_dir)], logger=loggers,
        enable_checkpointing=keeper is not None, plugins=no_other_owner(),
    )  # fmt: skip
    os.environ[DEVICES] = str(trainer.num_devices)  # for the ranks that Lightning starts

    with ending_together(trainer), finished(loggers):
        rehearse(cfg, make_optimizer, origin)
        if before is None:
            RunDirectory.check_new(cfg.paths.run_dir)
        read_corpora(cfg, data)
        if before is not None:
            before.check_corpus(data.fingerprint)
        if keeper is not None:
            make_directory(keeper.dirpath, key="callbacks.checkpoint.dirpath")
        run = RunDirectory.create(cfg.paths.run_dir)
        with run.logging():
            if is_main():
                write_down(run, cfg, before, data, trainer)
            translator = make_translator(cfg, data, origin)
            log.info(
                "%s to %s: %s parameters, %s pieces, seed %d, %s, run directory %s",
                data.source_lang, data.target_lang, f"{translator.model.num_parameters:,}",
                " + ".join(f"{n:,}" for n in reversed(data.tokenizer.vocab_sizes.values())),
                cfg.seed, described(trainer, **switches), run.path,
            )  # fmt: skip
            if before is not None:
                log.info("it goes on after update %d%s", before.update, before.what_changes())
            if origin is not None:
                log.info("it begins with the weights and the vocabulary of %s", cfg.init_from)
            module = TranslationModule(
                translator,
                optimizer=make_optimizer,
                schedule=schedule,
                label_smoothing=cfg.label_smoothing,
                nonfinite_loss=cfg.nonfinite_loss,
                decode=decode,
                compile=cfg.compile,
            )
            with settings_refused_late():
                fit_started = time.monotonic()
                trainer.fit(module, datamodule=data, ckpt_path=saved)
                trained = time.monotonic() - fit_started
                best = keeper.best_path if keeper is not None else None
                trainer.test(module, datamodule=data, ckpt_path=best, verbose=False)

            if is_main():
                speeds = [c.tokens_per_second for c in callbacks if isinstance(c, Progress)]
                found = {
                    "checkpoint": best.name if best else None,
                    "weights": module.scored.weights,
                    "parameters": translator.model.num_parameters,
                    "updates": trainer.global_step,
                    "target_tokens_per_second": round(sum(speeds) * trainer.world_size) or None,
                    "seconds_training": round(trained, 1),
                    "seconds": round(time.monotonic() - started, 1),
                    **peak_memory(),
                }
                write_results(run.path, module.tests, found)
                print_summary(run.path, module.tests, found)
    return keeper.best_score if keeper is not None else None


def read_corpora(cfg: DictConfig, data: TranslationData) -> None:
    """Read all splits, which may fail on any line, before the run directory is made."""
    from zhen.files import make_directory
    from zhen.runs.directory import console

    make_directory(cfg.data.cache_dir, key="paths.cache")
    with console():  # the first reading of a large corpus takes its time
        for split in data.all_splits:
            data.read(split)


def write_down(
    run: RunDirectory,
    cfg: DictConfig,
    before: Resumed | None,
    data: TranslationData,
    trainer: L.Trainer,
) -> None:
    """What this run is, and where it came from."""
    from zhen.files import write_atomic
    from zhen.runs.provenance import ROOT, provenance, uncommitted

    device = f"{trainer.world_size} x {trainer.strategy.root_device}"
    about = provenance(cfg, current_choices(), data.fingerprint, device)
    if before is None:
        run.write_settings(cfg, current_overrides(), about)
    else:
        before.write_settings(current_overrides(), about)
    if (before is None or before.checkpoint is None) and (patch := uncommitted(ROOT)):
        write_atomic(run.patch, patch)
    write_atomic(run.tokenizer, data.tokenizer.to_json())


def make_translator(
    cfg: DictConfig, data: TranslationData, origin: Translator | None
) -> Translator:
    """The model, new or with the weights of `origin`, with the vocabulary of the data."""
    from zhen.translator import Translator

    tokenizer = data.tokenizer
    model = build(cfg.model, "model", **tokenizer.vocab_sizes, pad_id=tokenizer.pad_id)
    if origin is not None:
        model.load_state_dict(origin.model.state_dict())
    for split in data.all_splits:
        data.check_positions(split, model.max_positions)
    return Translator(model, tokenizer, data.source_lang, data.target_lang)


if __name__ == "__main__":
    run_command(train, config_name="train")
