"""Pairs, Chinese first, written in every format that can be read."""

import csv
import gzip
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from zhen.data import Files
from zhen.data.source import Chunk, Fault

Pairs = Sequence[tuple[str, str]]

# What no format may split, strip or change; not U+FEFF at the beginning, which is a mark there.
ODD = "\u2028\u2029\x85\u3000\xa0\ufeff \"'&<>\\,;|#{}[]，。“”𠮷é"


def texts(without: str = "") -> st.SearchStrategy[str]:
    """Any text without some characters, rich in odd ones."""
    legal = st.characters(exclude_characters=without, exclude_categories=["Cs"])
    odd = st.sampled_from([each for each in ODD if each not in without])
    return st.text(st.one_of(legal, odd), max_size=20)


def tsv(pairs: Pairs) -> bytes:
    return "".join(f"{zh}\t{en}\n" for zh, en in pairs).encode()


def csv_with_header(pairs: Pairs) -> bytes:
    file = io.StringIO()
    csv.writer(file).writerows([("zh", "en"), *pairs])
    return file.getvalue().encode()


def json_lines(pairs: Pairs) -> bytes:
    return "".join(json.dumps({"zh": zh, "en": en}) + "\n" for zh, en in pairs).encode()


def json_lines_nested(pairs: Pairs) -> bytes:
    records = [{"id": 7, "translation": {"en": en, "zh": zh}} for zh, en in pairs]
    lines = [json.dumps(each, ensure_ascii=False) for each in records]
    return "".join(f"{line}\n" for line in lines).encode()


def json_array(pairs: Pairs) -> bytes:
    records = [{"zh": zh, "en": en} for zh, en in pairs]
    return json.dumps(records, indent=1, ensure_ascii=False).encode()


def table(pairs: Pairs) -> pa.Table:
    """Two columns of text."""
    schema = pa.schema({"zh": pa.string(), "en": pa.string()})
    return pa.table({"zh": [zh for zh, _ in pairs], "en": [en for _, en in pairs]}, schema)


def nested_table(pairs: Pairs) -> pa.Table:
    """A column `translation`, as data sets of the hub have."""
    kind = pa.struct({"en": pa.string(), "zh": pa.string()})
    rows = pa.array([{"en": en, "zh": zh} for zh, en in pairs], kind)
    return pa.table({"id": pa.array(range(len(pairs)), pa.int64()), "translation": rows})


def parquet(pairs: Pairs) -> bytes:
    return _parquet(table(pairs))


def parquet_nested(pairs: Pairs) -> bytes:
    return _parquet(nested_table(pairs))


def _parquet(content: pa.Table) -> bytes:
    file = io.BytesIO()
    pq.write_table(content, file, row_group_size=3)
    return file.getvalue()


def tmx(pairs: Pairs) -> bytes:
    units = [
        f'<tu><tuv xml:lang="en-US"><seg>{escape(en)}</seg></tuv>\n'
        f'<tuv xml:lang="zh-CN"><seg>{escape(zh)}</seg></tuv></tu>\n'
        for zh, en in pairs
    ]
    head = '<?xml version="1.0"?>\n<tmx version="1.4"><header/><body>\n'
    return f"{head}{''.join(units)}</body></tmx>".encode()


CONTROL = "".join(map(chr, [*range(32), 0x7F]))
XML_HAS_NOT = "".join(each for each in CONTROL if each not in "\t\n\x7f") + "\ufffe\uffff"

# By the ending of a file: how pairs are written, and the characters that cannot be.
FORMATS: dict[str, tuple[Callable[[Pairs], bytes], str]] = {
    "a.tsv": (tsv, "\t\n\r"),
    "b.csv": (csv_with_header, "\r\x00"),
    "c.jsonl": (json_lines, ""),
    "d.jsonl": (json_lines_nested, ""),
    "e.json": (json_array, ""),
    "f.parquet": (parquet, ""),
    "g.parquet": (parquet_nested, ""),
    "h.tmx": (tmx, XML_HAS_NOT),
}


def write(path: Path, content: bytes) -> Path:
    """Write a file, gzipped if its name says so."""
    path.write_bytes(gzip.compress(content, 1) if path.suffix == ".gz" else content)
    return path


def chunks(what: object, source_lang: str = "zh", **options: object) -> list[Chunk]:
    """Read a value of `data.train`."""
    reader = Files(**options)  # type: ignore[arg-type]
    languages = ["zh", "en"]
    source = reader.open(what, key="data.train", languages=languages, source_lang=source_lang)
    return list(source.chunks())


def pairs_of(found: list[Chunk]) -> list[tuple[str, str]]:
    return [pair for chunk in found for pair in zip(chunk.sources, chunk.targets, strict=True)]


def lines_of(found: list[Chunk]) -> list[int]:
    return [line for chunk in found for line in chunk.lines]


def faults_of(found: list[Chunk]) -> list[Fault]:
    return [fault for chunk in found for fault in chunk.faults]
