"""MarianMT of transformers with its Seq2SeqTrainer: python -m scripts.race.marian JOB STRATEGY

STRATEGY is the trainer's `train_sampling_strategy`: `random`, its default, or `group_by_length`.
Batches have as many pairs as zhen's on average. Everything else is as the trainer has it, but for
the settings of the race, and for checkpoints and reports to other services, which are off.
"""

import sys
from typing import Any

from scripts.race.job import Clock, Ids, Job, start
from torch import Tensor, nn
from transformers import (
    GenerationConfig,
    MarianConfig,
    MarianMTModel,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    TrainerCallback,
)

IGNORED = -100  # what labels are padded with in transformers


class WatchedTrainer(Seq2SeqTrainer):
    """Keeps the batch that was trained on, for the clock."""

    def training_step(self, model: nn.Module, inputs: dict[str, Any], *rest: Any) -> Tensor:
        self.last = inputs["input_ids"], inputs["labels"]
        return super().training_step(model, inputs, *rest)


def make_model(job: Job) -> MarianMTModel:
    sizes = job.shape
    model = MarianMTModel(
        MarianConfig(
            vocab_size=sizes["vocab_size"],
            max_position_embeddings=1024,
            d_model=sizes["d_model"],
            encoder_layers=sizes["num_encoder_layers"],
            decoder_layers=sizes["num_decoder_layers"],
            encoder_attention_heads=sizes["num_heads"],
            decoder_attention_heads=sizes["num_heads"],
            encoder_ffn_dim=sizes["d_ff"],
            decoder_ffn_dim=sizes["d_ff"],
            activation_function="relu",
            dropout=job.dropout,
            scale_embedding=True,
            pad_token_id=job.pad_id,
            eos_token_id=job.eos_id,
            decoder_start_token_id=job.bos_id,
        )
    )
    # The class has defaults of its own, such as Marian's end piece at the longest length.
    model.generation_config = GenerationConfig(
        pad_token_id=job.pad_id,
        eos_token_id=job.eos_id,
        decoder_start_token_id=job.bos_id,
        max_new_tokens=job.longest,
    )
    return model


def run(job: Job) -> None:
    model = make_model(job)

    def collate(pairs: list[dict[str, Ids]]) -> dict[str, Tensor]:
        source = job.padded([pair["input_ids"] for pair in pairs])
        labels = job.padded([pair["labels"] for pair in pairs])
        labels[labels == job.pad_id] = IGNORED
        return {
            "input_ids": source,
            "attention_mask": (source != job.pad_id).long(),
            "labels": labels,
            "decoder_input_ids": model.prepare_decoder_input_ids_from_labels(labels=labels),
        }

    def translate(source: Tensor) -> list[Ids]:
        mask = (source != job.pad_id).long()
        found: list[Ids] = model.generate(source, attention_mask=mask)[:, 1:].tolist()
        return found

    class Watch(TrainerCallback):  # type: ignore[misc]
        def on_train_begin(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
            self.clock = Clock(job, model, translate)

        def on_step_end(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
            source, labels = trainer.last
            labels = labels.masked_fill(labels == IGNORED, job.pad_id)
            control.should_training_stop = self.clock.update(source, labels)

    trainer = WatchedTrainer(
        model=model,
        args=Seq2SeqTrainingArguments(
            output_dir=job.folder,
            per_device_train_batch_size=job.rows,
            train_sampling_strategy=sys.argv[2],
            label_smoothing_factor=job.label_smoothing,
            learning_rate=job.lr,
            lr_scheduler_type="inverse_sqrt",
            warmup_steps=job.lr_warmup,
            adam_beta2=0.98,
            adam_epsilon=1e-9,
            max_grad_norm=job.clip,
            max_steps=10**7,
            bf16=job.precision == "bf16-mixed",
            use_cpu=job.device == "cpu",
            seed=job.seed,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            logging_strategy="no",
        ),
        train_dataset=[{"input_ids": s, "labels": t} for s, t in job.encoded()],
        data_collator=collate,
        callbacks=[Watch()],
    )
    trainer.train()


if __name__ == "__main__":
    start(run)
