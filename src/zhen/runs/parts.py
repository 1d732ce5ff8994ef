"""Parts of a training that may refuse their settings: made before a run begins, or is submitted."""

import copy
from collections.abc import Sequence
from typing import Any

import torch
from omegaconf import DictConfig

from zhen.config import build, build_all, resolve
from zhen.data import TranslationData
from zhen.runs.directory import console
from zhen.runs.resume import Resumed, find
from zhen.training.module import parameter_groups
from zhen.training.weights import check_shape, load_origin
from zhen.translator import Translator

# Another machine will train: what there is of a device here says nothing.
ANYWHERE = {
    "accelerator": "cpu",
    "devices": 1,
    "num_nodes": 1,
    "strategy": "auto",
    "precision": "32-true",
}


def make_data(cfg: DictConfig, known: Resumed | Translator | None) -> TranslationData:
    """The data module, with the vocabulary of `known` or one that is still to be learned."""
    options = build(cfg.tokenizer, "tokenizer")
    data: TranslationData = build(
        cfg.data,
        "data",
        tokenizer=options if known is None else known.tokenizer,
        dropout=options.dropout,
        seed=cfg.seed,
    )
    return data


def rehearse(cfg: DictConfig, make_optimizer: Any, origin: Translator | None) -> None:
    """Let model and optimizer refuse their values, before a large corpus is read for them."""
    with torch.device("meta"):  # no memory, no random numbers
        model = build(cfg.model, "model", vocab_size=1, pad_id=0)
    if origin is not None:
        check_shape(model, origin, cfg.init_from)
    make_optimizer(parameter_groups(model))


def rehearse_start(cfg: DictConfig, overrides: Sequence[str]) -> Resumed | None:
    """Let everything refuse now what it would refuse when `zhen.train` starts on another machine.

    The files of the corpus must be there; what stands in them is not read. A data set of the hub is
    downloaded.

    Args:
        cfg: the checked configuration of the training.
        overrides: the words that made it.

    Returns:
        The run that would go on; None for a new one.

    Raises:
        UserError: as the training would.
    """
    before = find(cfg, overrides)
    if before is not None:
        cfg = before.cfg
    saved = before is not None and before.checkpoint is not None
    origin = load_origin(cfg, overrides) if cfg.init_from and not saved else None
    data = make_data(cfg, known=before if saved else origin)
    with console():
        data.given()
    for key in ("scheduler", "decode"):
        build(cfg[key], key)
    callbacks = build_all(cfg.callbacks, "callbacks")
    loggers = build_all(cfg.logger, "logger", supplied={"wandb": {"config": resolve(cfg)}})
    here = copy.deepcopy(cfg)
    here.trainer.update(ANYWHERE)
    parts = {"callbacks": callbacks, "logger": loggers}
    build(here.trainer, "trainer", **parts, enable_checkpointing=True)
    rehearse(cfg, build(cfg.optimizer, "optimizer"), origin)
    return before
