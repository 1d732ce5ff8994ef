"""Ten updates, each of all pairs, with any share of ranks, micro-batches and precision.

As a command, it is what each rank of a test runs:  python toy_training.py TSV OUT {json}
"""

import json
import sys
from pathlib import Path
from typing import Any

import lightning as L
import torch

from zhen.data import BatchOptions, TokenizerOptions, TranslationData
from zhen.decoding import DecodeOptions
from zhen.model import Transformer
from zhen.training.module import TranslationModule
from zhen.translator import Translator

UPDATES = 10


class Notes(L.Callback):
    """Keeps the gradient of each update and the number of micro-batches."""

    def __init__(self) -> None:
        self.gradients: list[dict[str, torch.Tensor]] = []
        self.batches = 0

    def on_before_optimizer_step(self, trainer: L.Trainer, module: Any, optimizer: Any) -> None:
        named = module.model.named_parameters()
        self.gradients.append({name: p.grad.clone() for name, p in named})

    def on_train_batch_end(self, *_: Any) -> None:
        self.batches += 1


def train(
    tsv: Path,
    *,
    tokens: int,
    accumulate: int = 1,
    devices: int = 1,
    precision: str = "64-true",
) -> dict[str, Any]:
    """Gradients of each update, the weights after the last, and micro-batches of this rank."""
    data = TranslationData(
        train=str(tsv),
        val=str(tsv),
        test=str(tsv),
        languages=["zh", "en"],
        source_lang="zh",
        max_length=32,
        batch=BatchOptions(tokens=tokens),
        cache_dir=str(tsv.parent / "cache"),
        tokenizer=TokenizerOptions(vocab_size=400),
    )
    torch.manual_seed(0)
    model = Transformer(
        **data.tokenizer.vocab_sizes, d_model=16, num_heads=2, d_ff=32, num_encoder_layers=1,
        num_decoder_layers=1, dropout=0.0, max_positions=64,
    )  # fmt: skip
    module = TranslationModule(
        Translator(model, data.tokenizer, "zh", "en"),
        decode=DecodeOptions(),
        # Adam would make noise of what should be zero as large as any other step.
        optimizer=lambda groups: torch.optim.SGD(
            [{"params": group["params"]} for group in groups], lr=0.1
        ),
        label_smoothing=0.1,
    )
    notes = Notes()
    L.Trainer(
        accelerator="cpu", devices=devices, strategy="ddp" if devices > 1 else "auto",
        precision=precision, accumulate_grad_batches=accumulate, max_epochs=UPDATES,
        limit_val_batches=0, logger=False, enable_checkpointing=False, callbacks=[notes],
        enable_progress_bar=False, enable_model_summary=False, use_distributed_sampler=False,
        default_root_dir=tsv.parent,
    ).fit(module, datamodule=data)  # fmt: skip
    return {
        "gradients": notes.gradients,
        "weights": {name: p.detach().clone() for name, p in model.named_parameters()},
        "batches": notes.batches,
    }


if __name__ == "__main__":
    found = train(Path(sys.argv[1]), **json.loads(sys.argv[3]))
    if torch.distributed.get_rank() == 0:
        torch.save(found, sys.argv[2])
