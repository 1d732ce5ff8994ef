"""The LightningDataModule: reads, cleans and encodes the splits, and makes the loaders."""

import contextlib
import logging
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import lightning as L
import numpy as np
import torch
from torch.utils.data import DataLoader

from zhen.data.batching import EpochPlan, Indices, Part, plan_epoch, plan_in_order, taken_of
from zhen.data.checks import WRONG_WAY_ROUND, script
from zhen.data.cleaning import Cleaned, CleanOptions, listed
from zhen.data.corpus import Corpus
from zhen.data.files import Files
from zhen.data.learning import TokenizerOptions
from zhen.data.pairs import Batch, EncodedPairs
from zhen.data.progress import underway
from zhen.data.sampler import TrainingSampler
from zhen.data.source import Reader, Source
from zhen.data.splits import Size, Split, Splits
from zhen.data.tokenizer import Tokenizer
from zhen.data.workers import leave_signals_to_main
from zhen.errors import UserError, one_line

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class BatchOptions:
    """How many padded pieces a batch may hold: rows x (longest source + longest target).

    Args:
        tokens: in training, never exceeded.
        eval_tokens: in validation and test, where a pair alone may be longer.

    Raises:
        ValueError: a budget is below 1.
    """

    tokens: int = 4096
    eval_tokens: int = 16384

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if value < 1:
                raise ValueError(f"`{name}` must be at least 1, but is {value}")


