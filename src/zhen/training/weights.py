"""A new run that begins with the weights and the vocabulary of a checkpoint (`init_from`)."""

from collections.abc import Sequence

from omegaconf import DictConfig

from zhen.data import Tokenizer
from zhen.errors import UserError
from zhen.model import Transformer
from zhen.translator import Translator

# What the same weights can be used with, and what the vocabulary gives.
FREE = ("dropout", "max_positions", "vocab_size", "source_vocab_size", "pad_id")


def load_origin(cfg: DictConfig, overrides: Sequence[str]) -> Translator:
    """The model at `cfg.init_from`.

    Raises:
        UserError: it cannot be read, or the command line asks for another vocabulary.
    """
    origin = Translator.load(cfg.init_from, key="init_from")
    sides = origin.tokenizer.source, origin.tokenizer.target
    if cfg.tokenizer.get("dropout") and not all(side.has_merges for side in sides):
        raise UserError(
            "`tokenizer.dropout` leaves out merges, but the vocabulary of"
            f" init_from={cfg.init_from} has none: take tokenizer.dropout=0"
        )
    if cfg.tokenizer.get("path") is not None:
        if Tokenizer.load(cfg.tokenizer.path).to_json() != origin.tokenizer.to_json():
            raise UserError(
                f"tokenizer.path: {cfg.tokenizer.path} is another vocabulary than that of"
                f" init_from={cfg.init_from}, whose weights belong to it: take tokenizer.path out"
            )
        return origin
    for each in overrides:
        name = each.lstrip("+~").partition("=")[0]
        if name.startswith("tokenizer") and name != "tokenizer.dropout":
            raise UserError(
                f"`{each}`: init_from brings its own vocabulary, to which its weights belong: take"
                " it out"
            )
    return origin


def check_shape(model: Transformer, origin: Translator, path: str) -> None:
    """Refuse a model that the weights of `origin` do not fit.

    Raises:
        UserError: names a setting that differs.
    """
    for name, value in origin.model.config.items():
        if name not in FREE and model.config.get(name) != value:
            raise UserError(
                f"`model.{name}` is {model.config.get(name)}, but the model of init_from={path} has"
                f" {value}: take model.{name}={value}"
            )
