"""The reader of data sets of the Hugging Face hub, and of directories laid out like one of them.

`datasets` downloads a data set once and keeps it as Arrow files in its own cache (`HF_HOME`), where
it finds it later without a network. No code of a data set is run: `datasets` 4 and later cannot.
"""

import hashlib
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zhen.data.formats import InputFile, Layout, TextColumns, digests
from zhen.data.progress import counted
from zhen.data.source import CHUNK, Chunk, chunked, option
from zhen.errors import UserError, did_you_mean, one_line

if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger(__name__)

# Part of every fingerprint; raise it when a data set is read in another way than before.
VERSION = 1


class Hub:
    """Pairs in a data set with a column `translation`, or with a column for each language.

    A split is named as the data set names it, `train`, `validation` or `test`; `train[:1000]` and
    `train[:10%]` are parts of one.

    Args:
        name: the data set, as `Helsinki-NLP/opus-100`, or a directory laid out like one.
        config: one of its configurations; None where it has but one.
        revision: a commit, tag or branch; None: the newest.
        columns: what the data set calls the two languages, in the order of `languages`; None: by
            their codes.

    Raises:
        ValueError: `columns` are not two.
    """

    def __init__(
        self,
        *,
        name: str,
        config: str | None = None,
        revision: str | None = None,
        columns: list[str] | None = None,
    ) -> None:
        if columns is not None and (len(columns) != 2 or columns[0] == columns[1]):
            raise ValueError(f"`columns` must be two different names, but is {columns}")
        self._name, self._config, self._revision = name, config, revision
        self._columns = None if columns is None else (columns[0], columns[1])
        self._builder: Any = None  # made and prepared at the first use

    def open(
        self, what: object, *, key: str, languages: Sequence[str], source_lang: str
    ) -> "HubSource":
        """See `zhen.data.source.Reader`. Downloads the data set at its first use.

        Raises:
            UserError: there is no such data set, configuration, revision or split, or no column for
                a language.
        """
        if not isinstance(what, str) or not what:
            raise UserError(f"`{key}` must name a split of {self._name}, but is {what!r}")
        if self._builder is None:
            self._builder = self._prepare(key)
        try:
            data = self._builder.as_dataset(split=what)
        except ValueError as error:
            splits = list(self._builder.info.splits or ())
            unknown = str(error).startswith("Unknown split")
            why = did_you_mean(what, splits) if unknown else f" ({one_line(error)})"
            raise UserError(
                f"`{key}` must be one of {splits}, the splits of {self._name}, or a part of one, as"
                f" train[:1000], but is {what!r}{why}"
            ) from error
        layout = Layout((languages[0], languages[1]), source_lang, self._columns)
        columns = TextColumns.find(data.features.arrow_schema, layout)
        if isinstance(columns, str):
            raise UserError(
                f"{key}: {self._name} has {columns}; name the two with {option(key, 'columns')}"
            )
        name = "/".join(each for each in (self._name, self._config, what) if each)
        about = f"{VERSION} {self._name} {self._config} {self._revision} {what} {columns}"
        return HubSource(data.select_columns(columns.top), columns, name, key, about)

    def _prepare(self, key: str) -> Any:
        """The data set, downloaded and kept by `datasets`.

        Raises:
            UserError: there is none.
        """
        from datasets import config, load_dataset_builder

        named = f"`{option(key, 'name')}`"
        what = {"path": self._name, "name": self._config, "revision": self._revision}
        directory = Path(self._name).is_dir()
        if not (directory or config.HF_HUB_OFFLINE):
            # Without a network, it takes half a minute until `datasets` gives up.
            log.info(
                "%s: asking the hub for %s; with HF_HUB_OFFLINE=1, only the cache is asked",
                key,
                self._name,
            )
        try:
            builder = load_dataset_builder(**what)
            if builder.name == "cache":
                builder = self._revision_of(builder, key)
            if directory:
                # `datasets` keeps a directory under a key that its files do not enter: it would
                # give the old content of a changed file.
                content = _digest(builder.config.data_files, key)
                kept = Path(_cache()) / f"directory-{content}"
                builder = load_dataset_builder(**what, cache_dir=str(kept))
            builder.download_and_prepare()
        except UserError:
            raise
        except ConnectionError as error:
            raise UserError(
                f"{named}: the hub cannot be reached for {self._name}, and {_cache()} has no copy;"
                " load it once on a machine with a network, or give a directory"
            ) from error
        except FileNotFoundError as error:
            raise UserError(f"{named}: no data set {self._name!r} ({one_line(error)})") from error
        except Exception as error:  # whatever the hub and the files in it bring about
            known = re.search(r"vailable[^[]*\[(.*?)\]", str(error))
            if known is None:
                raise UserError(f"{named}: {self._name}: {one_line(error)}") from error
            configs = re.findall(r"'(.*?)'", known[1])
            raise UserError(
                f"`{option(key, 'config')}` must be one of {configs}, the configurations of"
                f" {self._name}, but is {self._config!r}{did_you_mean(self._config or '', configs)}"
            ) from error
        log.info("%s: %s, revision %s", key, self._name, builder.hash)
        return builder

    def _revision_of(self, builder: Any, key: str) -> Any:
        """The revision asked for, where the cache answered instead of the hub.

        `datasets` would give the one that was loaded last.
        """
        from huggingface_hub import try_to_load_from_cache

        revision = self._revision or "main"
        card = try_to_load_from_cache(
            self._name, "README.md", revision=revision, repo_type="dataset"
        )
        commit = Path(card).parent.name if isinstance(card, str) else self._revision
        if commit in (None, builder.hash):
            return builder
        wanted = type(builder)(
            repo_id=self._name,
            dataset_name=builder.dataset_name,
            config_name=builder.config.name,
            version=str(builder.config.version),
            hash=commit,
        )
        if Path(wanted.cache_dir).is_dir():
            return wanted
        raise UserError(
            f"`{option(key, 'revision')}`: the hub cannot be reached, and of {self._name}"
            f" {_cache()} has revision {builder.hash}, but not {revision}"
        )


