"""Parquet: columns by name, and what each faulty row or table is told."""

import io
import resource
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.data.written import chunks, faults_of, lines_of, nested_table, pairs_of, table, write

from zhen.data.formats import Layout, TextColumns
from zhen.errors import UserError

PAIRS = [(f"茶{i}", f"tea {i}") for i in range(7)]


def read(folder: Path, content: pa.Table, **options: Any) -> tuple[list, list[int], list[str]]:
    path = folder / "a.parquet"
    pq.write_table(content, path, row_group_size=4)
    found = chunks(str(path), **options)
    faults = [str(each).replace(str(path), "F") for each in faults_of(found)]
    return pairs_of(found), lines_of(found), faults


@pytest.mark.parametrize(
    ("content", "options"),
    [
        (table(PAIRS), {}),
        (nested_table(PAIRS), {}),
        (table(PAIRS).append_column("translation", [["x"] * 7]), {}),
        (table(PAIRS).rename_columns(["c", "e"]), {"columns": ["c", "e"]}),
        (table(PAIRS).cast(pa.schema({"zh": pa.large_string(), "en": pa.large_string()})), {}),
        (
            pa.table({name: table(PAIRS)[name].dictionary_encode() for name in ("en", "zh")}),
            {},
        ),
    ],
    ids=["flat", "nested", "both", "by name", "large", "dictionary"],
)
def test_where_the_sentences_stand(tmp_path: Path, content: pa.Table, options: Any) -> None:
    assert read(tmp_path, content, **options) == (PAIRS, list(range(1, 8)), [])


def nested(rows: list[Any]) -> pa.Table:
    kind = pa.struct({"zh": pa.string(), "en": pa.string()})
    return pa.table({"translation": pa.array(rows, kind)})


def undecodable() -> pa.Table:
    raw = pa.array([b"a", b"\xb2\xe8", b"c"])
    text = pa.Array.from_buffers(pa.string(), 3, raw.buffers())
    return pa.table({"zh": text, "en": ["1", "2", "3"]})


@pytest.mark.parametrize(
    ("content", "lines", "faults"),
    [
        (
            pa.table({"zh": ["茶", None, "花"], "en": [None, None, "b"]}),
            [3],
            [
                "F:1: 'en' must be a string, but is null; write the sentence",
                "F:2: 'zh' must be a string, but is null; write the sentence",
            ],
        ),
        (
            nested([{"zh": "茶", "en": "tea"}, None, {"zh": None, "en": "b"}]),
            [1],
            [
                "F:2: 'zh' must be a string, but is null; write the sentence",
                "F:3: 'zh' must be a string, but is null; write the sentence",
            ],
        ),
        (undecodable(), [1, 3], ["F:2: 'zh': byte 0xB2 is not UTF-8; convert the file to UTF-8"]),
        (
            pa.table({"zh": ["a"], "de": ["b"]}),
            [],
            ["F: no column 'en'; there is 'zh', 'de': name the two with data.reader.columns"],
        ),
        (
            pa.table({"zh": ["a"], "en": [7]}),
            [],
            ["F: column 'en' holds int64, and no text: name the two with data.reader.columns"],
        ),
        (
            pa.table({"translation": [{"zh": "a", "de": "b"}]}),
            [],
            [
                "F: no translation into 'en'; there is 'zh', 'de': name the two with"
                " data.reader.columns"
            ],
        ),
    ],
    ids=["null", "null inside", "not UTF-8", "missing", "numbers", "missing inside"],
)
def test_a_faulty_table(
    tmp_path: Path, content: pa.Table, lines: list[int], faults: list[str]
) -> None:
    _, found, told = read(tmp_path, content)
    assert (found, told) == (lines, faults)


def test_a_null_hides_what_lies_below_it() -> None:
    texts = [pa.array(["茶", "花"]), pa.array(["tea", "b"])]
    rows = pa.StructArray.from_arrays(texts, ["zh", "en"], mask=pa.array([True, False]))
    batch = pa.RecordBatch.from_arrays([rows], ["translation"])
    columns = TextColumns.find(batch.schema, Layout(("zh", "en"), "zh"))
    assert isinstance(columns, TextColumns)
    fault, pair = columns.items("F", [batch])
    assert str(fault) == "F:1: 'zh' must be a string, but is null; write the sentence"
    assert pair == (2, "花", "b")


def test_what_is_no_parquet(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(table(PAIRS), path)
    whole = path.read_bytes()
    for content in (b"", b"zh\ten\n", whole[:-20], whole[:8] + b"\xff" * 60 + whole[68:]):
        path.write_bytes(content)
        with pytest.raises(UserError) as refused:
            chunks(str(path))
        assert str(refused.value).startswith(f"data.train: {path} is no Parquet file, or damaged (")
        assert "\n" not in str(refused.value)


def test_no_room_to_unpack_is_no_fault_of_the_file(tmp_path: Path) -> None:
    file = io.BytesIO()
    pq.write_table(table(PAIRS * 500), file, compression="none", use_dictionary=False)
    path = write(tmp_path / "a.parquet.gz", file.getvalue())
    assert pairs_of(chunks(str(path))) == PAIRS * 500
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, limit[1]))
    try:
        with pytest.raises(UserError) as refused:
            chunks(str(path))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert str(refused.value) == (
        f"data.train: cannot unpack {path} in {tempfile.gettempdir()}: File too large; make room,"
        " or choose another place with TMPDIR"
    )