class TranslationData(L.LightningDataModule):
    """Pairs of sentences for training, validation and test.

    Args:
        languages: the two languages; the columns of a file without names, in order.
        source_lang: the language to translate from.
        batch: token budgets.
        cache_dir: where corpora, vocabularies and encoded pairs are kept.
        tokenizer: how the vocabulary is made, or one that exists.
        train: the pairs to learn from, as `reader` understands it; the vocabulary is learned from
            them alone. None, as `val`, where a model is only tested.
        val: the pairs that choose the best checkpoint; None: `val_size` of the training pairs.
        test: the pairs to score, or several by name, each scored apart; None: `test_size` of the
            training pairs. Names are letters, digits, `.`, `_` and `-`.
        val_size: pairs (int) or share (float) of the training pairs to validate with instead, for
            `val=None`; None: a twentieth, a thousand at most. Pairs that share a sentence stay
            together, see `zhen.data.holdout`.
        test_size: the same for `test=None`.
        reader: finds the pairs that a value names; None: files with the columns `languages`.
        clean: what is dropped from the training pairs.
        target_lang: the language to translate into; None is the other one.
        max_length: longest side of a training pair, in pieces; longer pairs are dropped and
            counted. Validation and test are never cut.
        num_workers: processes of each loader.
        seed: of the order of the training pairs.
        dropout: BPE-dropout of the training pairs, where `tokenizer` is one that exists.
        prefix: what stands before `train`, `val` and `test` in the messages of this command.

    Raises:
        ValueError: the languages do not fit, a split is given twice, or a number is out of range.
    """

    def __init__(
        self,
        *,
        languages: list[str],
        source_lang: str,
        batch: BatchOptions,
        cache_dir: str,
        tokenizer: TokenizerOptions | Tokenizer,
        train: Split | None = None,
        val: Split | None = None,
        test: Split | dict[str, Split] | None = None,
        val_size: Size = None,
        test_size: Size = None,
        reader: Reader | None = None,
        clean: CleanOptions = CleanOptions(),  # noqa: B008, it is frozen
        target_lang: str | None = None,
        max_length: int = 128,
        num_workers: int = 0,
        seed: int = 0,
        dropout: float = 0.0,
        prefix: str = "data.",
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
        # The longest pair, each side with its control piece, must fit into a batch.
        if batch.tokens < (least := 2 * (max_length + 1)):
            raise ValueError(
                f"`batch.tokens` must be at least {least}, two sides of `max_length` ({max_length})"
                f" pieces with their ends, but is {batch.tokens}"
            )
        self.source_lang, self.target_lang = source_lang, other
        self._languages = languages
        self._prefix = prefix
        self._splits = Splits(
            train=train,
            val=val,
            test=test,
            val_size=val_size,
            test_size=test_size,
            reader=Files() if reader is None else reader,
            languages=languages,
            source_lang=source_lang,
            prefix=prefix,
        )
        self._clean = clean
        self._max_length = max_length
        self._batch = batch
        self._cache_dir = Path(cache_dir)
        self._num_workers = num_workers
        self._seed = seed
        self._dropout = tokenizer.dropout if isinstance(tokenizer, TokenizerOptions) else dropout
        if isinstance(tokenizer, TokenizerOptions) and tokenizer.path is not None:
            tokenizer = Tokenizer.load(tokenizer.path, tokenizer.dropout)
        self._tokenizer = tokenizer
        self._corpora: dict[str, Corpus] = {}
        self._encoded: dict[str, EncodedPairs] = {}
        self._start = 0, 0
        self._done: Sequence[Part] = ()
        self.fingerprint: dict[str, str] = {}  # of each split read, for the run's provenance

    @property
    def test_parts(self) -> list[str]:
        """Names of the test sets, in order."""
        return self._splits.test_parts

    @property
    def all_splits(self) -> list[str]:
        """Names of all splits of a training, in order."""
        return ["train", "val", *self.test_parts]

    def key(self, name: str) -> str:
        """The configuration key of a split, for messages."""
        return self._splits.key(name)

    def given(self) -> dict[str, Source]:
        """Where the pairs lie of the splits that were given, by the key of each; nothing is read.

        Raises:
            UserError: nothing is there.
        """
        return {self._splits.key(name): source for name, source in self._splits.given().items()}

    def read(self, name: str) -> Corpus:
        """The sentences of "train", "val" or a test part, read at the first use.

        Raises:
            UserError: there are none, or a line is no pair.
        """
        if name not in self._corpora:
            key = self._splits.key(name)
            corpus = self._corpus(self._splits.source(name, self._corpus), key)
            if len(corpus.empty) and not (name == "train" and self._clean.empty):
                drop = f", or drop such pairs: {self._prefix}clean.empty=true"
                raise UserError(
                    f"{key}: {self._empty_side(corpus)}; write the sentence or delete the line"
                    + (drop if name == "train" else "")
                )
            self._corpora[name] = corpus
            self.fingerprint[name] = corpus.fingerprint
        return self._corpora[name]

    @cached_property
    def cleaned(self) -> Cleaned:
        """The training pairs that `clean` leaves, and what it dropped.

        Raises:
            UserError: it leaves none.
        """
        return Cleaned.cached(
            self.read("train"),
            self._clean,
            self._cache_dir,
            what=f"{self._splits.key('train')}: cleaning",
            key=f"{self._prefix}clean",
        )

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The vocabulary; learned at the first use from the training pairs that cleaning leaves."""
        options = self._tokenizer
        if isinstance(options, Tokenizer):
            return options
        what = f"{self._splits.key('train')}: vocabulary"
        corpus = self.read("train")
        tokenizer = Tokenizer.cached(corpus, self.cleaned, options, self._cache_dir, what=what)
        if self._dropout and not (tokenizer.source.has_merges and tokenizer.target.has_merges):
            raise UserError(
                f"`tokenizer.dropout` leaves out merges, but a vocabulary of {options.vocab_size}"
                " pieces has none here: raise tokenizer.vocab_size, or take dropout=0"
            )
        return tokenizer

    def split(self, name: str) -> EncodedPairs:
        """The pairs of "train", "val" or a test part, read and encoded at the first use.

        Those of "train" are the ones that cleaning and `max_length` leave.

        Raises:
            UserError: there are none, or a line is no pair.
        """
        if name in self._encoded:
            return self._encoded[name]
        tokenizer = self.tokenizer  # first: it may have to read the training pairs
        corpus, key = self.read(name), self._splits.key(name)
        cleaned = self.cleaned if name == "train" else None
        pairs = EncodedPairs.cached(
            corpus,
            tokenizer,
            self._cache_dir,
            cleaned=cleaned,
            max_length=None if cleaned is None else self._max_length,
            what=f"{key}: encoding",
        )
        source = self._splits.source(name, self._corpus)
        log.info("%s: %s pairs from %s", key, f"{len(corpus):,}", source.name)
        if name == "train" and (odd := self._in_other_scripts(corpus)):
            log.warning(
                "%s: of %s pairs that were looked at, %s are not in the scripts of %s and %s: %s",
                key, *odd, self.source_lang, self.target_lang, WRONG_WAY_ROUND,
            )  # fmt: skip
        if changed := listed(pairs.changed):
            log.info("%s: pairs changed before they are cut: %s", key, changed)
        if len(pairs) < len(corpus):
            assert cleaned is not None
            long = f"longer than data.max_length={self._max_length} pieces"
            counts = {**cleaned.counts, long: pairs.too_long}
            if not len(pairs):
                raise UserError(
                    f"`data.max_length`: no training pair has at most {self._max_length} pieces a"
                    f" side; dropped: {listed(counts)}"
                )
            log.warning(
                "%s: %s pairs dropped (%s), %s kept",
                key, f"{len(corpus) - len(pairs):,}", listed(counts), f"{len(pairs):,}",
            )  # fmt: skip
        self._encoded[name] = pairs
        return pairs

    def _in_other_scripts(self, corpus: Corpus) -> tuple[int, int] | None:
        """Pairs looked at, evenly spread, and those not in the two scripts; None unless most."""
        some = np.unique(np.linspace(0, len(corpus) - 1, min(len(corpus), 200)).astype(int))
        found = 0
        for _, *sides in corpus.chunks(some):
            for source, target in zip(*sides, strict=True):
                pair = (self.source_lang, source), (self.target_lang, target)
                found += script(pair, least=0.3) is not None
        return (len(some), found) if 2 * found > len(some) else None

    def check_positions(self, name: str, max_positions: int) -> None:
        """Refuse a pair for which a model has too few positions.

        Raises:
            UserError: names the line.
        """
        pairs = self.split(name)
        lengths = pairs.lengths.max(axis=1)
        too_long = (lengths > max_positions).nonzero()[0]
        if len(too_long):
            index = int(too_long[0])
            remedy = "raise model.max_positions" if self._prefix else "train a model with more"
            raise UserError(
                f"{self._splits.key(name)}: {pairs.where(index)}: a sentence has {lengths[index]}"
                f" pieces, but the model only {max_positions} positions: shorten it or {remedy}"
            )

    @property
    def target_tokens(self) -> int:
        """Real target pieces of an epoch, each with its end piece, over all ranks."""
        return int(self.split("train").lengths[:, 1].sum(dtype=np.int64))

    def train_dataloader(self) -> "DataLoader[Batch]":
        trainer = self.trainer
        epoch = trainer.current_epoch if trainer else 0
        if not self._dropout:
            # After a restart Lightning asks before it knows its epoch. With BPE-dropout it asks
            # again when it does, and the first epoch tells it the length of the schedule.
            epoch = max(self._start[0], epoch)
        pairs = self._training_pairs(epoch)

        def plan(epoch: int) -> EpochPlan:
            with underway(f"{self._splits.key('train')}: planning the batches of an epoch"):
                return self._plan(pairs, epoch, self._done if epoch == self._start[0] else ())

        with self._planning("train"):
            first = self._start[1] if epoch == self._start[0] else 0
            rank, _ = self._rank_and_world()
            return self._loader(pairs, TrainingSampler(plan, rank, epoch=epoch, first=first))

    def _plan(self, pairs: EncodedPairs, epoch: int, done: Sequence[Part]) -> EpochPlan:
        trainer = self.trainer
        return plan_epoch(
            pairs.lengths,
            tokens=self._batch.tokens,
            seed=self._seed,
            epoch=epoch,
            world_size=self._rank_and_world()[1],
            accumulation=trainer.accumulate_grad_batches if trainer else 1,
            limit=trainer.limit_train_batches if trainer else 1.0,
            done=done,
        )

    def _training_pairs(self, epoch: int) -> EncodedPairs:
        """Those of an epoch, which BPE-dropout cuts in its own way."""
        pairs = self.split("train")
        if not self._dropout:
            return pairs
        if self.trainer is not None:
            # Lightning will come back for the loader of the next epoch.
            self.trainer.reload_dataloaders_every_n_epochs = 1  # type: ignore[attr-defined]
        rng = np.random.default_rng((self._seed, epoch))
        try:
            # Not in the cache: ranks, and runs that share one, may be in different epochs.
            self._cut = tempfile.TemporaryDirectory(prefix="zhen-epoch-")
            return pairs.cut_anew(Path(self._cut.name), self._dropout, rng)
        except OSError as error:
            raise UserError(
                f"tokenizer.dropout: cannot keep the pairs of an epoch in {tempfile.gettempdir()}:"
                f" {error.strerror or one_line(error)}; make room, or choose another place with"
                " TMPDIR"
            ) from error

    def start(self, epoch: int, batch: int, done: Sequence[Part] = ()) -> None:
        """Let the next training loader begin with this batch, without reading those before it.

        Args:
            epoch: counted from 0.
            batch: counted from 0.
            done: what other plans have done of that epoch: see `rest`.
        """
        self._start, self._done = (epoch, batch), done

    def rest(self, epoch: int, done: Sequence[Part]) -> range:
        """The batches of a rank that are left of an epoch after other plans have done a part."""
        with self._planning("train"):
            plan = self._plan(self._training_pairs(epoch), epoch, done)
        limit = self.trainer.limit_train_batches if self.trainer else 1.0
        return range(plan.first, taken_of(len(plan), limit))

    def state_dict(self) -> dict[str, Any]:
        """What a run that goes on must find again."""
        return {"fingerprint": dict(self.fingerprint)}

    def val_dataloader(self) -> "DataLoader[Batch]":
        return self._eval_loader("val")

    def test_dataloader(self) -> list["DataLoader[Batch]"]:
        return [self._eval_loader(name) for name in self.test_parts]

    def _eval_loader(self, name: str) -> "DataLoader[Batch]":
        pairs = self.split(name)
        rank, world_size = self._rank_and_world()
        with self._planning(name):
            plan = plan_in_order(pairs.lengths, self._batch.eval_tokens, world_size)
        return self._loader(pairs, plan[rank::world_size])

    @contextlib.contextmanager
    def _planning(self, name: str) -> Iterator[None]:
        try:
            yield
        except ValueError as error:  # too few pairs for so many ranks
            raise UserError(f"{self._splits.key(name)}: {error}") from error

    def _loader(
        self, pairs: EncodedPairs, sampler: TrainingSampler | list[Indices]
    ) -> "DataLoader[Batch]":
        # batch_size=None: the sampler names a whole batch, and the dataset makes it at once.
        return DataLoader(
            pairs,
            batch_size=None,
            sampler=sampler,
            num_workers=self._num_workers,
            persistent_workers=self._num_workers > 0,
            worker_init_fn=leave_signals_to_main,
            # Its own: how often a validation begins must not move the numbers that dropout draws.
            generator=torch.Generator(),
        )

    def _rank_and_world(self) -> tuple[int, int]:
        if self.trainer is None:
            return 0, 1
        return self.trainer.global_rank, self.trainer.world_size

    def _corpus(self, source: Source, key: str) -> Corpus:
        return Corpus.cached(
            source,
            self._cache_dir,
            key=key,
            source_lang=self.source_lang,
            target_lang=self.target_lang,
        )

    def _empty_side(self, corpus: Corpus) -> str:
        """Where the first empty side of a corpus is, and what stands there."""
        row = int(corpus.empty[0])
        (source,), (target,) = corpus.texts(row, row + 1)
        sides = {self.source_lang: source, self.target_lang: target}
        language = next(each for each in self._languages if not sides[each].strip())
        line = "\t".join(sides[each] for each in self._languages)
        shown = line if len(line) <= 60 else line[:57] + "..."
        return f"{corpus.where(row)}: the {language} side is empty: {shown!r}"
