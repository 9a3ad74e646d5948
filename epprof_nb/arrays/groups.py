"""Grouping of integer columns: group numbers, and counts and sums by group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from epprof_nb import _native
from epprof_nb.arrays.chunks import chunks
from epprof_nb.arrays.ids import factorize, row_dtype
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
        values, span = _from_zero(column)
        if span == 1:
            continue
        if size == 1:
            codes, size = values, span
            continue
        if size * span > _table_size(rows):
            size = len(_renumber(codes, size))
        if size * span > _table_size(rows):
            span = len(_renumber(values, span))
        # Each factor is at most the number of rows: the product is far below 2**63.
        codes *= span
        codes += values
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
    first_of = np.full(size, MISSING, row_dtype(rows))
    for chunk in reversed(list(chunks(rows))):
        first_of[codes[chunk][::-1]] = np.arange(chunk.start, chunk.stop)[::-1]
    seen = np.flatnonzero(first_of >= 0)
    first = first_of[seen].astype(np.int64)
    order = np.argsort(first)
    number = first_of
    number[seen[order]] = np.arange(len(seen))
    for chunk in chunks(rows):
        codes[chunk] = number[codes[chunk]]
    return first[order]


def _from_zero(column: npt.NDArray[np.integer[Any]]) -> tuple[IntArray, int]:
    """Subtract the smallest value; return the differences and an upper bound of them."""
    low, high = int(column.min()), int(column.max())
    if low == high:
        return np.empty(0, np.int64), 1
    if high - low >= 2**62:
        return factorize(column.astype(np.int64))
    return np.subtract(column, low, dtype=np.int64), high - low + 1


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
