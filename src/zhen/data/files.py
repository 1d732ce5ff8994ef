"""The reader of files: what `data.train`, `data.val` and `data.test` name under `data=files`."""

import glob
import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from zhen.data.formats import BY_ENDING, READERS, InputFile, Layout, digests, read_aligned
from zhen.data.source import Chunk, Item, chunked
from zhen.errors import UserError

# Part of every fingerprint; raise it when a format is read in another way than before.
VERSION = 1


class Files:
    """Pairs in files.

    A split is named by a path, a pattern such as `data/*.tsv` (sorted), a list of these, or a
    mapping from the two languages to these: plain files whose lines belong together, one by one.
    All formats but a JSON array are read by streaming, also when gzipped.

    Args:
        format: of files that hold both languages; None goes by the ending of each.
        columns: of a TSV, CSV, JSON or Parquet file: where the two languages stand, in the order of
            `languages`, as numbers from 0 or as names. None: a TSV of two columns in this order, or
            columns named as the languages.
        header: whether line 1 of a TSV or CSV names the columns. None: as
            `zhen.data.formats.delimited` says.

    Raises:
        ValueError: the options do not fit together.
    """

    def __init__(
        self,
        *,
        format: Literal["tsv", "csv", "jsonl", "json", "parquet", "tmx"] | None = None,
        columns: list[int | str] | None = None,
        header: bool | None = None,
    ) -> None:
        if columns is not None:
            if len(columns) != 2 or columns[0] == columns[1]:
                raise ValueError(f"`columns` must be two different columns, but is {columns}")
            if len({type(each) for each in columns}) > 1:
                raise ValueError(f"`columns` must be two numbers or two names, but is {columns}")
            if any(isinstance(each, int) and each < 0 for each in columns):
                raise ValueError(f"`columns` are counted from 0, but is {columns}")
            if isinstance(columns[0], str) and header is False:
                raise ValueError("`columns` by name need a header, but `header` is false")
        self._format = format
        self._columns = None if columns is None else (columns[0], columns[1])
        self._header = header

    def open(
        self, what: object, *, key: str, languages: Sequence[str], source_lang: str
    ) -> "FilesSource":
        """See `zhen.data.source.Reader`.

        Raises:
            UserError: `what` names no file, a file that is not there, or one of unknown format.
        """
        layout = Layout(
            (languages[0], languages[1]),
            source_lang,
            self._columns,  # type: ignore[arg-type]  # two of a kind: checked above
            self._header,
        )
        if isinstance(what, Mapping):
            return self._aligned(what, key, layout)
        found = _find(what, key, languages)
        bitexts = [Bitext(self._format_of(file, layout), [file], layout) for file in found]
        return FilesSource(_as_given(what), key, bitexts)

    def _aligned(self, what: Mapping[str, object], key: str, layout: Layout) -> "FilesSource":
        if set(what) != set(layout.languages):
            raise UserError(
                f"`{key}` must map {' and '.join(layout.languages)} to files, but maps"
                f" {', '.join(map(str, what)) or 'nothing'}"
            )
        languages = layout.source_lang, layout.target_lang
        sides = [_find(what[each], f"{key}.{each}", layout.languages) for each in languages]
        if len(sides[0]) != len(sides[1]):
            raise UserError(
                f"`{key}` must name as many {languages[0]} as {languages[1]} files, but names"
                f" {len(sides[0])} and {len(sides[1])}"
            )
        bitexts = [Bitext("aligned", list(files), layout) for files in zip(*sides, strict=True)]
        return FilesSource(" + ".join(_as_given(each) for each in what.values()), key, bitexts)

    def _format_of(self, file: InputFile, layout: Layout) -> str:
        ending = Path(file.path.name.removesuffix(".gz")).suffix.lower()
        name = self._format or BY_ENDING.get(ending)
        if name is None:
            raise file.explain(
                f"has an ending that tells no format; say it with {file.option('format')}=FORMAT,"
                f" one of {', '.join(READERS)}"
            )
        by_number = layout.columns is not None and not layout.named
        if by_number and name in ("jsonl", "json", "parquet"):
            raise file.explain(
                f"has names instead of numbers for its columns; give them with"
                f" {file.option('columns')}"
            )
        if by_number and name == "csv" and layout.header is None:
            raise file.explain(
                f"may begin with the names of the columns or with a pair; say which, with"
                f" {file.option('header')}=true or false"
            )
        return name


