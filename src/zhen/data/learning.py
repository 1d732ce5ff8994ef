"""How a vocabulary is learned from a corpus, which is read a few pairs at a time."""

import contextlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from tokenizers import Regex, models, pre_tokenizers, trainers
from tokenizers import Tokenizer as Backend

from zhen.data.progress import counted, underway
from zhen.data.unigram import learn_unigram
from zhen.data.vocabulary import (
    BYTES,
    CONTROLS,
    NORMALIZERS,
    UNK,
    WORDS,
    Normalization,
    Vocabulary,
)

# Pairs that are read together, and how far apart two may be for that.
BLOCK, GAP = 1000, 8


@dataclass(frozen=True)
class TokenizerOptions:
    """How the vocabulary is made.

    Args:
        kind: "bpe" (Sennrich et al. 2016), "unigram" (Kudo 2018), or "char": each character is a
            piece.
        vocab_size: pieces at most, control pieces and bytes included; where each side has its own
            vocabulary, of each, or {source: .., target: ..}.
        joint: one vocabulary for both languages, or one for each.
        byte_fallback: a character without a piece becomes its UTF-8 bytes. Without them it becomes
            <unk>, which reads as U+FFFD: only characters with a piece then come back as they were.
        character_coverage: the share of the training text whose characters get a piece, the most
            frequent ones first.
        min_frequency: a piece of several characters is learned only when seen this often.
        normalization: what is done to every text before it is cut; None leaves it as it is. "nfkc"
            writes a full-width comma as an ASCII one, among much else.
        dropout: probability of leaving out a merge of a BPE when a training pair is encoded
            (Provilkov et al. 2020).
        sample: learn from this many pairs at most, evenly spaced over the corpus; None is all.
        path: an existing tokenizer.json to use instead of learning one, or
            {source: .., target: ..}.

    Raises:
        ValueError: a number is out of range, or options do not go together.
    """

    kind: Literal["bpe", "unigram", "char"] = "bpe"
    vocab_size: int | dict[str, int] = 4000
    joint: bool = True
    byte_fallback: bool = True
    character_coverage: float = 1.0
    min_frequency: int = 2
    normalization: Normalization = None
    dropout: float = 0.0
    sample: int | None = 200_000
    path: str | dict[str, str] | None = None

    def __post_init__(self) -> None:
        if self.kind not in ("bpe", "unigram", "char"):
            raise ValueError(f"`kind` must be bpe, unigram or char, but is {self.kind!r}")
        if self.normalization not in (None, *NORMALIZERS):
            raise ValueError(
                f"`normalization` must be nfc, nfkc or null, but is {self.normalization!r}"
            )
        for name in ("vocab_size", "path"):
            value = getattr(self, name)
            if isinstance(value, dict) and set(value) != {"source", "target"}:
                raise ValueError(f"`{name}` must have source and target, but has {sorted(value)}")
        if self.joint and isinstance(self.vocab_size, dict):
            raise ValueError("`vocab_size` must be one number where `joint` is true")
        least = len(CONTROLS) + (len(BYTES) if self.byte_fallback else 1) + 1
        for size in self.vocab_sizes:
            if size < least:
                raise ValueError(f"`vocab_size` must be at least {least}, but is {size}")
        if not 0 < self.character_coverage <= 1:
            raise ValueError(
                "`character_coverage` must be above 0 and at most 1, but is"
                f" {self.character_coverage}"
            )
        if self.min_frequency < 1:
            raise ValueError(f"`min_frequency` must be at least 1, but is {self.min_frequency}")
        if not 0 <= self.dropout <= 1:
            raise ValueError(f"`dropout` must be from 0 to 1, but is {self.dropout}")
        if self.dropout and self.kind != "bpe" and self.path is None:
            raise ValueError(f"`dropout` leaves out merges of a bpe, but `kind` is {self.kind}")
        if self.sample is not None and self.sample < 1:
            raise ValueError(f"`sample` must be at least 1, but is {self.sample}")

    @property
    def vocab_sizes(self) -> tuple[int, int]:
        """Of the source and of the target."""
        if isinstance(self.vocab_size, dict):
            return self.vocab_size["source"], self.vocab_size["target"]
        return self.vocab_size, self.vocab_size


class Pairs(Protocol):
    """A corpus, as far as learning reads it."""

    def __len__(self) -> int: ...

    def texts(self, start: int, stop: int) -> tuple[list[str], list[str]]:
        """Sources and targets of the pairs from `start` to before `stop`."""
        ...


