"""The vocabularies of source and target: one for both languages, or one for each."""

import contextlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from zhen.data.cache import entry, key_of
from zhen.data.cleaning import Cleaned
from zhen.data.corpus import Corpus
from zhen.data.learning import Pairs, Texts, TokenizerOptions, learn
from zhen.data.vocabulary import Vocabulary
from zhen.errors import UserError

# Part of every key; raise it when others would be learned from the same pairs.
VERSION = 2
FILE = "tokenizer.json"
SIDES = ("source", "target")


@dataclass(frozen=True)
class Tokenizer:
    """Cuts each side with its vocabulary; padding, start and end have the same ids in both.

    Args:
        source: cuts sources.
        target: cuts targets; the same object where both languages share it.
    """

    source: Vocabulary
    target: Vocabulary

    pad_id, bos_id, eos_id = Vocabulary.pad_id, Vocabulary.bos_id, Vocabulary.eos_id

    @property
    def joint(self) -> bool:
        """Whether both languages share one vocabulary."""
        return self.source is self.target

    @property
    def vocab_sizes(self) -> dict[str, int]:
        """What a `Transformer` must know of it."""
        sizes = {"vocab_size": len(self.target)}
        return sizes if self.joint else {**sizes, "source_vocab_size": len(self.source)}

    @classmethod
    def train(
        cls, pairs: Pairs, options: TokenizerOptions, rows: NDArray[np.int64] | None = None
    ) -> "Tokenizer":
        """Learn from a corpus.

        Args:
            pairs: the corpus; it is read twice, a few pairs at a time.
            options: how; `path` is for `load`.
            rows: the numbers of the pairs to learn from, rising; None for all.
        """

        def learned(size: int, *sides: int) -> Vocabulary:
            return learn(Texts(pairs, rows, options.sample, sides), options, size)

        source_size, target_size = options.vocab_sizes
        if options.joint:
            vocabulary = learned(target_size, 0, 1)
            return cls(vocabulary, vocabulary)
        return cls(learned(source_size, 0), learned(target_size, 1))

    @classmethod
    def cached(
        cls,
        corpus: Corpus,
        cleaned: Cleaned,
        options: TokenizerOptions,
        cache_dir: Path,
        *,
        what: str,
    ) -> "Tokenizer":
        """What `train` learns from the pairs that cleaning leaves, learned once and kept.

        Args:
            corpus: the training pairs.
            cleaned: those of them to learn from.
            options: how.
            cache_dir: the cache.
            what: the step, for messages.

        Raises:
            UserError: the cache cannot be written.
        """

        def make(folder: Path) -> None:
            made = cls.train(corpus, options, cleaned.rows)
            (folder / FILE).write_text(made.to_json(), encoding="utf-8")

        key = key_of(VERSION, options, cleaned.fingerprint)
        return cls.load(entry(cache_dir / "tokenizers", key, make, what=what) / FILE)

    @classmethod
    def load(cls, path: str | Path | Mapping[str, str], dropout: float = 0.0) -> "Tokenizer":
        """Read what `to_json` wrote, or a file for each side.

        Args:
            path: one file, or the tokenizer.json of "source" and that of "target".
            dropout: what it will be asked for; above 0 it needs the merges of a BPE.

        Raises:
            UserError: a file is missing, is no tokenizer of this project, or has no merges.
        """
        if isinstance(path, Mapping):
            key = "tokenizer.path."
            sides = [_read(path[side], Vocabulary.from_json, key + side) for side in SIDES]
            tokenizer = cls(*sides)
        else:
            tokenizer = _read(path, cls.from_json, "tokenizer.path")
        if dropout and not (tokenizer.source.has_merges and tokenizer.target.has_merges):
            raise UserError(
                f"tokenizer.path: {path} has no merges, of which `tokenizer.dropout` leaves out"
                " some: take dropout=0"
            )
        return tokenizer

    @classmethod
    def from_json(cls, text: str) -> "Tokenizer":
        """The tokenizer that `to_json` wrote.

        Raises:
            ValueError: see `Vocabulary.from_json`.
        """
        content = None
        with contextlib.suppress(ValueError):  # `Vocabulary` says what is wrong
            content = json.loads(text)
        if isinstance(content, dict) and set(content) == set(SIDES):
            return cls(*(Vocabulary.from_json(json.dumps(content[side])) for side in SIDES))
        vocabulary = Vocabulary.from_json(text)
        return cls(vocabulary, vocabulary)

    def to_json(self) -> str:
        """All of it as text: the library's tokenizer.json, or {source: that, target: that}."""
        if self.joint:
            return self.target.to_json()
        return f'{{"source": {self.source.to_json()}, "target": {self.target.to_json()}}}'


T = TypeVar("T")


def _read(path: str | Path, parse: Callable[[str], T], key: str) -> T:
    try:
        return parse(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{key}: cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise UserError(f"{key}: {path}: {error}") from error
