"""Reading files of pairs: one pair a line, the two sentences separated by a tab.

Lines end with `\\n` or `\\r\\n` and nothing else: U+2028, NEL and their like stay inside the text,
where other readers would split a pair in two. A byte-order mark is no part of the text.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from zhen.data.source import CHUNK, Chunk, Fault, Source
from zhen.errors import UserError


@dataclass(frozen=True)
class Files:
    """Reads TSV files."""

    def open(self, what: object, *, key: str, languages: Sequence[str], source_lang: str) -> Source:
        """The pairs of the file `what`; see `Reader`."""
        if not isinstance(what, str) or not what:
            raise UserError(f"`{key}` must be the path of a TSV, but is empty")
        path = Path(what)
        if not path.exists():
            raise UserError(f"{key}: {path} does not exist; give the path of a TSV of pairs")
        return Tsv(path, key, tuple(languages), source_lang)


@dataclass(frozen=True)
class Tsv:
    """One file of pairs."""

    path: Path
    key: str
    columns: tuple[str, ...]
    source_lang: str

    @property
    def name(self) -> str:
        return str(self.path)

    def fingerprint(self) -> str:
        digest = hashlib.sha256(repr((self.columns, self.source_lang)).encode())
        try:
            with self.path.open("rb") as file:
                while block := file.read(1 << 20):
                    digest.update(block)
        except OSError as error:
            raise UserError(f"{self.key}: cannot read {self.path}: {error.strerror}") from error
        return digest.hexdigest()

    def chunks(self) -> Iterator[Chunk]:
        source = self.columns.index(self.source_lang)
        chunk = Chunk(self.name)
        with self.path.open("rb") as file:
            for number, raw in enumerate(file, start=1):
                fields = self._fields(raw, number)
                if isinstance(fields, Fault):
                    chunk.faults.append(fields)
                else:
                    chunk.lines.append(number)
                    chunk.sources.append(fields[source])
                    chunk.targets.append(fields[1 - source])
                if len(chunk.lines) == CHUNK:
                    yield chunk
                    chunk = Chunk(self.name)
        yield chunk

    def _fields(self, raw: bytes, number: int) -> list[str] | Fault:
        raw = raw.removesuffix(b"\n").removesuffix(b"\r")
        if number == 1:
            raw = raw.removeprefix(b"\xef\xbb\xbf")
        try:
            line = raw.decode()
        except UnicodeDecodeError as error:
            byte = f"byte 0x{raw[error.start]:02X} is not UTF-8; convert the file to UTF-8"
            return Fault("encoding", self.name, number, byte)
        fields = line.split("\t")
        if len(fields) == len(self.columns):
            return fields
        wanted = f"expected {len(self.columns)} sentences separated by a tab"
        message = f"{wanted} ({' TAB '.join(self.columns)}), but found {len(fields)}"
        short = line if len(line) <= 60 else line[:57] + "..."
        return Fault("columns", self.name, number, f"{message}: {short!r}")
