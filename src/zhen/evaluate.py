"""Score a checkpoint on test data.

    python -m zhen.evaluate ckpt=runs/phrasebook/RUN/checkpoints/best.ckpt decode=greedy

Reads configs/evaluate.yaml; prints the scores, and with `output=DIR` also writes them there with
the sentences.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from zhen.config import build, run_command
from zhen.errors import UserError


def evaluate(cfg: DictConfig) -> None:
    """Test `cfg.ckpt`, or the newest run's best checkpoint, on `cfg.test`."""
    import lightning as L

    from zhen.data import BatchOptions, TranslationData
    from zhen.files import make_directory
    from zhen.runs.directory import newest_checkpoint
    from zhen.runs.results import print_scores, write_results
    from zhen.training.module import TranslationModule
    from zhen.translator import Translator, pick_device

    decode = build(cfg.decode, "decode")
    checkpoint = Path(cfg.ckpt) if cfg.ckpt else newest_checkpoint(cfg.paths.runs)
    translator = Translator.load(checkpoint, weights=cfg.weights)
    given = cfg if cfg.test else trained_with(checkpoint)
    # A test set that was taken from the training pairs is taken from them again.
    names = ["test"] if given.test else ["train", "val", "val_size", "test_size"]
    splits: Any = OmegaConf.to_container(OmegaConf.masked_copy(given, names), resolve=True)
    reader = build(given.reader, "reader")
    try:
        data = TranslationData(
            **splits,
            reader=reader,
            languages=list(cfg.languages or trained_with(checkpoint)["languages"]),
            source_lang=translator.source_lang,
            target_lang=translator.target_lang,
            batch=BatchOptions(eval_tokens=max(cfg.batch.tokens // decode.hypotheses, 1)),
            cache_dir=cfg.paths.cache,
            tokenizer=translator.tokenizer,
            prefix="",
        )
    except ValueError as error:
        raise UserError(str(error)) from error
    if cfg.output:
        make_directory(cfg.output, key="output")
    for part in data.test_parts:
        data.check_positions(part, translator.model.max_positions)
    if not cfg.test:
        warn_of_other_pairs(checkpoint, data.fingerprint)
    device = pick_device(cfg.device)
    trainer = L.Trainer(
        accelerator="gpu" if device.type == "cuda" else device.type,
        devices=1,
        logger=False,
        enable_progress_bar=False,
    )
    module = TranslationModule(translator, decode=decode)
    trainer.test(module, datamodule=data, verbose=False)
    direction = f"{translator.source_lang} to {translator.target_lang}"
    print(f"{checkpoint}: {direction}, {translator.weights} weights")
    print_scores(module.tests)
    if cfg.output:
        about = {"checkpoint": str(checkpoint), "weights": translator.weights}
        write_results(Path(cfg.output), module.tests, about)


def warn_of_other_pairs(checkpoint: Path, fingerprint: Mapping[str, str]) -> None:
    """Where a file has changed, a set may have others, even some that were trained on."""
    from zhen.runs.directory import RunDirectory
    from zhen.runs.reproduction import other_pairs, provenance_of

    try:
        about = provenance_of(RunDirectory(checkpoint.parent.parent))
    except UserError:
        return  # of an older run, or damaged: nothing is known
    if others := other_pairs(about["corpus"], fingerprint):
        print(
            f"warning: the pairs of {', '.join(others)} are not those of the run", file=sys.stderr
        )


def trained_with(checkpoint: Path) -> DictConfig:
    """The data of the run that wrote `checkpoint`, from its configuration.

    Raises:
        UserError: the checkpoint does not lie in a run directory, or its pairs were not read by
            zhen: what a stranger's configuration names is not called.
    """
    path = checkpoint.parent.parent / "config.yaml"
    try:
        data = OmegaConf.load(path).data
        if not data.languages or not (data.test or data.train):
            raise ValueError
        data.reader = data.get("reader") or {"_target_": "zhen.data.Files"}
        target = str(data.reader["_target_"])
    except Exception as error:  # no file, or a foreign one with anything in it
        raise UserError(
            f"{checkpoint} is in no run directory: give the test data, test=TSV, and its columns,"
            " languages=[zh,en]"
        ) from error
    if not target.startswith("zhen.data."):
        raise UserError(
            f"{path}: `data.reader._target_` is {target!r}, which is not part of zhen: give the"
            " test data, test=PATH, and its reader"
        )
    return data


if __name__ == "__main__":
    run_command(evaluate, config_name="evaluate")
