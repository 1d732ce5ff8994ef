"""From two sentences to the maps of what each position looks at, with pieces as labels.

Shapes: S source length, T target length, Q/K query/key length, H heads, L layers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from zhen.data.vocabulary import Vocabulary
from zhen.decoding import DecodeOptions
from zhen.errors import UserError
from zhen.model import attention_weights
from zhen.translator import Translator


@dataclass(frozen=True)
class AttentionMap:
    """One kind of attention over one pair of sentences, in all layers and heads.

    Args:
        title: which attention it is.
        queries: the pieces that look, Q labels.
        keys: the pieces that are looked at, K labels.
        following: of a decoder, the piece that comes after each query, Q labels; else None.
        weights: (L, H, Q, K) on the CPU; each row sums to 1.
    """

    title: str
    queries: list[str]
    keys: list[str]
    following: list[str] | None
    weights: Tensor

    def mean(self, layer: int | None = None, head: int | None = None) -> Tensor:
        """The weights (Q, K) of one layer and head, counted from 1; of all where it is None."""
        layers = self.weights if layer is None else self.weights[layer - 1 : layer]
        heads = layers if head is None else layers[:, head - 1 : head]
        return heads.mean(dim=(0, 1))


def read_sentence(
    translator: Translator, text: str, key: str, side: Literal["source", "target"]
) -> list[int]:
    """The ids of one sentence, without control pieces.

    Args:
        key: where the sentence was given, for the message.
        side: whose vocabulary cuts it.

    Raises:
        UserError: it is empty, several lines, or too long for the model.
    """
    text = text.strip()
    if not text:
        raise UserError(f"`{key}` is empty: give one sentence")
    if "\n" in text:
        lines = text.count("\n") + 1
        raise UserError(f"`{key}` has {lines} lines: give one sentence, on one line")
    vocabulary: Vocabulary = getattr(translator.tokenizer, side)
    (ids,) = vocabulary.encode([text])
    room = translator.model.max_positions - 1  # the end of a source and the start of a target
    if len(ids) > room:
        raise UserError(
            f"`{key}` has {len(ids)} pieces, but the model takes at most {room}: shorten it"
        )
    return ids


def best_translation(
    translator: Translator, source: Sequence[int], options: DecodeOptions
) -> list[int]:
    """The ids of the model's own translation, both sides without control pieces."""
    whole = torch.tensor([[*source, translator.tokenizer.eos_id]])
    ((best, *_),) = translator.hypotheses(whole, options)
    return best.ids


def look(
    translator: Translator, source: Sequence[int], target: Sequence[int]
) -> list[AttentionMap]:
    """The maps of the encoder, the decoder, and between the two.

    A row of the decoder is labelled with the piece that it reads, the start piece first; the piece
    that it helps to predict is the one that follows.

    Args:
        source: ids without control pieces, at most `max_positions` - 1.
        target: ids without control pieces, at most `max_positions`.
    """
    model, tokenizer = translator.model, translator.tokenizer
    source = [*source, tokenizer.eos_id]
    # A translation that filled every position ends without an end piece: its last is not read.
    target = [tokenizer.bos_id, *target, tokenizer.eos_id][: model.max_positions + 1]
    found = attention_weights(
        model,
        torch.tensor([source], device=translator.device),
        torch.tensor([target[:-1]], device=translator.device),
    )
    sources, targets = labels(tokenizer.source, source), labels(tokenizer.target, target)
    read, following = targets[:-1], targets[1:]
    return [
        AttentionMap("Encoder self-attention", sources, sources, None, found.encoder[:, 0].cpu()),
        AttentionMap(
            "Decoder masked self-attention", read, read, following, found.decoder[:, 0].cpu()
        ),
        AttentionMap("Cross-attention", read, sources, following, found.cross[:, 0].cpu()),
    ]


def labels(vocabulary: Vocabulary, ids: Sequence[int]) -> list[str]:
    """The pieces as people can see them: `␣` for a space, U+200B for what prints nothing."""
    return ["".join(map(_visible, piece)) for piece in vocabulary.pieces(ids)]


def _visible(character: str) -> str:
    if character == " ":
        return "␣"
    return character if character.isprintable() else f"U+{ord(character):04X}"
