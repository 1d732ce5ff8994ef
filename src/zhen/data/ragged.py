"""Rows of different lengths: read many at once where they lie in a mapped file, and padded.

Everything here is whole arrays: a loop over rows in Python would be most of a loader's time.
"""

from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from torch import Tensor


class RaggedRows(NamedTuple):
    """Some rows, one after the other."""

    values: NDArray[Any]  # of all rows, on end
    lengths: NDArray[np.int64]  # of each row, (B,)


class Ragged:
    """A column of lists in a mapped Arrow file. Nothing is copied, and a chunk costs three numbers.

    The file holds chunk after chunk, each with the values of its lists on end, and where each list
    begins among them. Both are found by their distance from the beginning of the file, so that rows
    of all chunks are read with one look-up.

    Args:
        file: the mapped file, whole.
        column: a column that was read from it, lists of integers.
    """

    def __init__(self, file: pa.Buffer, column: pa.ChunkedArray) -> None:
        chunks = column.chunks
        id_type = np.dtype(column.type.value_type.to_pandas_dtype())
        self._values = _as_array(file, id_type)
        self._bounds = _as_array(file, np.dtype(np.int32))
        self._first_value = np.array([_distance(file, chunk.values) for chunk in chunks], np.int64)
        self._first_bound = np.array([_distance(file, chunk.offsets) for chunk in chunks], np.int64)
        self._first_row = np.cumsum([0, *(len(chunk) for chunk in chunks)])

    def __len__(self) -> int:
        return int(self._first_row[-1])

    @property
    def lengths(self) -> NDArray[np.int32]:
        """Of every row, a copy."""
        counts = np.diff(self._first_row)
        bounds = zip(self._first_bound, counts, strict=True)
        parts = [np.diff(self._bounds[start : start + count + 1]) for start, count in bounds]
        return np.concatenate([np.empty(0, np.int32), *parts])

    def rows(self, wanted: NDArray[np.int64]) -> RaggedRows:
        """The rows with these numbers, in the order given.

        Raises:
            IndexError: there is no such row.
        """
        if wanted.min(initial=0) < 0 or wanted.max(initial=-1) >= len(self):
            raise IndexError(f"rows {wanted.min()} to {wanted.max()} of {len(self)}")
        chunk = np.searchsorted(self._first_row, wanted, side="right") - 1
        bound = self._first_bound[chunk] + wanted - self._first_row[chunk]
        begin = self._bounds[bound].astype(np.int64)
        lengths = self._bounds[bound + 1] - begin
        # Where each value stands in the file, minus where it will stand in the result, is the same
        # for all values of a row.
        shift = self._first_value[chunk] + begin - (np.cumsum(lengths) - lengths)
        values = self._values[np.repeat(shift, lengths) + np.arange(lengths.sum())]
        return RaggedRows(values, lengths)


def pad(rows: Sequence[Sequence[int]], pad_id: int) -> Tensor:
    """Sequences of ids as one tensor (B, longest), filled up at the end with `pad_id`."""
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    return pad_rows(RaggedRows(np.fromiter(chain.from_iterable(rows), np.int64), lengths), pad_id)


def pad_rows(
    rows: RaggedRows, pad_id: int, *, first: int | None = None, last: int | None = None
) -> Tensor:
    """Rows of ids as one tensor (B, longest), filled up at the end with `pad_id`.

    Args:
        first: an id to put before each row; None: none.
        last: an id to put after each row; None: none.
    """
    start, end = int(first is not None), int(first is not None) + rows.lengths
    width = int(end.max(initial=0)) + int(last is not None)
    padded = np.full((len(end), width), pad_id, dtype=np.int64)
    column = np.arange(width)
    padded[(column >= start) & (column < end[:, None])] = rows.values
    if first is not None:
        padded[:, 0] = first
    if last is not None:
        padded[np.arange(len(end)), end] = last
    return torch.from_numpy(padded)


def _as_array(file: pa.Buffer, of: np.dtype[Any]) -> NDArray[Any]:
    return np.frombuffer(file, of, count=file.size // of.itemsize)


def _distance(file: pa.Buffer, array: pa.Array) -> int:
    """From the beginning of the file to the first item of an array in it, in items."""
    if not len(array):
        return 0  # anywhere: nothing will be read, and the array may not lie in the file
    start = array.buffers()[1].address - file.address
    width = array.type.bit_width // 8
    assert 0 <= start < file.size and start % width == 0, "not a column of this file"
    return start // width + array.offset
