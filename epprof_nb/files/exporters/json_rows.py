"""Rows of JSON text from columns: each row joins constant texts and columns of values."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from epprof_nb.arrays.groups import group_codes
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.data.names import CategoryColumn

Piece: TypeAlias = "str | pa.Array"
"""A part of each row: a constant text, or a column of texts."""

_MAX_ROWS = 1 << 15
_MAX_BYTES = 1 << 26
"""A batch has at most this many rows, and fewer if its texts could need more memory."""


def join_rows(*parts: Piece) -> memoryview:
    """Return the rows one after another; row i joins the texts and the i-th values of columns.

    Missing values become ``null``.

    Examples
    --------
    >>> bytes(join_rows('{"id":', integers(np.array([7, -1]), optional=True), "}"))
    b'{"id":7}{"id":null}'
    """
    rows = pc.binary_join_element_wise(*parts, "", null_handling="replace", null_replacement="null")
    _, offsets, text = rows.buffers()
    if text is None:
        return memoryview(b"")
    ends = np.frombuffer(offsets, np.int32)[rows.offset : rows.offset + len(rows) + 1]
    return memoryview(text)[int(ends[0]) : int(ends[-1])]


def integers(values: IntArray, *, optional: bool = False) -> Piece:
    """Return integers as text; if `optional`, the value `MISSING` is missing."""
    mask = values == MISSING if optional else None
    return pc.cast(pa.array(values, mask=mask), pa.string())


def microseconds(times: IntArray, then: str) -> list[Piece]:
    """Return columns that write nanoseconds as microseconds, followed by the text `then`."""
    whole, rest = np.divmod(np.abs(times), 1000)
    parts = [integers(whole), _thousandths(then).take(pa.array(rest.astype(np.int32)))]
    negative = times < 0
    if negative.any():
        parts.insert(0, pc.if_else(pa.array(negative), "-", ""))
    return parts


@cache
def _thousandths(then: str) -> pa.Array:
    return pa.array([f".{i:03d}{then}" for i in range(1000)])


class Texts:
    """The texts of distinct combinations of names, by rows; each is made once.

    Parameters
    ----------
    make
        Function from the names, None if missing, to the text.
    columns
        The names; columns of one length.
    """

    def __init__(self, make: Callable[..., str], *columns: CategoryColumn) -> None:
        self._codes, first = group_codes(*(column.codes for column in columns))
        names = zip(*(column.take(first).to_list() for column in columns), strict=True)
        texts = [make(*row) for row in names]
        self._table = pa.array(texts, pa.large_string())
        self.longest = max(map(len, texts), default=0)

    def __getitem__(self, rows: IntArray) -> Piece:
        return pc.cast(self._table.take(pa.array(self._codes[rows])), pa.string())


def combinations(make: Callable[..., str], *columns: npt.NDArray[np.integer[Any]]) -> Piece:
    """Return ``make(*values)`` of each row, computed once per combination of values."""
    codes, first = group_codes(*columns)
    values = zip(*(column[first].tolist() for column in columns), strict=True)
    return pa.array([make(*row) for row in values], pa.string()).take(pa.array(codes))


def batches(rows: BoolArray | int, longest: int) -> Iterator[IntArray]:
    """Yield row numbers in batches whose text is of bounded size.

    Parameters
    ----------
    rows
        A mask of the rows, or the number of all rows.
    longest
        Maximum length of the variable text of a row.
    """
    numbers: IntArray = np.arange(rows) if isinstance(rows, int) else np.flatnonzero(rows)
    size = min(max(_MAX_BYTES // (longest + 1), 64), _MAX_ROWS)
    return (numbers[i : i + size] for i in range(0, len(numbers), size))
