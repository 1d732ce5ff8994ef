"""One module for each form that pairs come in: an opened file gives its pairs and its faults."""

from collections.abc import Callable, Iterator, Mapping

from zhen.data.formats.aligned import read_aligned
from zhen.data.formats.delimited import read_csv, read_tsv
from zhen.data.formats.json_records import read_json, read_json_lines
from zhen.data.formats.layout import Layout
from zhen.data.formats.lines import InputFile, digests
from zhen.data.formats.parquet import TextColumns, read_parquet
from zhen.data.formats.tmx import read_tmx
from zhen.data.source import Item

__all__ = ["BY_ENDING", "READERS", "InputFile", "Layout", "TextColumns", "digests", "read_aligned"]

# By the values of `data.reader.format`.
READERS: Mapping[str, Callable[[InputFile, Layout], Iterator[Item]]] = {
    "tsv": read_tsv,
    "csv": read_csv,
    "jsonl": read_json_lines,
    "json": read_json,
    "parquet": read_parquet,
    "tmx": read_tmx,
}
# By the ending of a file's name, before which `.gz` may stand.
BY_ENDING = {f".{name}": name for name in READERS} | {".txt": "tsv"}
