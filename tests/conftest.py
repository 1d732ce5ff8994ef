"""A corpus and a model that are small enough to train in a second."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

# Read when torch is imported. Test files share the cores: what is computed here takes one of them,
# and does not keep it while it waits.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

Maker = Callable[..., Any]


@pytest.fixture(scope="session")
def tsv(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Files of 100, 10 and 10 pairs: train, val, test."""
    who = {"我": "I", "你": "you", "他": "he", "她": "she", "我们": "we", "他们": "they"}
    does = {"喜欢": "like", "看见": "see", "认识": "know", "想要": "want"}
    what = {"苹果": "apples", "黑猫": "black cats", "书": "books", "茶": "tea", "花": "flowers"}
    lines = [
        f"{a}{c}{e}。\t{b} {d} {f}.\n"
        for a, b in who.items()
        for c, d in does.items()
        for e, f in what.items()
    ]
    folder = tmp_path_factory.mktemp("corpus")
    files = {}
    for name, part in {
        "train": slice(100),
        "val": slice(100, 110),
        "test": slice(110, 120),
    }.items():
        files[name] = folder / f"{name}.tsv"
        files[name].write_bytes("".join(lines[part]).encode())
    return files


@pytest.fixture
def make_data(tsv: dict[str, Path], tmp_path: Path) -> Maker:
    """Makes a data module over `tsv`; keywords change its arguments."""
    from zhen.data import BatchOptions, TokenizerOptions, TranslationData

    def make(**changes: Any) -> TranslationData:
        arguments: dict[str, Any] = {
            **{name: str(path) for name, path in tsv.items()},
            "languages": ["zh", "en"],
            "source_lang": "zh",
            "target_lang": None,
            "max_length": 32,
            "batch": BatchOptions(tokens=256, eval_tokens=1024),
            "cache_dir": str(tmp_path / "cache"),
            "num_workers": 0,
            "seed": 0,
            "tokenizer": TokenizerOptions(vocab_size=400),
        }
        return TranslationData(**{**arguments, **changes})

    return make


@pytest.fixture
def make_module(make_data: Maker) -> Maker:
    """Makes a training module with a toy model for a data module; keywords go to the module."""
    import torch

    from zhen.data import TranslationData
    from zhen.decoding import DecodeOptions
    from zhen.model import Transformer
    from zhen.training.module import TranslationModule
    from zhen.translator import Translator

    def make(data: TranslationData, **changes: Any) -> TranslationModule:
        torch.manual_seed(0)
        model = Transformer(
            **data.tokenizer.vocab_sizes,
            d_model=16,
            num_heads=2,
            d_ff=32,
            num_encoder_layers=1,
            num_decoder_layers=1,
            max_positions=64,
        )
        translator = Translator(model, data.tokenizer, data.source_lang, data.target_lang)
        return TranslationModule(translator, **{"decode": DecodeOptions(), **changes})

    return make


@pytest.fixture
def make_trainer(tmp_path: Path) -> Maker:
    """Makes a quiet CPU trainer; keywords change its arguments."""
    import lightning as L

    def make(**changes: Any) -> L.Trainer:
        quiet = {
            "accelerator": "cpu",
            "logger": False,
            "enable_checkpointing": False,
            "enable_progress_bar": False,
            "enable_model_summary": False,
            "use_distributed_sampler": False,
            "num_sanity_val_steps": 0,
            "log_every_n_steps": 1,
            "max_epochs": 1,
            "default_root_dir": tmp_path,
        }
        return L.Trainer(**{**quiet, **changes})

    return make
