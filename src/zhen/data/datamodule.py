"""The LightningDataModule: reads and encodes the splits, and makes the loaders."""

import contextlib
import hashlib
import logging
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import lightning as L
import numpy as np
from numpy.typing import NDArray
from torch.utils.data import DataLoader, Sampler

from zhen.data.batching import plan_batches, plan_in_order, share
from zhen.data.corpus import Corpus, read_corpus
from zhen.data.pairs import Batch, EncodedPairs
from zhen.data.tokenizer import Tokenizer, TokenizerOptions
from zhen.errors import UserError
from zhen.files import SAFE_NAME, make_directory, write_atomic

log = logging.getLogger(__name__)

# Part of every cache key; raise it when encoding or the table's form changes.
CACHE_VERSION = 1


@dataclass(frozen=True)
class BatchOptions:
    """How many padded tokens a batch may hold: rows x longest side.

    Raises:
        ValueError: a budget is below 1.
    """

    tokens: int = 2048
    eval_tokens: int = 8192

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if value < 1:
                raise ValueError(f"`{name}` must be at least 1, but is {value}")


class TranslationData(L.LightningDataModule):
    """Pairs of sentences for training, validation and test.

    Args:
        test: TSV to score, or several by name, each scored apart. Names are letters, digits, `.`,
            `_` and `-`.
        languages: what the columns of the TSVs hold, in order.
        source_lang: the language to translate from.
        batch: token budgets.
        cache_dir: where the vocabulary and the encoded pairs are kept.
        tokenizer: how the vocabulary is made, or one that exists.
        train: TSV of the pairs to learn from; the vocabulary is learned from them alone. None, as
            `val`, where a model is only tested.
        val: TSV that chooses the best checkpoint.
        target_lang: the language to translate into; None is the other one.
        max_length: longest side of a training pair, in pieces; longer pairs are dropped and
            counted. Validation and test are never cut.
        num_workers: processes of each loader.
        seed: of the order of the training pairs.
        key: what stands before `train`, `val` and `test` in the messages of this command.

    Raises:
        ValueError: the languages do not fit the columns, or a number is out of range.
    """

    def __init__(
        self,
        *,
        test: str | dict[str, str],
        languages: list[str],
        source_lang: str,
        batch: BatchOptions,
        cache_dir: str,
        tokenizer: TokenizerOptions | Tokenizer,
        train: str | None = None,
        val: str | None = None,
        target_lang: str | None = None,
        max_length: int = 128,
        num_workers: int = 0,
        seed: int = 0,
        key: str = "data.",
    ) -> None:
        super().__init__()
        if len(languages) != 2 or languages[0] == languages[1]:
            raise ValueError(f"`languages` must be two different languages, but is {languages}")
        if source_lang not in languages:
            raise ValueError(f"`source_lang` must be one of {languages}, but is {source_lang!r}")
        other = languages[1 - languages.index(source_lang)]
        if target_lang not in (None, other):
            raise ValueError(f"`target_lang` must be {other!r}, but is {target_lang!r}")
        if max_length < 1:
            raise ValueError(f"`max_length` must be at least 1, but is {max_length}")
        if num_workers < 0:
            raise ValueError(f"`num_workers` must be at least 0, but is {num_workers}")
        # A pair of `max_length` pieces, with its control piece, must fit into a batch.
        if batch.tokens <= max_length:
            raise ValueError(
                f"`batch.tokens` must be above `max_length` ({max_length}), but is {batch.tokens}"
            )
        self.source_lang, self.target_lang = source_lang, other
        self._languages = languages
        self._key = key
        self._files = {"train": train or "", "val": val or ""}
        files = {"test": test} if isinstance(test, str) else test
        self._test_files = {str(part): file for part, file in files.items()}
        if not self._test_files:
            raise ValueError("`test` must name at least one file, but is empty")
        for part in self._test_files:
            # A part names metrics and files.
            if not SAFE_NAME.fullmatch(part) or part in self._files:
                raise ValueError(
                    "a part of `test` must be named with letters, digits, `.`, `_` and `-`, and"
                    f" neither train nor val, but is {part!r}"
                )
        self._max_length = max_length
        self._batch = batch
        self._cache_dir = Path(cache_dir)
        self._num_workers = num_workers
        self._seed = seed
        if isinstance(tokenizer, TokenizerOptions) and tokenizer.dropout:
            raise ValueError("`tokenizer.dropout` is not there yet for training: take 0")
        if isinstance(tokenizer, TokenizerOptions) and tokenizer.path is not None:
            tokenizer = Tokenizer.load(tokenizer.path, tokenizer.dropout)
        self._tokenizer = tokenizer
        self._corpora: dict[str, Corpus] = {}  # read, not yet encoded
        self._splits: dict[str, EncodedPairs] = {}
        self.fingerprint: dict[str, str] = {}  # of each split read, for the run's provenance

    @property
    def tokenizer(self) -> Tokenizer:
        """The vocabulary; trained on the training split at the first use."""
        if isinstance(self._tokenizer, TokenizerOptions):
            self._tokenizer = self._train_tokenizer(self._tokenizer)
        return self._tokenizer

    @property
    def test_parts(self) -> list[str]:
        """Names of the test sets, in order."""
        return list(self._test_files)

    def split(self, name: str) -> EncodedPairs:
        """The pairs of "train", "val" or a test part, read and encoded at the first use."""
        if name not in self._splits:
            tokenizer = self.tokenizer  # first: it may have to read the training pairs
            corpus = self.read(name)
            key, file = self._key_and_file(name)
            log.info("%s: %d pairs from %s", key, len(corpus), file)
            digest = hashlib.sha256()
            for part in (str(CACHE_VERSION), corpus.fingerprint, tokenizer.to_json()):
                digest.update(part.encode())
            path = self._cache_dir / "pairs" / digest.hexdigest()[:32]
            self._splits[name] = EncodedPairs.cached(corpus, tokenizer, path)
            del self._corpora[name]
        return self._splits[name]

    def read(self, name: str) -> Corpus:
        """The sentences of a split not yet encoded.

        Raises:
            UserError: the file is missing or faulty.
        """
        if name not in self._corpora:
            key, file = self._key_and_file(name)
            if not file:
                raise UserError(f"`{key}` must be the path of a TSV, but is empty")
            corpus = read_corpus(
                Path(file),
                key=key,
                languages=self._languages,
                source_lang=self.source_lang,
                target_lang=self.target_lang,
            )
            self._corpora[name] = corpus
            self.fingerprint[name] = corpus.fingerprint
        return self._corpora[name]

    def check_positions(self, name: str, max_positions: int) -> None:
        """Refuse a pair for which a model has too few positions.

        Raises:
            UserError: names the line.
        """
        lengths = self.split(name).lengths.max(axis=1)
        if name == "train":  # longer ones will be dropped
            lengths[lengths > self._max_length + 1] = 0
        too_long = (lengths > max_positions).nonzero()[0]
        if len(too_long):
            index = too_long[0]
            key, file = self._key_and_file(name)
            remedy = "raise model.max_positions" if self._key else "train a model with more"
            raise UserError(
                f"{key}: {file}:{index + 1}: a sentence has {lengths[index]} pieces, but the model"
                f" only {max_positions} positions: shorten it or {remedy}"
            )

    def train_dataloader(self) -> "DataLoader[Batch]":
        pairs = self.split("train")
        kept = (pairs.lengths.max(axis=1) <= self._max_length + 1).nonzero()[0]
        if len(kept) < len(pairs):
            log.warning(
                "data.train: %d of %d pairs are longer than data.max_length=%d pieces: dropped",
                len(pairs) - len(kept), len(pairs), self._max_length,
            )  # fmt: skip
        if not len(kept):
            raise UserError(
                f"`data.max_length`: no training pair has at most {self._max_length} pieces a side"
            )
        plan = TrainingPlan(
            pairs.lengths, kept, self._batch.tokens, self._seed, *self._rank_and_world()
        )
        return self._loader(pairs, plan)

    def val_dataloader(self) -> "DataLoader[Batch]":
        return self._eval_loader("val")

    def test_dataloader(self) -> list["DataLoader[Batch]"]:
        return [self._eval_loader(name) for name in self._test_files]

    def _eval_loader(self, name: str) -> "DataLoader[Batch]":
        pairs = self.split(name)
        # A pair alone may be longer than the budget: it makes a batch of its own.
        budget = max(self._batch.eval_tokens, int(pairs.lengths.max()))
        rank, world_size = self._rank_and_world()
        plan = share(plan_in_order(pairs.lengths, budget), rank, world_size)
        return self._loader(pairs, plan)

    def _loader(
        self, pairs: EncodedPairs, plan: "TrainingPlan | list[NDArray[np.int64]]"
    ) -> "DataLoader[Batch]":
        # batch_size=None: an item of the plan is a whole batch, and the dataset makes it at once.
        return DataLoader(
            pairs,
            batch_size=None,
            sampler=plan,
            num_workers=self._num_workers,
            persistent_workers=self._num_workers > 0,
        )

    def _rank_and_world(self) -> tuple[int, int]:
        if self.trainer is None:
            return 0, 1
        return self.trainer.global_rank, self.trainer.world_size

    def _key_and_file(self, name: str) -> tuple[str, str]:
        if name in self._files:
            return f"{self._key}{name}", self._files[name]
        part = "" if name == "test" else f".{name}"
        return f"{self._key}test{part}", self._test_files[name]

    def _train_tokenizer(self, options: TokenizerOptions) -> Tokenizer:
        """Learn the vocabulary from the training pairs, or take what an earlier run learned."""
        corpus = self.read("train")
        digest = hashlib.sha256(f"{CACHE_VERSION} {options} {corpus.fingerprint}".encode())
        path = self._cache_dir / "tokenizers" / f"{digest.hexdigest()[:32]}.json"
        with contextlib.suppress(UserError):  # not there yet, or damaged
            return Tokenizer.load(path)
        tokenizer = Tokenizer.train(corpus, options)
        make_directory(path.parent, key="paths.cache")
        write_atomic(path, tokenizer.to_json(), key="paths.cache")
        return Tokenizer.load(path)


class TrainingPlan(Sampler[NDArray[np.int64]]):
    """The batches of one rank, another plan each epoch; Lightning calls `set_epoch`."""

    def __init__(
        self,
        lengths: NDArray[np.int64],
        kept: NDArray[np.int64],
        tokens: int,
        seed: int,
        rank: int,
        world_size: int,
    ) -> None:
        self._lengths, self._kept = lengths, kept
        self._tokens, self._seed = tokens, seed
        self._rank, self._world_size = rank, world_size
        self.set_epoch(0)

    def set_epoch(self, epoch: int) -> None:
        plan = plan_batches(self._lengths[self._kept], self._tokens, self._seed, epoch)
        self._batches = share(plan, self._rank, self._world_size)

    def __iter__(self) -> Iterator[NDArray[np.int64]]:
        return iter([self._kept[batch] for batch in self._batches])

    def __len__(self) -> int:
        return len(self._batches)
