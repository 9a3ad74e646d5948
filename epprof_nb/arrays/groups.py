"""Joins and groups over integer columns, vectorised."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from epprof_nb.data.schema import MISSING

if TYPE_CHECKING:
    from collections.abc import Iterator


class RowIndex:
    """Find the row of an id.

    Parameters
    ----------
    ids
        int64 array, one id a row. Of rows with the same id the first counts; `MISSING` is no id.
    """

    __slots__ = ("_count", "_low", "_rows", "_sorted")

    def __init__(self, ids: npt.NDArray[np.int64]) -> None:
        self._sorted: npt.NDArray[np.int64] | None = None
        self._low = 0
        self._rows: npt.NDArray[np.signedinteger[Any]] = np.empty(0, np.int32)
        self._count = 0
        if _counts_up(ids):
            self._low, self._count = int(ids[0]), len(ids)
            return
        known = ids if not (ids == MISSING).any() else ids[ids != MISSING]
        if not len(known):
            return
        low, high = int(known.min()), int(known.max())
        # Ids are counters: a table over their range is small, and far faster than a search.
        if high - low < 8 * len(known) + 1024:
            self._low = low
            self._rows = np.full(high - low + 1, MISSING, _row_dtype(len(ids)))
            for piece in reversed(list(pieces(len(ids)))):
                at, rows = ids[piece] - low, np.arange(piece.start, piece.stop)
                if known is not ids:
                    kept = ids[piece] != MISSING
                    at, rows = at[kept], rows[kept]
                # Of several assignments to one place the last one stays: the first row.
                self._rows[at[::-1]] = rows[::-1]
        else:
            rows = np.flatnonzero(ids != MISSING)
            order = np.argsort(known, kind="stable")
            self._sorted = known[order]
            self._rows = rows[order]

    def rows(self, ids: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the row of each of `ids` (int64 array); `MISSING` where there is none."""
        if self._count:
            rows = ids - self._low
            outside = rows.view(np.uint64) >= self._count
            if outside.any():
                rows[outside] = MISSING
            return rows
        if not len(self._rows):
            return np.full(len(ids), MISSING, np.int64)
        if self._sorted is None:
            # As unsigned numbers, those below the lowest id are too large as well. No row was
            # entered for `MISSING`, should it lie between the ids.
            at = ids - self._low
            outside = at.view(np.uint64) >= len(self._rows)
            if not outside.any():
                return self._rows[at].astype(np.int64)
            at[outside] = 0
            found = self._rows[at].astype(np.int64)
            found[outside] = MISSING
            return found
        at = np.minimum(np.searchsorted(self._sorted, ids), len(self._sorted) - 1)
        return np.where(self._sorted[at] == ids, self._rows[at], MISSING)


def _counts_up(ids: npt.NDArray[np.int64]) -> bool:
    """Whether each id is one above the id before it, and none is `MISSING`."""
    if not len(ids):
        return False
    low = int(ids[0])
    if int(ids[-1]) - low != len(ids) - 1 or low <= MISSING <= int(ids[-1]):
        return False
    return all(
        np.array_equal(ids[piece] - low, np.arange(piece.start, piece.stop))
        for piece in pieces(len(ids))
    )


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
    rows = len(columns[0])
    codes, reach = np.zeros(rows, np.int64), 1
    if not rows:
        return codes, codes.copy()
    for column in columns:
        values, span = _from_zero(column)
        if span == 1:
            continue
        if reach == 1:
            codes, reach = values, span
            continue
        if reach * span > _widest(rows):
            reach = len(_number(codes, reach))
        if reach * span > _widest(rows):
            span = len(_number(values, span))
        # Two numbers of rows at most: their product is far below what int64 holds.
        codes *= span
        codes += values
        reach *= span
    return codes, _number(codes, reach)


def _widest(rows: int) -> int:
    """Return the greatest range of codes that is numbered by a table, not by hashing."""
    return 2 * rows + 1024


def _number(codes: npt.NDArray[np.int64], reach: int) -> npt.NDArray[np.int64]:
    """Number codes, from 0 up to `reach`, by first appearance, in place; return the first rows."""
    rows = len(codes)
    if reach > _widest(rows):
        codes[:] = pd.factorize(codes)[0]
        first = np.empty(int(codes.max(initial=-1)) + 1, np.int64)
        for piece in reversed(list(pieces(rows))):
            first[codes[piece][::-1]] = np.arange(piece.start, piece.stop)[::-1]
        return first
    first_of = np.full(reach, MISSING, _row_dtype(rows))
    for piece in reversed(list(pieces(rows))):
        first_of[codes[piece][::-1]] = np.arange(piece.start, piece.stop)[::-1]
    seen = np.flatnonzero(first_of >= 0)
    first = first_of[seen].astype(np.int64)
    order = np.argsort(first)
    number = first_of
    number[seen[order]] = np.arange(len(seen))
    for piece in pieces(rows):
        codes[piece] = number[codes[piece]]
    return first[order]


def _from_zero(column: npt.NDArray[np.integer[Any]]) -> tuple[npt.NDArray[np.int64], int]:
    """Return the values less the smallest one, and one more than the largest of these."""
    low, high = int(column.min()), int(column.max())
    if low == high:
        return np.empty(0, np.int64), 1
    if high - low >= 2**62:
        codes, distinct = pd.factorize(column.astype(np.int64))
        return codes.astype(np.int64), len(distinct)
    return np.subtract(column, low, dtype=np.int64), high - low + 1


def different(
    codes: npt.NDArray[np.int64], values: npt.NDArray[np.int64], groups: int
) -> npt.NDArray[np.int64]:
    """Count the different values of each group; `MISSING` is no value.

    Parameters
    ----------
    codes
        int64 array, the group of each value, from 0.
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
        for piece in pieces(len(values)):
            seen[codes[piece], values[piece] - low] = True
        if low <= MISSING <= high:
            seen[:, MISSING - low] = False
        counts: npt.NDArray[np.int64] = seen.sum(axis=1, dtype=np.int64)
        return counts
    first = group(codes, values)[1]
    return np.bincount(codes[first[values[first] != MISSING]], minlength=groups).astype(np.int64)


def distinct(values: npt.NDArray[np.int64]) -> list[int]:
    """Return the different values, ascending: fast where there are few."""
    found: set[int] = set()
    for piece in pieces(len(values)):
        mine = values[piece]
        found.update((mine[:1] if (mine == mine[0]).all() else pd.unique(mine)).tolist())
    return sorted(found)


def pieces(length: int, size: int = 1 << 16) -> Iterator[slice]:
    """Cut `length` rows into slices whose columns fit the cache."""
    return (slice(low, min(low + size, length)) for low in range(0, length, size))


def ragged(begin: npt.NDArray[np.int64], size: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the numbers of ranges one after another: `size` (int64) of them from each `begin`."""
    shift = begin - (np.cumsum(size) - size)
    numbers = np.repeat(shift, size)
    numbers += np.arange(len(numbers))
    return numbers


def _row_dtype(rows: int) -> type[np.signedinteger[Any]]:
    return np.int32 if rows < 2**31 else np.int64


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
