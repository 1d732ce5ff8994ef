"""Tokenizers learned from a handful of texts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from zhen.data import Tokenizer, TokenizerOptions


@dataclass(frozen=True)
class Lists:
    """Pairs as learning reads them."""

    sources: Sequence[str]
    targets: Sequence[str]

    def __len__(self) -> int:
        return len(self.sources)

    def texts(self, start: int, stop: int) -> tuple[list[str], list[str]]:
        return list(self.sources[start:stop]), list(self.targets[start:stop])


def learn(texts: Sequence[str], **options: Any) -> Tokenizer:
    """From texts of both languages; with `joint=False`, each side learns from all of them."""
    asked = TokenizerOptions(**options)
    return Tokenizer.train(Lists(texts, [""] * len(texts) if asked.joint else texts), asked)
