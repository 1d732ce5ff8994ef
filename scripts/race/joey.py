"""joeynmt 2.3.0 in the race: python -m scripts.race.joey JOB, in an environment of its own.

Its requirements name releases that no longer install beside a present torch, so it gets a virtual
environment, whose Python the race is told with --joeynmt:

    python -m venv joeynmt
    joeynmt/bin/pip install torch sacrebleu datasets matplotlib plotly pyyaml packaging \\
        tensorboard 'importlib_metadata<8.8' sentencepiece subword-nmt 'setuptools<81'
    joeynmt/bin/pip install --no-deps joeynmt==2.3.0

It reads pieces as words of a text; its vocabulary has one piece more, for the unknown. A batch is
cut by its own token count, rows x the longer side, as the pairs come: it does not sort by length.
It trains through its own `train`, unpatched but for a clock around its step.
"""

from pathlib import Path
from typing import Any

import torch
from scripts.race.job import Clock, Ids, Job, start
from torch import Tensor

PAD, BOS, EOS, CONTROLS = 1, 2, 3, 4  # joeynmt's; 0 is the unknown piece
NEVER = 10**9


class Names:
    """Our ids as joeynmt's words and numbers, and back."""

    def __init__(self, job: Job) -> None:
        ours = {PAD: job.pad_id, BOS: job.bos_id, EOS: job.eos_id}
        pieces = [i for i in range(job.shape["vocab_size"]) if i not in ours.values()]
        self.words = [str(i) for i in pieces]
        # The unknown piece, which no text has, is taken for a start piece.
        self.to_ours = torch.tensor([job.bos_id, *(ours[i] for i in (PAD, BOS, EOS)), *pieces])
        self.to_joey = torch.empty(job.shape["vocab_size"], dtype=torch.long)
        self.to_joey[self.to_ours[1:]] = torch.arange(1, len(self.to_ours))


def write_corpus(job: Job, names: Names) -> None:
    folder, pairs = Path(job.folder), job.read_pairs()
    (folder / "vocabulary").write_text("\n".join(names.words) + "\n")
    for part, count in (("train", None), ("dev", 2)):  # the latter must be there, and is not read
        for side in ("source", "target"):
            lines = (" ".join(map(str, ids)) for ids in pairs[side][:count])
            (folder / f"{part}.{side}").write_text("\n".join(lines) + "\n")


def configuration(job: Job) -> dict[str, Any]:
    folder, sizes = Path(job.folder), job.shape
    (folder / "model").mkdir()

    def side(lang: str) -> dict[str, Any]:
        words = str(folder / "vocabulary")
        return {"lang": lang, "level": "word", "max_length": -1, "voc_file": words}

    def stack(layers: int) -> dict[str, Any]:
        return {
            "type": "transformer",
            "num_layers": layers,
            "num_heads": sizes["num_heads"],
            "embeddings": {
                "embedding_dim": sizes["d_model"], "scale": True, "dropout": job.dropout,
            },
            "hidden_size": sizes["d_model"],
            "ff_size": sizes["d_ff"],
            "dropout": job.dropout,
            "layer_norm": "post",
        }  # fmt: skip

    return {
        "name": "race",
        "model_dir": str(folder / "model"),
        "use_cuda": job.device == "cuda",
        "random_seed": job.seed,
        "data": {
            "dataset_type": "plain",
            "train": str(folder / "train"),
            "dev": str(folder / "dev"),
            "src": side("source"),
            "trg": side("target"),
        },
        "testing": {},
        "training": {
            "normalization": "tokens",
            "label_smoothing": job.label_smoothing,
            "optimizer": "adam",
            "adam_betas": [0.9, 0.98],
            "learning_rate": job.lr,
            "learning_rate_min": 0.0,
            "learning_rate_warmup": job.lr_warmup,
            "scheduling": "warmupinversesquareroot",
            "clip_grad_norm": job.clip,
            "batch_size": job.tokens,
            "batch_type": "token",
            "epochs": NEVER,
            "validation_freq": NEVER,
            "logging_freq": 100,
        },
        "model": {
            "initializer": "xavier_uniform",
            "embed_initializer": "xavier_uniform",
            "bias_initializer": "zeros",
            "tied_embeddings": True,
            "tied_softmax": True,
            "encoder": stack(sizes["num_encoder_layers"]),
            "decoder": stack(sizes["num_decoder_layers"]),
        },
    }


def run(job: Job) -> None:
    from joeynmt import training
    from joeynmt.search import greedy

    names = Names(job)

    class Watched(training.TrainManager):  # type: ignore[misc]
        last: tuple[Tensor, Tensor] | None = None

        def train_and_validate(self, **data: Any) -> None:
            self.clock = Clock(job, self.model, self.translate)
            super().train_and_validate(**data)

        def _train_step(self, batch: Any) -> Any:
            # The update before is over only now.
            if self.last is not None and self.clock.update(*self.last):
                raise KeyboardInterrupt  # its way to end a training at any update
            self.last = names.to_ours[batch.src.cpu()], names.to_ours[batch.trg.cpu()]
            return super()._train_step(batch)

        def translate(self, source: Tensor) -> list[Ids]:
            ids = names.to_joey[source.cpu()].to(source.device)
            mask = (ids != PAD).unsqueeze(1)
            lengths = mask.sum(dim=2).flatten()
            memory, hidden, _, _ = self.model(
                return_type="encode", src=ids, src_length=lengths, src_mask=mask
            )
            found, _, _ = greedy(mask, job.longest, self.model, memory, hidden)
            return names.to_ours[found].tolist()  # type: ignore[no-any-return]

    write_corpus(job, names)
    training.TrainManager = Watched
    training.train(0, 1, configuration(job), skip_test=True)


if __name__ == "__main__":
    start(run)