class HubSource:
    """A split of a data set, as `zhen.data.source.Source` describes it; `Hub.open` makes one."""

    def __init__(self, data: Any, columns: TextColumns, name: str, key: str, about: str) -> None:
        self.name = name
        self._data = data
        self._columns = columns
        self._key = key
        self._about = about

    def fingerprint(self) -> str:
        """SHA-256 of the texts and of what was asked for: the same wherever it was downloaded."""
        import pyarrow as pa

        digest = hashlib.sha256(self._about.encode())
        batches = counted(
            self._batches(),
            f"{self._key}: hashing",
            len(self._data),
            size=lambda batch: batch.num_rows,
        )
        for batch in batches:
            texts = pa.RecordBatch.from_arrays(self._columns.arrays(batch), ["source", "target"])
            digest.update(texts.serialize())
        return digest.hexdigest()

    def chunks(self) -> Iterator[Chunk]:
        """The pairs of the split; rows are counted from 1.

        Raises:
            UserError: there are none.
        """
        if not len(self._data):
            raise UserError(f"{self._key}: {self.name} has no pairs")
        yield from chunked(self.name, self._columns.items(self.name, self._batches()))

    def _batches(self) -> "Iterator[pa.RecordBatch]":
        for table in self._data.with_format("arrow").iter(CHUNK):
            yield from table.combine_chunks().to_batches()


def _digest(files: Mapping[str, Sequence[str]], key: str) -> str:
    """What the files of a data set hold, by split."""
    digest = hashlib.sha256()
    for split, paths in files.items():
        digest.update(f"{split} {len(paths)}".encode())
        opened = [InputFile(Path(path), key) for path in paths]
        for each in digests(opened, f"{key}: hashing {split}"):
            digest.update(each)
    return digest.hexdigest()[:32]


def _cache() -> str:
    from datasets import config

    return str(config.HF_DATASETS_CACHE)
