"""The nearest of many values to each of some times, in one pass and without sorting them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb import _native
from epprof_nb.arrays.ids import mask_as_rows
from epprof_nb.arrays.positions import positions
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from epprof_nb.arrays.types import BoolArray, IntArray


def first_from(values: IntArray, mask: BoolArray, times: IntArray) -> IntArray:
    """Return the row of the first of `values` at or after each of `times`.

    Parameters
    ----------
    values
        int64 array, in any order; sorted ones are the fastest.
    mask
        Rows to consider, at least one.
    times
        int64 array, ascending.

    Returns
    -------
    rows
        int64 array, one row per time. If all values are earlier, the row of the last one.

    Examples
    --------
    >>> first_from(np.array([9, 2, 5]), np.ones(3, bool), np.array([3, 6, 10])).tolist()
    [2, 0, 0]
    """
    if (values[1:] >= values[:-1]).all():
        rows = mask_as_rows(mask)
        of_mask = values[rows]
        at = np.minimum(positions(of_mask, times), len(of_mask) - 1)
        return at + rows.start if isinstance(rows, slice) else rows[at]
    row_of_time = np.full(len(times), MISSING, np.int64)
    earliest = np.full(len(times), np.iinfo(np.int64).max)
    values, times = (np.ascontiguousarray(column) for column in (values, times))
    mask = np.ascontiguousarray(mask)
    last_row = _native.find_first(row_of_time, earliest, values, mask, times)
    # A time without its own start has the start of the next time.
    following = np.where(row_of_time >= 0, np.arange(len(times)), len(times))
    following = np.minimum.accumulate(following[::-1])[::-1]
    return np.append(row_of_time, last_row)[following]


def last_until(values: IntArray, mask: BoolArray, times: IntArray) -> IntArray:
    """Return the row of the last of `values` at or before each of `times`.

    Parameters
    ----------
    values, mask, times
        As for `first_from`.

    Returns
    -------
    rows
        int64 array, one row per time; `MISSING` if all values are later.

    Examples
    --------
    >>> last_until(np.array([9, 2, 5]), np.ones(3, bool), np.array([1, 6, 10])).tolist()
    [-1, 2, 0]
    """
    if not mask.any():
        return np.full(len(times), MISSING, np.int64)
    rows = first_from(-values, mask, -times[::-1])[::-1]
    return np.where(values[rows] <= times, rows, MISSING)
