"""zhen in the race: its own training command with a clock, and the bare loop of the same step."""

import sys
from itertools import count
from typing import Any

import lightning as L
import torch
from scripts.race.job import Clock, Ids, Job, start
from torch import Tensor

from zhen.data import Batch, TranslationData
from zhen.decoding import DecodeOptions, generate
from zhen.model import Transformer


class RaceClock(L.Callback):
    """As a callback of `zhen.train`: `+callbacks.clock._target_=scripts.race.ours.RaceClock`.

    Args:
        job: the folder of the job.
    """

    def __init__(self, *, job: str) -> None:
        self._job = Job.read(job)
        torch.set_num_threads(self._job.threads)

    def on_train_start(self, trainer: L.Trainer, module: L.LightningModule) -> None:
        self._clock = clock(self._job, module.model)  # type: ignore[arg-type]

    def on_train_batch_end(
        self,
        trainer: L.Trainer,
        module: L.LightningModule,
        outputs: Any,
        batch: Batch,
        batch_idx: int,
    ) -> None:
        if self._clock.update(batch.source, batch.labels):
            sys.exit(0)  # nothing is left to do, such as the test


def clock(job: Job, model: Transformer) -> Clock:
    options = DecodeOptions(max_new_tokens=job.longest)

    def translate(source: Tensor) -> list[Ids]:
        found = generate(model, source, options, bos_id=job.bos_id, eos_id=job.eos_id)
        return [best[0].ids for best in found]

    return Clock(job, model, translate, pads_output=False)


def run(job: Job) -> None:
    """The same step on the same batches, without Lightning, callbacks and logs."""
    from omegaconf import OmegaConf

    from zhen.config import build
    from zhen.training.loss import token_loss
    from zhen.training.module import parameter_groups
    from zhen.training.schedule import Pace

    cfg = OmegaConf.load(f"{job.folder}/zhen.yaml")
    # As the command has it: what determinism costs is no part of what is around the step.
    strict = cfg.trainer.deterministic
    torch.use_deterministic_algorithms(bool(strict), warn_only=strict == "warn")
    torch.utils.deterministic.fill_uninitialized_memory = False
    tokenizer = build(cfg.tokenizer, "tokenizer")
    data: TranslationData = build(cfg.data, "data", tokenizer=tokenizer, seed=job.seed)
    sizes = {**data.tokenizer.vocab_sizes, "pad_id": job.pad_id}
    model: Transformer = build(cfg.model, "model", **sizes).to(job.device)
    optimizer = build(cfg.optimizer, "optimizer")(parameter_groups(model))
    schedule = build(cfg.scheduler, "scheduler")
    loader = data.train_dataloader()
    pace = Pace(None, len(loader), data.target_tokens / len(loader))
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda done: schedule(done + 1, pace))
    watch = clock(job, model)
    for epoch in count():
        loader.sampler.set_epoch(epoch)  # type: ignore[attr-defined]
        for batch in loader:
            batch = batch.to(job.device)
            bf16 = job.precision == "bf16-mixed"
            with torch.autocast(job.device, torch.bfloat16, enabled=bf16):
                found = token_loss(model, batch, job.label_smoothing)
            (found.smoothed / batch.update_tokens).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), job.clip)
            optimizer.step()
            optimizer.zero_grad()
            scheduler.step()
            if watch.update(batch.source, batch.labels):
                return


if __name__ == "__main__":
    start(run)
