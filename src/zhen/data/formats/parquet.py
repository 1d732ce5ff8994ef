"""Parquet and other Arrow tables: two columns of text, or a column `translation` with both."""

import contextlib
import gzip
import io
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from zhen.data.formats.layout import NESTED, Layout
from zhen.data.formats.lines import BLOCK, InputFile, not_utf8
from zhen.data.progress import counted
from zhen.data.source import CHUNK, Fault, Item
from zhen.errors import UserError, one_line


def read_parquet(file: InputFile, layout: Layout) -> Iterator[Item]:
    """The pairs of a Parquet file; rows are counted from 1.

    Raises:
        UserError: it is no Parquet file, or damaged.
    """
    with _seekable(file) as stream:
        try:
            table = pq.ParquetFile(stream, buffer_size=BLOCK, pre_buffer=False)
            columns = TextColumns.find(table.schema_arrow, layout)
            if isinstance(columns, str):
                remedy = f"name the two with {file.option('columns')}"
                yield Fault("columns", file.name, None, f"{columns}: {remedy}")
                return
            batches = table.iter_batches(CHUNK, columns=columns.top, use_threads=False)
            yield from columns.items(file.name, batches)
        except (pa.ArrowException, OSError) as error:
            raise file.explain(f"is no Parquet file, or damaged ({one_line(error)})") from error


@contextlib.contextmanager
def _seekable(file: InputFile) -> Iterator[io.IOBase]:
    """The file's bytes in a stream that can jump: Parquet is read from its end."""
    with file.open() as stream:
        if not isinstance(stream, gzip.GzipFile):
            yield stream
            return
        with tempfile.TemporaryFile(buffering=0) as unpacked:
            blocks = iter(lambda: stream.read(BLOCK), b"")
            for block in counted(blocks, f"unpacking {file.name}: bytes", size=len):
                left = memoryview(block)
                try:
                    while left:
                        left = left[unpacked.write(left) :]
                except OSError as error:
                    raise UserError(
                        f"{file.key}: cannot unpack {file.name} in {tempfile.gettempdir()}:"
                        f" {error.strerror}; make room, or choose another place with TMPDIR"
                    ) from error
            unpacked.seek(0)
            yield unpacked


@dataclass(frozen=True)
class TextColumns:
    """Where the two texts of a row stand.

    Args:
        names: of source and target.
        nested: they are fields of the column `translation`.
    """

    names: tuple[str, str]
    nested: bool

    @classmethod
    def find(cls, schema: pa.Schema, layout: Layout) -> "TextColumns | str":
        """The columns that a layout asks for, or what is wrong with those of the table."""
        fields = {field.name: field.type for field in schema}
        missing = layout.missing(fields, "column")
        nested = bool(missing) and pa.types.is_struct(fields.get(NESTED, pa.null()))
        if nested:
            fields = {field.name: field.type for field in fields[NESTED]}
            missing = layout.missing(fields, f"{NESTED} into")
        if missing:
            return missing
        for name in layout.names:
            if not _is_text(fields[name]):
                return f"column {name!r} holds {fields[name]}, and no text"
        return cls(layout.names, nested)

    @property
    def top(self) -> list[str]:
        """The columns to read."""
        return [NESTED] if self.nested else list(self.names)

    def arrays(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """The texts of source and target."""
        if self.nested:
            return [pc.struct_field(batch.column(NESTED), name) for name in self.names]
        return [batch.column(name) for name in self.names]

    def items(self, file: str, batches: Iterable[pa.RecordBatch]) -> Iterator[Item]:
        """The pairs of a table, or the Fault of a row that has none."""
        row = 0
        for batch in batches:
            for pair in zip(*map(_texts, self.arrays(batch)), strict=True):
                row += 1
                source, target = pair
                if isinstance(source, str) and isinstance(target, str):
                    yield row, source, target
                else:
                    yield self._fault(file, row, pair)

    def _fault(self, file: str, row: int, pair: tuple[object, ...]) -> Fault:
        for name, text in zip(self.names, pair, strict=True):
            if isinstance(text, UnicodeDecodeError):
                return Fault("encoding", file, row, f"{name!r}: {not_utf8(text)}")
            if text is None:
                message = f"{name!r} must be a string, but is null; write the sentence"
                return Fault("value", file, row, message)
        raise AssertionError(pair)


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def _texts(column: pa.Array) -> list[str | UnicodeDecodeError | None]:
    """The texts of a column; nobody has checked yet that they are UTF-8."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    try:
        return column.to_pylist()
    except UnicodeDecodeError:
        return [_text(raw) for raw in column.cast(pa.large_binary()).to_pylist()]


def _text(raw: bytes | None) -> str | UnicodeDecodeError | None:
    try:
        return None if raw is None else raw.decode()
    except UnicodeDecodeError as error:
        return error
