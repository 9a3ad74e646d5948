"""Grouping of integer columns: group numbers, and counts and sums by group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from epprof_nb import _native
from epprof_nb.arrays.chunks import chunks
from epprof_nb.arrays.ids import factorize
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from epprof_nb.arrays.types import IntArray


def group_codes(*columns: npt.NDArray[np.integer[Any]]) -> tuple[IntArray, IntArray]:
    """Number the distinct combinations of values of several columns.

    Parameters
    ----------
    columns
        Integer arrays of one length, at least one.

    Returns
    -------
    codes
        int64 array: the number of each row's combination, from 0 in order of first appearance.
    first
        int64 array: the first row of each combination.

    Examples
    --------
    >>> codes, first = group_codes(np.array([7, 5, 7, 7]), np.array([1, 1, 1, 2]))
    >>> codes.tolist(), first.tolist()
    ([0, 1, 0, 2], [0, 1, 3])
    """
    rows = len(columns[0])
    codes, size = np.zeros(rows, np.int64), 1
    if not rows:
        return codes, codes.copy()
    for column in columns:
        if not any(column.strides):
            continue  # a column of equal values may repeat one in memory
        values, low, span = _range_of(column)
        if span == 1:
            continue
        if size == 1:
            np.subtract(values, low, out=codes, dtype=np.int64)
            size = span
            continue
        if size * span > _table_size(rows):
            size = len(_renumber(codes, size))
        if size * span > _table_size(rows):
            numbers: IntArray = np.subtract(values, low, dtype=np.int64)
            values, low, span = numbers, 0, len(_renumber(numbers, span))
        # Each factor is at most the number of rows: the product is far below 2**63.
        _native.add_column(codes, values, low, span)
        size *= span
    return codes, _renumber(codes, size)


def _table_size(rows: int) -> int:
    """Return the greatest range of codes that a table renumbers without `factorize`."""
    return 2 * rows + 1024


def _renumber(codes: IntArray, size: int) -> IntArray:
    """Number codes below `size` by first appearance, in place, and return the first rows."""
    rows = len(codes)
    if size > _table_size(rows):
        codes[:], count = factorize(codes)
        first = np.empty(count, np.int64)
        for chunk in reversed(list(chunks(rows))):
            first[codes[chunk][::-1]] = np.arange(chunk.start, chunk.stop)[::-1]
        return first
    first = np.empty(min(size, rows), np.int64)
    return first[: _native.number_groups(codes, first, size)].copy()


def _range_of(
    column: npt.NDArray[np.integer[Any]],
) -> tuple[npt.NDArray[np.int32] | IntArray, int, int]:
    """Return a column as the core reads it, its smallest value, and how far the others reach."""
    values: npt.NDArray[Any] = np.ascontiguousarray(
        column, np.int32 if column.dtype == np.int32 else np.int64
    )
    low, high = int(values.min()), int(values.max())
    if high - low >= 2**62:
        codes, count = factorize(values)
        return codes, 0, count
    return values, low, high - low + 1


def count_distinct(
    codes: npt.NDArray[np.signedinteger[Any]], values: IntArray, groups: int
) -> IntArray:
    """Count the distinct values of each group; `MISSING` is not counted.

    Parameters
    ----------
    codes
        Integer array: the group of each value, from 0.
    values
        int64 array of the same length.
    groups
        Number of groups.

    Returns
    -------
    counts
        int64 array, shape ``(groups,)``.
    """
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    if groups * (high - low + 1) <= 8 * len(values) + 1024:
        seen = np.zeros((groups, high - low + 1), np.bool_)
        for chunk in chunks(len(values)):
            seen[codes[chunk], values[chunk] - low] = True
        if low <= MISSING <= high:
            seen[:, MISSING - low] = False
        counts: IntArray = seen.sum(axis=1, dtype=np.int64)
        return counts
    first = group_codes(codes, values)[1]
    return np.bincount(codes[first[values[first] != MISSING]], minlength=groups).astype(np.int64)


def sum_by_group(
    codes: npt.NDArray[np.signedinteger[Any]], values: IntArray, groups: int
) -> IntArray:
    """Sum `values` by group in integers; ``np.bincount`` would round large sums.

    Parameters
    ----------
    codes
        Integer array: the group of each value, from 0; `MISSING` or `groups` for no group.
    values
        int64 array of the same length.
    groups
        Number of groups.

    Returns
    -------
    sums
        int64 array, shape ``(groups + 1,)``; the last element is the sum of the values without a
        group.

    Examples
    --------
    >>> sum_by_group(np.array([0, 1, 0, -1]), np.array([1, 2, 3, 4]), 2).tolist()
    [4, 2, 4]
    """
    sums = np.zeros(groups + 1, np.int64)
    if codes.dtype != np.int32:
        codes = codes.astype(np.int64, copy=False)
    _native.add_by_group(sums, np.ascontiguousarray(codes), np.ascontiguousarray(values, np.int64))
    return sums


def extend_ranges(
    starts: IntArray, ends: IntArray, groups: IntArray, begin: IntArray, end: IntArray
) -> None:
    """Extend the time ranges of groups, in place, by the times of rows; `MISSING`: no group."""
    rows = (np.ascontiguousarray(column, np.int64) for column in (groups, begin, end))
    _native.extend_ranges(starts, ends, *rows)
