"""Joins and groups over integer columns, vectorised."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from epprof_nb.schema import MISSING


class RowIndex:
    """Find the row of an id.

    Parameters
    ----------
    ids
        int64 array, one id a row. Of rows with the same id the first counts; `MISSING` is no id.
    """

    __slots__ = ("_low", "_rows", "_sorted")

    def __init__(self, ids: npt.NDArray[np.int64]) -> None:
        rows = np.flatnonzero(ids != MISSING)
        ids = ids[rows]
        low, high = (int(ids.min()), int(ids.max())) if len(ids) else (0, -1)
        # Ids are counters: a table over their range is small, and far faster than a search.
        dense = high - low < 8 * len(ids) + 1024
        self._low = low
        self._sorted: npt.NDArray[np.int64] | None = None
        if dense:
            self._rows = np.full(high - low + 1, MISSING, np.int64)
            self._rows[ids[::-1] - low] = rows[::-1]
        else:
            order = np.argsort(ids, kind="stable")
            self._sorted = ids[order]
            self._rows = rows[order]

    def rows(self, ids: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the row of each of `ids` (int64 array); `MISSING` where there is none."""
        if not len(self._rows):
            return np.full(len(ids), MISSING, np.int64)
        if self._sorted is None:
            # As unsigned numbers, those below the lowest id are too large as well. No row was
            # entered for `MISSING`, should it lie between the ids.
            at = ids - self._low
            outside = at.view(np.uint64) >= len(self._rows)
            if not outside.any():
                return self._rows[at]
            at[outside] = 0
            found = self._rows[at]
            found[outside] = MISSING
            return found
        at = np.minimum(np.searchsorted(self._sorted, ids), len(self._sorted) - 1)
        return np.where(self._sorted[at] == ids, self._rows[at], MISSING)


def group(
    *columns: npt.NDArray[np.integer[Any]],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return numbers for the distinct combinations of the values of several columns.

    Parameters
    ----------
    columns
        Integer arrays of one length, at least one.

    Returns
    -------
    codes
        int64 array: the number of each row's combination, from 0, by first appearance.
    first
        int64 array: the first row of each combination.
    """
    codes, reach = np.zeros(len(columns[0]), np.int64), 1
    for column in columns:
        values, span = _from_zero(column)
        if reach * span >= 2**62:
            codes, distinct = pd.factorize(codes)
            reach = max(len(distinct), 1)
        if reach * span >= 2**62:
            values, distinct = pd.factorize(values)
            span = max(len(distinct), 1)
        if span > 1:
            codes = codes * span + values
            reach *= span
    codes = pd.factorize(codes)[0].astype(np.int64)
    first = np.empty(int(codes.max(initial=-1)) + 1, np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    return codes, first


def _from_zero(column: npt.NDArray[np.integer[Any]]) -> tuple[npt.NDArray[np.int64], int]:
    """Return the values less the smallest one, and one more than the largest of these."""
    if not len(column):
        return np.zeros(0, np.int64), 1
    values = np.array(column, np.int64)
    low, high = int(values.min()), int(values.max())
    if high - low >= 2**62:
        codes, distinct = pd.factorize(values)
        return codes.astype(np.int64), len(distinct)
    return values - low, high - low + 1


def add_up(
    codes: npt.NDArray[np.int64], values: npt.NDArray[np.int64], groups: int
) -> npt.NDArray[np.int64]:
    """Sum `values` by group, in integers: exact where ``np.bincount`` would round.

    Parameters
    ----------
    codes
        int64 array, the group of each value, from 0; `MISSING` counts for no group.
    values
        int64 array of the same length.
    groups
        Number of groups.

    Returns
    -------
    sums
        int64 array, shape ``(groups + 1,)``; the last is the sum of those without a group.
    """
    sums = np.zeros(groups + 1, np.int64)
    np.add.at(sums, codes, values)
    return sums
