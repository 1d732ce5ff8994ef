"""Which splits there are, and where the pairs of each come from."""

from collections.abc import Callable, Sequence
from typing import Any

from zhen.data.corpus import Corpus
from zhen.data.holdout import Holdout
from zhen.data.source import Reader, Source
from zhen.errors import UserError
from zhen.files import SAFE_NAME

# What names the pairs of a split: the reader says what each form means.
Split = str | list[str] | dict[str, str | list[str]]
Size = int | float | None  # pairs, a share, or what `zhen.data.holdout` takes by itself


class Splits:
    """The sources of "train", "val" and the parts of the test.

    Args:
        train: the pairs to learn from; None where a model is only tested.
        val: the pairs that choose the best checkpoint; None: `val_size` of the training pairs.
        test: the pairs to score, or several by name; None: `test_size` of the training pairs.
        val_size: pairs (int) or share (float) of the training pairs, for `val=None`; None: a
            twentieth, a thousand pairs at most.
        test_size: the same for `test=None`.
        reader: finds the pairs that a value names.
        languages: the two languages, in the order of columns without names.
        source_lang: the one to translate from.
        prefix: what stands before `train`, `val` and `test` in messages.

    Raises:
        ValueError: a split is given twice, a size is out of range, or a part has no good name.
    """

    def __init__(
        self,
        *,
        train: Split | None,
        val: Split | None,
        test: Split | dict[str, Split] | None,
        val_size: Size,
        test_size: Size,
        reader: Reader,
        languages: Sequence[str],
        source_lang: str,
        prefix: str,
    ) -> None:
        tests = _parts(test, languages)
        self.test_parts = list(tests)
        self._values: dict[str, Any] = {"train": train, "val": val, **tests}
        self._sizes: dict[str, Size] = {}
        for name, value, size in (("val", val, val_size), ("test", test, test_size)):
            if size is not None:
                _check(name, size, train, value)
            if value is None and train is not None:
                self._sizes[name] = size
        self._reader, self._languages, self._source_lang = reader, languages, source_lang
        self._prefix = prefix
        self._sources: dict[str, Source] = {}

    def key(self, name: str) -> str:
        """The configuration key of a split, for messages."""
        if name in ("train", "val", "test"):
            return f"{self._prefix}{name}"
        return f"{self._prefix}test.{name}"

    def given(self) -> dict[str, Source]:
        """The splits that have pairs of their own, by name, whole.

        Raises:
            UserError: nothing is there.
        """
        return {name: self._open(name) for name, value in self._values.items() if value is not None}

    def source(self, name: str, read: Callable[[Source, str], Corpus]) -> Source:
        """Where the pairs of a split come from.

        Args:
            name: "train", "val" or a part of the test.
            read: gives the corpus of a source, by the split's key, where a split must be taken from
                another.

        Raises:
            UserError: nothing was given, or nothing is there.
        """
        if name not in self._sources and self._sizes and name in ("train", *self._sizes):
            whole, key = self._open("train"), self.key("train")
            holdout = Holdout(whole, lambda: read(whole, key), self._sizes, self._prefix)
            for part in ("train", *self._sizes):
                self._sources[part] = holdout.part(part)
        if name not in self._sources:
            self._sources[name] = self._open(name)
        return self._sources[name]

    def _open(self, name: str) -> Source:
        key, value = self.key(name), self._values[name]
        if value is None:
            raise UserError(f"`{key}` names no pairs: give {key}")
        return self._reader.open(
            value, key=key, languages=self._languages, source_lang=self._source_lang
        )


def _parts(test: Any, languages: Sequence[str]) -> dict[str, Any]:
    """What to score, by name; a mapping from the languages is one pair of files, no parts."""
    if not isinstance(test, dict) or set(test) == set(languages):
        return {"test": test}
    if not test:
        raise ValueError("`test` must name at least one file, but is empty")
    for part in map(str, test):
        # A part names metrics and files.
        if not SAFE_NAME.fullmatch(part) or part in ("train", "val"):
            raise ValueError(
                "a part of `test` must be named with letters, digits, `.`, `_` and `-`, and"
                f" neither train nor val, but is {part!r}"
            )
    return {str(part): value for part, value in test.items()}


def _check(name: str, size: int | float, train: Any, value: Any) -> None:
    if value is not None:
        raise ValueError(
            f"`{name}_size` takes pairs from `train`, but `{name}` is given: leave one"
        )
    if train is None:
        raise ValueError(f"`{name}_size` takes pairs from `train`, which is not given")
    if not (0 < size < 1 if isinstance(size, float) else size >= 1):
        raise ValueError(
            f"`{name}_size` must be an int of at least 1 or a share above 0 and below 1, but is"
            f" {size}"
        )
