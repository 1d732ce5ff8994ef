"""Score a checkpoint on test data.

    python -m zhen.evaluate ckpt=runs/phrasebook/RUN/checkpoints/best.ckpt decode=greedy

Reads configs/evaluate.yaml; prints the scores, and with `output=DIR` also writes them there with
the sentences.
"""

from pathlib import Path

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
    translator = Translator.load(checkpoint)
    test = cfg.test or trained_with(checkpoint).test
    try:
        data = TranslationData(
            test=test if isinstance(test, str) else dict(test),
            languages=list(cfg.languages or trained_with(checkpoint).languages),
            source_lang=translator.source_lang,
            target_lang=translator.target_lang,
            batch=BatchOptions(eval_tokens=max(cfg.batch.tokens // decode.hypotheses, 1)),
            cache_dir=cfg.paths.cache,
            tokenizer=translator.tokenizer,
            key="",
        )
    except ValueError as error:
        raise UserError(str(error)) from error
    if cfg.output:
        make_directory(cfg.output, key="output")
    for part in data.test_parts:
        data.check_positions(part, translator.model.max_positions)
    device = pick_device(cfg.device)
    trainer = L.Trainer(
        accelerator="gpu" if device.type == "cuda" else device.type,
        devices=1,
        logger=False,
        enable_progress_bar=False,
    )
    module = TranslationModule(translator, decode=decode)
    trainer.test(module, datamodule=data, verbose=False)
    print(f"{checkpoint}: {translator.source_lang} to {translator.target_lang}")
    print_scores(module.tests)
    if cfg.output:
        write_results(Path(cfg.output), module.tests, {"checkpoint": str(checkpoint)})


def trained_with(checkpoint: Path) -> DictConfig:
    """The data of the run that wrote `checkpoint`, from its configuration.

    Raises:
        UserError: the checkpoint does not lie in a run directory.
    """
    path = checkpoint.parent.parent / "config.yaml"
    try:
        data = OmegaConf.load(path).data
        if data.test and data.languages:
            return data
    except Exception:  # no file, or a foreign one with anything in it
        pass
    raise UserError(
        f"{checkpoint} is in no run directory: give the test data, test=TSV, and its columns,"
        " languages=[zh,en]"
    )


if __name__ == "__main__":
    run_command(evaluate, config_name="evaluate")
