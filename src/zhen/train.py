"""Train a model, then test its best checkpoint.

    python -m zhen.train model=small trainer.max_epochs=3

Reads configs/train.yaml; writes one run directory (see `zhen.runs.directory`).
"""

import logging
import os
import shlex
import time
from pathlib import Path

from omegaconf import DictConfig

from zhen.config import (
    build,
    build_all,
    current_overrides,
    resolve,
    run_command,
    settings_refused_late,
)
from zhen.errors import UserError

log = logging.getLogger("zhen.train")  # as a command, __name__ is __main__


def train(cfg: DictConfig) -> float | None:
    """Train and test as `cfg` says; returns the best validation score, for sweepers."""
    import lightning as L
    import torch

    from zhen.files import make_directory, write_atomic, write_json
    from zhen.runs.directory import DEVICES, RunDirectory, console, is_main
    from zhen.runs.provenance import provenance
    from zhen.runs.results import peak_memory_gib, write_results
    from zhen.runs.resume import find
    from zhen.training.callbacks import Progress
    from zhen.training.checkpoints import Checkpoints
    from zhen.training.devices import check_device, described
    from zhen.training.module import TranslationModule, parameter_groups
    from zhen.training.ranks import ending_together
    from zhen.training.weights import check_shape, load_origin
    from zhen.translator import Translator

    started = time.monotonic()
    before = find(cfg, current_overrides())
    if before is not None:
        cfg = before.cfg
        if before.is_finished:
            if is_main():
                print(
                    f"{before.run.path} is finished, and tested after its {before.update:,}"
                    " updates: to train it further, raise trainer.max_steps or trainer.max_epochs"
                )
            return None
    special = {"tf32": cfg.tf32, "compile": cfg.compile}
    check_device(cfg.trainer.accelerator, cfg.trainer.precision, **special)
    torch.set_float32_matmul_precision("high" if cfg.tf32 else "highest")
    begins = before is None or before.checkpoint is None
    origin = load_origin(cfg, current_overrides()) if cfg.init_from and begins else None
    L.seed_everything(cfg.seed, workers=True, verbose=False)
    # With `trainer.deterministic`, PyTorch also fills every new tensor, to expose reads of
    # uninitialised memory. Nothing here reads any, and on a CPU it costs a tenth of the speed.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]

    # Whatever may refuse a value is made here, before anything is written.
    tokenizer = build(cfg.tokenizer, "tokenizer")
    dropout = tokenizer.dropout
    for known in (before, origin):
        tokenizer = known.tokenizer or tokenizer if known else tokenizer
    data = build(cfg.data, "data", tokenizer=tokenizer, dropout=dropout, seed=cfg.seed)
    make_optimizer = build(cfg.optimizer, "optimizer")
    schedule = build(cfg.scheduler, "scheduler")
    decode = build(cfg.decode, "decode")
    callbacks = build_all(cfg.callbacks, "callbacks")
    keeper = next((each for each in callbacks if isinstance(each, Checkpoints)), None)
    loggers = build_all(cfg.logger, "logger", supplied={"wandb": {"config": resolve(cfg)}})
    trainer = build(
        cfg.trainer, "trainer",
        callbacks=callbacks, logger=loggers, enable_checkpointing=keeper is not None,
    )  # fmt: skip
    os.environ[DEVICES] = str(trainer.num_devices)
    with ending_together(trainer):
        with torch.device("meta"):  # no memory, no random numbers
            rehearsal = build(cfg.model, "model", vocab_size=1, pad_id=0)
        if origin is not None:
            check_shape(rehearsal, origin, cfg.init_from)
        make_optimizer(parameter_groups(rehearsal))
        if before is None and is_main() and RunDirectory(Path(cfg.paths.run_dir)).config.exists():
            raise UserError(
                f"{cfg.paths.run_dir} holds a run already: go on with it by resume=auto, or choose"
                " another ZHEN_RUN_ID or name"
            )

        make_directory(cfg.data.cache_dir, key="paths.cache")
        splits = ("train", "val", *data.test_parts)
        with console():  # the first reading of a large corpus takes its time
            for split in splits:
                data.read(split)
        if before is not None:
            before.check_corpus(data.fingerprint)
        if keeper is not None:
            make_directory(keeper.dirpath, key="callbacks.checkpoint.dirpath")
        run = RunDirectory.create(cfg.paths.run_dir)
        with run.logging():
            if is_main():
                device = f"{trainer.world_size} x {trainer.strategy.root_device}"
                about = provenance(cfg, data.fingerprint, device)
                if before is not None:
                    before.write_settings(about, current_overrides())
                else:
                    run.write_settings(cfg, current_overrides())
                    write_json(run.provenance, about)
            tokenizer = data.tokenizer
            model = build(cfg.model, "model", **tokenizer.vocab_sizes, pad_id=tokenizer.pad_id)
            if origin is not None:
                model.load_state_dict(origin.model.state_dict())
            for split in splits:
                data.check_positions(split, model.max_positions)
            parameters = sum(p.numel() for p in model.parameters())
            if is_main():
                write_atomic(run.tokenizer, tokenizer.to_json())
            log.info(
                "%s to %s: %s parameters, %s pieces, seed %d, %s, run directory %s",
                data.source_lang, data.target_lang, f"{parameters:,}",
                " + ".join(f"{size:,}" for size in reversed(tokenizer.vocab_sizes.values())),
                cfg.seed, described(trainer, **special), run.path,
            )  # fmt: skip
            if before is not None:
                log.info("it goes on after update %d%s", before.update, before.what_changes())
            if origin is not None:
                log.info("it begins with the weights and the vocabulary of %s", cfg.init_from)

            module = TranslationModule(
                Translator(model, tokenizer, data.source_lang, data.target_lang),
                optimizer=make_optimizer,
                schedule=schedule,
                label_smoothing=cfg.label_smoothing,
                nonfinite_loss=cfg.nonfinite_loss,
                decode=decode,
                compile=cfg.compile,
            )
            fit_started = time.monotonic()
            with settings_refused_late():
                trainer.fit(
                    module, datamodule=data, ckpt_path=before.checkpoint if before else None
                )
                trained = time.monotonic() - fit_started
                best = keeper.best_path if keeper is not None else None
                trainer.test(module, datamodule=data, ckpt_path=best, verbose=False)

            if is_main():
                speeds = [c.tokens_per_second for c in callbacks if isinstance(c, Progress)]
                about = {
                    "checkpoint": best.name if best else None,
                    "weights": module.scored.weights,
                    "parameters": parameters,
                    "updates": trainer.global_step,
                    "target_tokens_per_second": round(sum(speeds) * trainer.world_size) or None,
                    "seconds_training": round(trained, 1),
                    "seconds": round(time.monotonic() - started, 1),
                    "peak_memory_gib": round(peak_memory_gib(), 2),
                }
                write_results(run.path, module.tests, about)
                summarise(run.path, module.tests, about)
        return keeper.best_score if keeper is not None else None


def summarise(path: Path, tests: dict, about: dict) -> None:
    """Print what a finished run found and what to type next."""
    from zhen.runs.results import print_samples, print_scores

    minutes, seconds = divmod(round(about["seconds"]), 60)
    print("\nSample translations")
    print_samples(tests, count=10)
    print("\nTest scores")
    print_scores(tests)
    print(
        f"\n{about['updates']:,} updates, {about['parameters']:,} parameters,"
        f" {about['target_tokens_per_second'] or 0:,} target tokens/s,"
        f" {minutes} min {seconds} s with the test, {about['peak_memory_gib']} GiB"
        f"\nRun directory: {path}"
        "\n\nNext:"
        f"\n  make translate TEXT={shlex.quote(next(iter(tests.values())).sources[0])}"
        "\n  make evaluate decode=greedy"
        "\n  make train model=small trainer.max_epochs=3"
    )


if __name__ == "__main__":
    run_command(train, config_name="train")
