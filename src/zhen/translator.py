"""Text to text: a model with its tokenizer and its languages, and how they live in a checkpoint.

Sentence -> pieces -> decoding -> pieces -> sentence, N lines in and N lines out, in order.
"""

import logging
import re
import warnings
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import accumulate, pairwise
from pathlib import Path
from textwrap import shorten
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from zhen.data.batching import plan_in_order
from zhen.data.ragged import pad
from zhen.data.scripts import is_chinese
from zhen.data.tokenizer import Tokenizer
from zhen.decoding import DecodeOptions, Hypothesis, generate
from zhen.errors import UserError, one_line
from zhen.model import Transformer
from zhen.model.averages import Weights, mean, put

log = logging.getLogger(__name__)

# With the brackets and quotes that close after it; the point of 3.5 or a.b ends nothing.
SENTENCE_END = re.compile(r"(?:[。！？；!?;]|\.(?![A-Za-z0-9]))+[”’」』）)\"']*")


@dataclass(frozen=True)
class Translation:
    """A text, and the score that ranked it (`DecodeOptions.length_penalty`)."""

    text: str
    score: float


@dataclass(frozen=True)
class Translator:
    """Translates lines with a trained model; one checkpoint file is enough to make one."""

    model: Transformer
    tokenizer: Tokenizer
    source_lang: str
    target_lang: str
    weights: str = "raw"  # raw, ema or average: see `zhen.training.averages`

    @classmethod
    def load(
        cls,
        path: str | Path,
        device: torch.device | str = "cpu",
        key: str = "ckpt",
        weights: Literal["raw", "ema", "average"] | None = None,
    ) -> "Translator":
        """Read a checkpoint. Nothing that the file names is imported or run.

        Args:
            key: what named the file, for messages.
            weights: as they were trained, or one of their averages; None: what its run scored.

        Raises:
            UserError: the file is missing, damaged, no checkpoint of this project, or has no such
                average.
        """
        content = read_checkpoint(Path(path), key)
        try:
            about = content["zhen"]
            model = Transformer(**about["model"])
            model.load_state_dict(
                {
                    name.removeprefix("model."): tensor
                    for name, tensor in content["state_dict"].items()
                    if name.startswith("model.")
                }
            )
            weights = weights or content.get("averages", {}).get("weights", "raw")
            if weights != "raw":
                put(_average(content.get("averages", {}), weights), model)
            if not all(tensor.isfinite().all() for tensor in model.state_dict().values()):
                raise ValueError("its weights are not all finite: the training diverged")
            tokenizer = Tokenizer.from_json(about["tokenizer"])
            sizes = {key: n for key, n in model.config.items() if key.endswith("vocab_size")}
            if tokenizer.vocab_sizes != sizes:
                raise ValueError("its tokenizer is of another model")
            languages = str(about["source_lang"]), str(about["target_lang"])
        except (KeyError, TypeError, AttributeError, ValueError, RuntimeError) as error:
            raise UserError(
                f"{key}: {path} is no checkpoint of zhen {version('zhen')}"
                f" ({type(error).__name__}: {shorten(one_line(error), 200)});"
                " give a file that `make train` wrote"
            ) from error
        return cls(model.to(device).eval(), tokenizer, *languages, weights)

    def description(self) -> dict[str, Any]:
        """All but the weights, as plain data: what `load` finds under "zhen"."""
        return {
            "version": version("zhen"),
            "model": self.model.config,
            "tokenizer": self.tokenizer.to_json(),
            "source_lang": self.source_lang,
            "target_lang": self.target_lang,
        }

    def translate(
        self, lines: Sequence[str], options: DecodeOptions, tokens: int = 4096
    ) -> list[str]:
        """The best translation of each line. See `n_best`."""
        return [found[0].text for found in self.n_best(lines, options, tokens)]

    def n_best(
        self,
        lines: Sequence[str],
        options: DecodeOptions,
        tokens: int = 4096,
        first_line: int = 1,
    ) -> list[list[Translation]]:
        """Translate each line, `options.num_return_sequences` times, best first.

        An empty line stays empty. A line longer than the model's positions is cut, at the end of
        a sentence where there is one, its parts are translated one by one, and a warning names
        the line; the score is then the sum of the parts'.

        Args:
            lines: raw text.
            options: how to decode.
            tokens: padded source pieces decoded together, counted once for each hypothesis.
            first_line: the number of the first line, for warnings.
        """
        parts: list[list[int]] = []
        owner: list[int] = []  # the line that a part belongs to
        for number, ids in enumerate(
            self.tokenizer.source.encode([line.strip() for line in lines])
        ):
            cut = self._cut(ids)
            if len(cut) > 1:
                log.warning(
                    "line %d has %d pieces, more than the model's %d positions: translated in %d"
                    " parts", number + first_line, len(ids) + 1, self.model.max_positions, len(cut),
                )  # fmt: skip
            parts += cut
            owner += [number] * len(cut)

        of_lines: list[list[list[Translation]]] = [[] for _ in lines]
        for number, of_part in zip(owner, self._decode_sorted(parts, options, tokens), strict=True):
            of_lines[number].append(of_part)
        return [self._join(of_line) for of_line in of_lines]

    @property
    def device(self) -> torch.device:
        return self.model.embedding.positions.device

    def hypotheses(self, source: Tensor, options: DecodeOptions) -> list[list[Hypothesis]]:
        """What `generate` finds for each row of `source`, ids (B, S) padded at the end."""
        return generate(
            self.model,
            source.to(self.device),
            options,
            bos_id=self.tokenizer.bos_id,
            eos_id=self.tokenizer.eos_id,
        )

    def decode(self, source: Tensor, options: DecodeOptions) -> list[list[Translation]]:
        """The translations of each row of `source`, as text, best first."""
        found = self.hypotheses(source, options)
        texts = iter(
            self.tokenizer.target.decode([each.ids for of_row in found for each in of_row])
        )
        # A newline in the output would shift every line after it.
        return [
            [Translation(" ".join(next(texts).split("\n")), each.score) for each in of_row]
            for of_row in found
        ]

    def _decode_sorted(
        self, parts: list[list[int]], options: DecodeOptions, tokens: int
    ) -> list[list[Translation]]:
        """Decode parts of similar length together, and give them back in their order."""
        found: list[list[Translation]] = [[] for _ in parts]
        if parts:
            lengths = np.array([[len(part), 0] for part in parts])
            for batch in plan_in_order(lengths, tokens // options.hypotheses):
                source = pad([parts[i] for i in batch], self.tokenizer.pad_id)
                for i, of_part in zip(batch, self.decode(source, options), strict=True):
                    found[i] = of_part
        return found

    def _join(self, parts: list[list[Translation]]) -> list[Translation]:
        """The translations of a line from those of its parts: best with best, and so on."""
        space = "" if is_chinese(self.target_lang) else " "
        return [
            Translation(space.join(part.text for part in of_rank), sum(p.score for p in of_rank))
            for of_rank in (zip(*parts, strict=False) if parts else [()])
        ]

    def _cut(self, ids: list[int]) -> list[list[int]]:
        """Parts that fit the model, each with its end piece; none for an empty line."""
        room = max(self.model.max_positions - 1, 1)  # the end piece takes one
        parts = []
        while ids:
            end = len(ids) if len(ids) <= room else self._last_break(ids, room)
            parts.append([*ids[:end], self.tokenizer.eos_id])
            ids = ids[end:]
        return parts

    def _last_break(self, ids: list[int], room: int) -> int:
        """Where to cut pieces that are more than `room`, above 0 and at most `room`.

        After the last sentence that fits; where none does, before the last whole character.
        """
        # Between whole characters, and a little further: what follows a point tells what it is.
        vocabulary, last = self.tokenizer.source, min(room + 4, len(ids))
        bounds = [i for i in range(last + 1) if i == len(ids) or vocabulary.begins(ids[i])]
        texts = vocabulary.decode([ids[start:end] for start, end in pairwise(bounds)])
        offsets = accumulate(map(len, texts))
        cuts = {at: end for at, end in zip(offsets, bounds[1:], strict=True) if end <= room}
        ends = [match.end() for match in SENTENCE_END.finditer("".join(texts))]
        fitting = [cuts[at] for at in ends if at in cuts]
        return max(fitting or cuts.values(), default=room)


def read_checkpoint(path: Path, key: str = "ckpt") -> dict[str, Any]:
    """The content of a checkpoint file: plain data and tensors, on the CPU.

    Raises:
        UserError: the file is missing, truncated, or holds anything else.
    """
    try:
        file = path.open("rb")
    except FileNotFoundError:
        raise UserError(f"{key}: {path} does not exist; give a checkpoint's path") from None
    except OSError as error:
        raise UserError(f"{key}: cannot read {path}: {error.strerror}") from error
    with file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a strange pickle, which is refused anyway
        try:
            content = torch.load(file, map_location="cpu", weights_only=True)
        except Exception as error:  # whatever the unpickler meets; OSError for a truncated file
            kind = "is damaged" if zipfile.is_zipfile(path) else "is truncated or no checkpoint"
            raise UserError(
                f"{key}: {path} {kind}; nothing in it was run; give a file that `make train` wrote"
            ) from error
    if not isinstance(content, dict):
        raise UserError(f"{key}: {path} holds a {type(content).__name__}, not a checkpoint")
    return content


def _average(kept: dict[str, Any], weights: str) -> Weights:
    """One of the averages that a checkpoint keeps under "averages".

    Raises:
        UserError: it is not there.
    """
    last = list(kept.get("last", {}).values())
    if weights == "average" and last:
        return mean(last)
    if weights == "ema" and "ema" in kept:
        return dict(kept["ema"])
    there = ["raw", *(["ema"] if "ema" in kept else []), *(["average"] if last else [])]
    raise UserError(
        f"weights={weights}: the checkpoint has only {', '.join(there)}; the averages are what a"
        " training with callbacks.averages.ema_decay or callbacks.averages.last keeps"
    )


def pick_device(name: str) -> torch.device:
    """The device called auto, cpu, gpu or mps; "auto" is the GPU if there is one.

    Raises:
        UserError: this machine has no such device.
    """
    if name == "auto":
        name = "gpu" if torch.cuda.is_available() else "cpu"
    device = torch.device("cuda" if name == "gpu" else name)
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = shorten(str(error).splitlines()[0], 100)
        raise UserError(f"device: there is no {name} here ({reason}); try device=cpu") from error
    return device
