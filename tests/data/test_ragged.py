"""Rows of a mapped file, many at a time, against the plain way."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from zhen.data.ragged import Ragged, RaggedRows, pad, pad_rows

ROW = st.lists(st.integers(0, 65535), max_size=5)
CHUNKS = st.lists(st.lists(ROW, max_size=6), max_size=5)


def written(path: Path, chunks: list[list[list[int]]], ids: pa.DataType) -> Ragged:
    """A file with an odd column before the one that is read, to shift it."""
    schema = pa.schema({"odd": pa.string(), "ids": pa.list_(ids)})
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        for chunk in chunks:
            columns = {"odd": ["x" * len(row) for row in chunk], "ids": chunk}
            writer.write_batch(pa.RecordBatch.from_pydict(columns, schema))
    file = pa.memory_map(str(path)).read_buffer()
    return Ragged(file, pa.ipc.open_file(file).read_all().column("ids"))


@settings(deadline=None)  # it writes files
@given(CHUNKS, st.sampled_from([pa.uint16(), pa.int32()]), st.data())
def test_rows_are_those_that_were_written(
    tmp_path_factory: pytest.TempPathFactory,
    chunks: list[list[list[int]]],
    ids: pa.DataType,
    data: st.DataObject,
) -> None:
    column = written(tmp_path_factory.getbasetemp() / "ragged.arrow", chunks, ids)
    rows = [row for chunk in chunks for row in chunk]
    assert len(column) == len(rows)
    assert column.lengths.tolist() == [len(row) for row in rows]
    wanted = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=9)) if rows else []
    found = column.rows(np.array(wanted, np.int64))
    assert found.values.tolist() == [piece for i in wanted for piece in rows[i]]
    assert found.lengths.tolist() == [len(rows[i]) for i in wanted]


def test_a_row_that_is_not_there(tmp_path: Path) -> None:
    column = written(tmp_path / "a", [[[1], [2, 3]]], pa.uint16())
    for wanted in ([2], [0, -1]):
        with pytest.raises(IndexError, match="of 2"):
            column.rows(np.array(wanted))


def test_a_column_of_another_file_is_refused(tmp_path: Path) -> None:
    written(tmp_path / "a", [[[1], [2, 3]]], pa.uint16())
    file = pa.memory_map(str(tmp_path / "a")).read_buffer()
    with pytest.raises(AssertionError, match="not a column of this file"):
        Ragged(file, pa.chunked_array([pa.array([[1], [2, 3]], pa.list_(pa.uint16()))]))


def test_nothing_is_copied_for_a_pair(tmp_path: Path) -> None:
    column = written(tmp_path / "a", [[[1] * 10] * 1000] * 3, pa.uint16())
    held = [v for v in vars(column).values() if isinstance(v, np.ndarray) and v.base is None]
    assert sum(array.nbytes for array in held) < 200


@given(
    st.lists(ROW, min_size=1, max_size=6), st.sampled_from([None, 1]), st.sampled_from([None, 2])
)
def test_padding(rows: list[list[int]], first: int | None, last: int | None) -> None:
    flat = np.array([piece for row in rows for piece in row], np.uint16)
    found = pad_rows(
        RaggedRows(flat, np.array([len(row) for row in rows])), 7, first=first, last=last
    )
    whole = [
        [*([] if first is None else [first]), *row, *([] if last is None else [last])]
        for row in rows
    ]  # fmt: skip
    width = max(len(row) for row in whole)
    assert found.dtype == torch.int64
    assert found.tolist() == [row + [7] * (width - len(row)) for row in whole]
    if first is last is None:
        assert torch.equal(found, pad(rows, 7))
