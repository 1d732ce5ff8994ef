"""torch.nn.Transformer in a plain Lightning module, as a user would write it in an afternoon.

Batches of as many pairs as zhen's have on average, shuffled, padded to their longest. PyTorch's
class has dropout inside attention and feed-forward too, and ends each stack with a norm.
"""

import math
from typing import Any

import lightning as L
import torch
from scripts.race.job import Clock, Ids, Job, start
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader

MAX_POSITIONS = 1024


class PlainModel(nn.Module):
    def __init__(self, job: Job) -> None:
        super().__init__()
        sizes, self.pad_id = job.shape, job.pad_id
        width = sizes["d_model"]
        self.embedding = nn.Embedding(sizes["vocab_size"], width, padding_idx=job.pad_id)
        nn.init.normal_(self.embedding.weight, std=width**-0.5)
        position = torch.arange(MAX_POSITIONS)[:, None]
        angle = position * torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
        table = torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)
        self.register_buffer("positions", table)
        self.dropout = nn.Dropout(job.dropout)
        self.transformer = nn.Transformer(
            d_model=width,
            nhead=sizes["num_heads"],
            num_encoder_layers=sizes["num_encoder_layers"],
            num_decoder_layers=sizes["num_decoder_layers"],
            dim_feedforward=sizes["d_ff"],
            dropout=job.dropout,
            batch_first=True,
        )
        self.output = nn.Linear(width, sizes["vocab_size"], bias=False)
        self.output.weight = self.embedding.weight

    def embed(self, ids: Tensor) -> Tensor:
        scaled = self.embedding(ids) * math.sqrt(self.embedding.embedding_dim)
        return self.dropout(scaled + self.positions[: ids.size(1)])

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Ids (B, S) and (B, T) -> logits (B, T, V)."""
        padding = source == self.pad_id  # True = do not attend, as PyTorch's class has it
        size = target.size(1)
        future = torch.ones(size, size, dtype=torch.bool, device=target.device).triu(1)
        states = self.transformer(
            self.embed(source), self.embed(target), tgt_mask=future, tgt_is_causal=True,
            src_key_padding_mask=padding, memory_key_padding_mask=padding,
        )  # fmt: skip
        return self.output(states)


class PlainModule(L.LightningModule):
    def __init__(self, job: Job) -> None:
        super().__init__()
        self.job, self.model = job, PlainModel(job)

    def on_train_start(self) -> None:
        self.clock = Clock(self.job, self.model, self.translate)

    def training_step(self, batch: dict[str, Tensor], batch_idx: int) -> Tensor:
        logits = self.model(batch["source"], batch["target"])
        loss = F.cross_entropy(
            logits.flatten(0, 1),
            batch["labels"].flatten(),
            ignore_index=self.job.pad_id,
            label_smoothing=self.job.label_smoothing,
        )
        self.log("train/loss", loss)
        return loss

    def on_train_batch_end(self, outputs: Any, batch: dict[str, Tensor], batch_idx: int) -> None:
        if self.clock.update(batch["source"], batch["labels"]):
            self.trainer.should_stop = True

    def configure_optimizers(self) -> Any:
        optimizer = torch.optim.Adam(self.parameters(), lr=self.job.lr, betas=(0.9, 0.98), eps=1e-9)
        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, self.job.schedule)
        return [optimizer], [{"scheduler": scheduler, "interval": "step"}]

    def translate(self, source: Tensor) -> list[Ids]:
        target = source.new_full((len(source), 1), self.job.bos_id)
        for _ in range(self.job.longest):
            best = self.model(source, target)[:, -1].argmax(dim=-1, keepdim=True)
            target = torch.cat([target, best], dim=1)
            if (target == self.job.eos_id).any(dim=1).all():
                break
        return target[:, 1:].tolist()


def run(job: Job) -> None:
    def collate(pairs: list[tuple[Ids, Ids]]) -> dict[str, Tensor]:
        sources, targets = zip(*pairs, strict=True)
        return {
            "source": job.padded(list(sources)),
            "target": job.padded([[job.bos_id, *ids[:-1]] for ids in targets]),
            "labels": job.padded(list(targets)),
        }

    loader = DataLoader(job.encoded(), batch_size=job.rows, shuffle=True, collate_fn=collate)  # type: ignore[arg-type]
    trainer = L.Trainer(
        accelerator="gpu" if job.device == "cuda" else "cpu", devices=1, precision=job.precision,
        gradient_clip_val=job.clip, max_epochs=-1, default_root_dir=job.folder,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    trainer.fit(PlainModule(job), loader)


if __name__ == "__main__":
    start(run)