class Texts:
    """The texts of some pairs, to be read as often as needed and never all in memory.

    Args:
        pairs: where they are.
        rows: the numbers of the pairs to learn from, rising; None for all.
        sample: at most so many of them, evenly spaced.
        sides: 0 for sources, 1 for targets.
    """

    def __init__(
        self,
        pairs: Pairs,
        rows: NDArray[np.int64] | None,
        sample: int | None,
        sides: Sequence[int],
    ) -> None:
        there = len(pairs) if rows is None else len(rows)
        count = there if sample is None else min(there, sample)
        chosen = np.arange(count) * there // max(count, 1)
        self._pairs, self._sides = pairs, sides
        self._rows = chosen if rows is None else rows[chosen]

    def __iter__(self) -> Iterator[str]:
        total = len(self._rows) * len(self._sides)
        return counted(self._read(), "reading for the vocabulary", total)

    def _read(self) -> Iterator[str]:
        if not len(self._rows):
            return
        apart = np.diff(self._rows) > GAP
        apart[BLOCK - 1 :: BLOCK] = True
        for run in np.split(self._rows, np.flatnonzero(apart) + 1):
            first = int(run[0])
            texts = self._pairs.texts(first, int(run[-1]) + 1)
            for side in self._sides:
                for row in run:
                    yield texts[side][row - first]


def learn(texts: Iterable[str], options: TokenizerOptions, vocab_size: int) -> Vocabulary:
    """Learn one vocabulary, the same one in every process and with any number of threads.

    Args:
        texts: to learn from; must be readable more than once, so no iterator.
        options: `path`, `joint` and `sample` are not for here.
        vocab_size: pieces at most.
    """
    fixed = [*CONTROLS, *(BYTES if options.byte_fallback else [UNK])]
    room = vocab_size - len(fixed)
    if options.normalization is not None:
        texts = _Normalised(texts, options.normalization)
    characters = _frequent_characters(texts, room, options.character_coverage)
    # Controls and bytes are put into the vocabulary only here, and not as "special tokens" of the
    # library, which would look for them in the text.
    model: models.BPE | models.Unigram
    if options.kind == "unigram":
        words = _count_words(texts, set(characters))
        scored = learn_unigram(words, room, options.min_frequency)
        model = models.Unigram(
            [*((piece, 0.0) for piece in fixed), *scored],
            # For want of a better path through a word; written as <unk> or, below, in bytes.
            unk_id=len(CONTROLS),
            byte_fallback=options.byte_fallback,
        )
    else:
        pieces: list[str] = characters
        merges: list[tuple[str, str]] = []
        if options.kind == "bpe":
            pieces, merges = _learn_merges(texts, characters, room, options.min_frequency)
        model = models.BPE(
            vocab={piece: i for i, piece in enumerate([*fixed, *pieces])},
            merges=merges,
            byte_fallback=options.byte_fallback,
            unk_token=None if options.byte_fallback else UNK,
        )
    return Vocabulary.of(model, options.normalization)


def _learn_merges(
    texts: Iterable[str], characters: list[str], room: int, min_frequency: int
) -> tuple[list[str], list[tuple[str, str]]]:
    """The pieces, characters first, and the merges that make them."""
    learner = Backend(models.BPE())
    learner.pre_tokenizer = pre_tokenizers.Split(Regex(WORDS), "isolated")
    trainer = trainers.BpeTrainer(
        vocab_size=room,
        min_frequency=min_frequency,
        # Left alone, the library takes every character, even beyond `vocab_size`.
        initial_alphabet=characters,
        limit_alphabet=len(characters),
        show_progress=False,
    )
    with contextlib.ExitStack() as after:
        what = underway(f"learning up to {room - len(characters):,} merges")
        learner.train_from_iterator(_then(texts, lambda: after.enter_context(what)), trainer)
    learned = json.loads(learner.to_str())["model"]
    pieces = sorted(learned["vocab"], key=learned["vocab"].__getitem__)
    return pieces, [tuple(merge) for merge in learned["merges"]]


def _then(texts: Iterable[str], call: Callable[[], None]) -> Iterator[str]:
    """The texts, and a call when they have been read."""
    yield from texts
    call()


def _frequent_characters(texts: Iterable[str], room: int, coverage: float) -> list[str]:
    """Those that make up `coverage` of the texts, at most `room` of them, the frequent ones first.

    Equally frequent ones stand by code point, so that the choice is fixed.
    """
    found: Counter[str] = Counter()
    for text in texts:
        found.update(text)
    ranked = sorted(found, key=lambda character: (-found[character], character))[:room]
    counts = np.array([found[character] for character in ranked], dtype=np.int64)
    before = counts.cumsum() - counts  # of the text, what more frequent ones make up
    return [c for c, done in zip(ranked, before, strict=True) if done < coverage * found.total()]


def _count_words(texts: Iterable[str], characters: set[str]) -> Counter[str]:
    """How often each word was seen, or each part of one between characters that are not known."""
    splitter = pre_tokenizers.Split(Regex(WORDS), "isolated")
    found: Counter[str] = Counter()
    for text in texts:
        found.update(word for word, _ in splitter.pre_tokenize_str(text))
    known: Counter[str] = Counter()
    for word, count in found.items():
        for is_known, part in groupby(word, characters.__contains__):
            if is_known:
                known["".join(part)] += count
    return known


@dataclass(frozen=True)
class _Normalised:
    texts: Iterable[str]
    normalization: str

    def __iter__(self) -> Iterator[str]:
        normalizer = NORMALIZERS[self.normalization]()
        return map(normalizer.normalize_str, self.texts)
