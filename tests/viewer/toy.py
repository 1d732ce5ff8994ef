"""An untrained translator, small enough to make anew in each test."""

from pathlib import Path
from typing import Any

import torch
from tests.toy_tokenizer import learn

from zhen.model import Transformer
from zhen.translator import Translator

BUTTERFLY = "这只蝴蝶真漂亮，停在花朵上，我很喜欢它"
TRAINING = [BUTTERFLY, "你很漂亮", "you are beautiful", "It costs $5 or $$6."] * 3
TOKENIZER = learn(TRAINING, vocab_size=330)
ENCODER_LAYERS, DECODER_LAYERS, HEADS, POSITIONS = 3, 2, 4, 40


def make(**changes: Any) -> Translator:
    torch.manual_seed(0)
    sizes = {
        **TOKENIZER.vocab_sizes, "d_model": 16, "num_heads": HEADS, "d_ff": 32,
        "num_encoder_layers": ENCODER_LAYERS, "num_decoder_layers": DECODER_LAYERS,
        "max_positions": POSITIONS,
    }  # fmt: skip
    return Translator(Transformer(**(sizes | changes)).eval(), TOKENIZER, "zh", "en")


def save(translator: Translator, path: Path) -> Path:
    """A checkpoint as training writes it, as far as `Translator.load` reads it."""
    weights = {f"model.{name}": tensor for name, tensor in translator.model.state_dict().items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save({"zhen": translator.description(), "state_dict": weights}, path)
    return path
