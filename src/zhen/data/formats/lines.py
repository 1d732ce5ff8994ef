"""Bytes and lines of a file, plain or gzipped, a block at a time.

Lines end with `\\n` or `\\r\\n` and nothing else: U+2028, NEL and their like stay inside the text,
where other readers would split a pair in two. A byte-order mark is no part of the text.
"""

import codecs
import contextlib
import gzip
import hashlib
import io
import os
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from zhen.data.progress import counted
from zhen.data.source import Fault, option
from zhen.errors import UserError, one_line

BLOCK = 1 << 20  # bytes read at once
LONGEST = 1 << 24  # bytes of a line; a longer one is no sentence, and the file no text


@dataclass(frozen=True)
class InputFile:
    """A file of pairs, and the configuration key that names it, for messages."""

    path: Path
    key: str

    @property
    def name(self) -> str:
        """The file as the user named it."""
        return str(self.path)

    def option(self, name: str) -> str:
        """An option of the reader, as the user writes it, for messages."""
        return option(self.key, name)

    def explain(self, problem: str) -> UserError:
        """The error that says what is wrong with the file as a whole."""
        return UserError(f"{self.key}: {self.path} {problem}")

    @contextlib.contextmanager
    def open_raw(self) -> Iterator[io.BufferedReader]:
        """The file's bytes as they are.

        Raises:
            UserError: the file is missing, or cannot be read to its end.
        """
        try:
            with self.path.open("rb") as file:
                yield file
        except FileNotFoundError:
            kind = "TSV" if self.path.name.removesuffix(".gz").endswith(".tsv") else "file"
            raise self.explain(f"does not exist; give the path of a {kind} of pairs") from None
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            problem = f"is cut short or damaged ({one_line(error)}); copy or download it again"
            raise self.explain(problem) from error
        except OSError as error:
            raise UserError(f"{self.key}: cannot read {self.path}: {error.strerror}") from error

    @contextlib.contextmanager
    def open(self) -> Iterator[io.BufferedIOBase]:
        """The file's bytes, decompressed.

        Raises:
            UserError: the file is missing, damaged, or cannot be read to its end.
        """
        with self.open_raw() as file:
            if file.peek(2)[:2] == b"\x1f\x8b":  # no text in UTF-8 begins like this
                with gzip.GzipFile(fileobj=file) as inner:
                    yield inner
            elif self.path.suffix == ".gz":
                raise self.explain("is not gzipped; take .gz from its name or download it again")
            else:
                yield file

    def blocks(self) -> Iterator[bytes]:
        """The file's bytes, decompressed, about a mebibyte at a time."""
        with self.open() as file:
            while block := file.read(BLOCK):
                yield block


def digests(files: Sequence[InputFile], what: str) -> list[bytes]:
    """SHA-256 of each file's bytes as they are.

    Args:
        files: to read.
        what: the step, for messages.

    Raises:
        UserError: a file is missing, or cannot be read to its end.
    """
    found = [hashlib.sha256() for _ in files]
    total = 0
    for each in files:
        with each.open_raw() as file:
            total += os.fstat(file.fileno()).st_size

    def blocks() -> Iterator[tuple[int, bytes]]:
        for i, each in enumerate(files):
            with each.open_raw() as file:
                while block := file.read(BLOCK):
                    yield i, block

    for i, block in counted(blocks(), f"{what}: bytes", total, size=lambda item: len(item[1])):
        found[i].update(block)
    return [each.digest() for each in found]


class Lines:
    """The lines of a text file, each its text or the Fault that stands in its place.

    `count` is the number of lines read so far; `notes` says, at the end, what was put right.
    """

    def __init__(self, file: InputFile) -> None:
        self.count = 0
        self._file = file
        self._bom = False
        self._crlf, self._first_crlf = 0, 0

    def __iter__(self) -> Iterator[str | Fault]:
        rest = b""
        for number, block in enumerate(self._file.blocks()):
            if number == 0 and block.startswith(codecs.BOM_UTF8):
                self._bom = True
                block = block.removeprefix(codecs.BOM_UTF8)
            block = rest + block
            end = block.rfind(b"\n") + 1
            rest = block[end:]
            if len(rest) > LONGEST:
                raise UserError(
                    f"{self._file.key}: {self._file.path}:{self.count + 1}: a line of more than"
                    f" {LONGEST >> 20} MiB is no sentence; is it a text file?"
                )
            if end:
                yield from self._texts(block[:end])
        if rest:
            yield from self._texts(rest + b"\n")

    def _texts(self, block: bytes) -> list[str] | list[str | Fault]:
        """The texts of whole lines."""
        if crlf := block.count(b"\r\n"):
            if not self._crlf:
                before = block.count(b"\n", 0, block.index(b"\r\n"))
                self._first_crlf = self.count + before + 1
            self._crlf += crlf
            block = block.replace(b"\r\n", b"\n")
        first = self.count + 1
        self.count += block.count(b"\n")
        block = block[:-1]
        try:
            return block.decode().split("\n")
        except UnicodeDecodeError:
            return [self._text(line, i) for i, line in enumerate(block.split(b"\n"), first)]

    def _text(self, line: bytes, number: int) -> str | Fault:
        try:
            return line.decode()
        except UnicodeDecodeError as error:
            return Fault("encoding", self._file.name, number, not_utf8(error))

    def notes(self) -> Iterator[Fault]:
        """What the file has that is no part of the text; complete after the last line."""
        name = self._file.name
        if self._bom:
            message = "a byte-order mark stands before the text; it is left out"
            yield Fault("bom", name, 1, message, refused=False)
        if self._crlf:
            message = f"{self._crlf} of {self.count} lines end with CR LF; the CR is left out"
            yield Fault("crlf", name, self._first_crlf, message, refused=False)


def not_utf8(error: UnicodeDecodeError) -> str:
    """What a line is told that cannot be decoded."""
    byte = error.object[error.start]
    return f"byte 0x{byte:02X} is not UTF-8; convert the file to UTF-8"


def short(text: str) -> str:
    """The beginning of a line, in quotes, for messages."""
    return repr(text if len(text) <= 60 else text[:57] + "...")