@dataclass(frozen=True)
class Bitext:
    """A file with both languages, or two aligned files, source and target."""

    format: str
    files: list[InputFile]
    layout: Layout

    @property
    def name(self) -> str:
        return " + ".join(file.name for file in self.files)

    def items(self) -> Iterator[Item]:
        """The pairs and faults, from the beginning."""
        if self.format == "aligned":
            return read_aligned(*self.files)
        return READERS[self.format](self.files[0], self.layout)


class FilesSource:
    """The pairs of one split, as `zhen.data.source.Source` describes it; `Files.open` makes one."""

    def __init__(self, name: str, key: str, bitexts: Sequence[Bitext]) -> None:
        self.name = name
        self._key = key
        self._bitexts = bitexts

    def fingerprint(self) -> str:
        """SHA-256 of the files' bytes in their order, the formats and the layout.

        Raises:
            UserError: a file is missing or cannot be read.
        """
        digest = hashlib.sha256(f"{VERSION} {self._bitexts[0].layout}".encode())
        files = [file for bitext in self._bitexts for file in bitext.files]
        found = iter(digests(files, f"{self._key}: hashing"))
        for bitext in self._bitexts:
            digest.update(bitext.format.encode())
            for _ in bitext.files:
                digest.update(next(found))
        return digest.hexdigest()

    def chunks(self) -> Iterator[Chunk]:
        """The pairs and faults of each file.

        Raises:
            UserError: a file is missing, damaged, or of another format, or no file has a pair.
        """
        nothing = True
        for bitext in self._bitexts:
            for chunk in chunked(bitext.name, bitext.items()):
                nothing = nothing and not (chunk.lines or any(f.refused for f in chunk.faults))
                yield chunk
        if nothing:
            hint = "; write one pair a line, separated by a tab"
            tsv = self._bitexts[0].format == "tsv"
            raise UserError(f"{self._key}: {self.name} has no pairs{hint if tsv else ''}")


def _find(what: object, key: str, languages: Sequence[str]) -> list[InputFile]:
    """The files that a path, a pattern or a list names, in order."""
    names = what if isinstance(what, list | tuple) else [what]
    if not names or not all(isinstance(name, str | Path) and str(name) for name in names):
        one, other = languages
        raise UserError(
            f"`{key}` must be a path, a pattern, a list of these, or a mapping"
            f" {{{one}: path, {other}: path}}, but is {what!r}"
        )
    paths = [path for name in names for path in _paths(str(name), key)]
    by_file: dict[Path, list[str]] = defaultdict(list)  # a file may have several paths
    for path in paths:
        by_file[path.resolve()].append(str(path))
    for same in by_file.values():
        if len(same) > 1:
            raise UserError(f"{key}: {' and '.join(same)} are one file; name it once")
    files = [InputFile(path, key) for path in paths]
    for file in files:
        if file.path.exists() and not (file.path.is_file() or file.path.is_dir()):
            raise file.explain("is no regular file, and is read more than once; write it to a file")
        with file.open_raw():
            pass
    return files


def _paths(name: str, key: str) -> list[Path]:
    if not glob.has_magic(name) or Path(name).exists():
        return [Path(name)]
    found = sorted(glob.glob(name, recursive=True))
    if not found:
        raise UserError(f"{key}: no file is named like {name}; give a path or another pattern")
    return [Path(each) for each in found]


def _as_given(what: object) -> str:
    return ", ".join(map(str, what)) if isinstance(what, list | tuple) else str(what)
