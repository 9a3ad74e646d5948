"""Ids of rows: the row of an id, and the ids that occur."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from epprof_nb.arrays.chunks import chunks
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from epprof_nb.arrays.types import BoolArray, IntArray

_HASHED = 20_000
"""Fewer values are sorted. For this many or more, the hash table of pandas is worth its import."""
_DENSE = 16
"""Ids are dense if their range is at most this many times their number."""


class IdIndex:
    """Index from ids to rows.

    Dense ids, such as counters, are looked up in a table over their range, others by binary
    search.

    Parameters
    ----------
    ids
        int64 array, the id of each row. If several rows have the same id, the first is found;
        `MISSING` does not count as an id.

    Examples
    --------
    >>> IdIndex(np.array([10, 11, 13])).rows(np.array([13, 12])).tolist()
    [2, -1]
    """

    __slots__ = ("_count", "_low", "_rows", "_sorted")

    def __init__(self, ids: IntArray) -> None:
        self._sorted: IntArray | None = None
        self._low = 0
        self._rows: npt.NDArray[np.signedinteger[Any]] = np.empty(0, np.int32)
        self._count = 0
        if _is_range(ids):
            self._low, self._count = int(ids[0]), len(ids)
            return
        known = ids if not (ids == MISSING).any() else ids[ids != MISSING]
        if not len(known):
            return
        low, high = int(known.min()), int(known.max())
        if high - low < _DENSE * len(known) + 1024:
            self._low = low
            self._rows = np.full(high - low + 1, MISSING, row_dtype(len(ids)))
            for chunk in reversed(list(chunks(len(ids)))):
                at, rows = ids[chunk] - low, np.arange(chunk.start, chunk.stop)
                if known is not ids:
                    kept = ids[chunk] != MISSING
                    at, rows = at[kept], rows[kept]
                # NumPy keeps the last of several assignments to one element: the first row.
                self._rows[at[::-1]] = rows[::-1]
        else:
            rows = np.flatnonzero(ids != MISSING)
            order = np.argsort(known, kind="stable")
            self._sorted = known[order]
            self._rows = rows[order]

    def rows(self, ids: IntArray) -> IntArray:
        """Return the row of each of `ids` as int64; `MISSING` if no row has the id."""
        if self._count:
            rows = ids - self._low
            outside = rows.view(np.uint64) >= self._count
            if outside.any():
                rows[outside] = MISSING
            return rows
        if not len(self._rows):
            return np.full(len(ids), MISSING, np.int64)
        if self._sorted is None:
            # As unsigned integers, ids below the lowest one are too large as well. The table
            # has no row for `MISSING`, even if it lies within the range of the ids.
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


def contains(ids: IntArray, wanted: IntArray) -> BoolArray:
    """Return which of the `wanted` ids are among `ids`."""
    return IdIndex(ids).rows(wanted) >= 0


def values_at(values: npt.NDArray[np.integer[Any]], rows: npt.NDArray[np.integer[Any]]) -> IntArray:
    """Return the values at `rows`; `MISSING` for row `MISSING`."""
    if not len(values):
        return np.full(rows.shape, MISSING, np.int64)
    # The index `MISSING` selects the last element first.
    found: IntArray = values[rows].astype(np.int64, copy=False)
    found[rows == MISSING] = MISSING
    return found


def mask_as_slice(mask: BoolArray) -> BoolArray | slice:
    """Return a mask of consecutive rows as a slice, which selects them without a copy."""
    count = int(np.count_nonzero(mask))
    first = int(mask.argmax()) if count else 0
    return slice(first, first + count) if mask[first : first + count].all() else mask


def mask_as_rows(mask: BoolArray) -> IntArray | slice:
    """Return the rows of a mask; consecutive ones as a slice, which selects without a copy."""
    rows = mask_as_slice(mask)
    return rows if isinstance(rows, slice) else np.flatnonzero(mask)


def rows_as_slice(rows: IntArray) -> IntArray | slice:
    """Return ascending rows; consecutive ones as a slice, which selects without a copy."""
    if not len(rows) or int(rows[-1] - rows[0]) != len(rows) - 1:
        return rows
    return slice(int(rows[0]), int(rows[-1]) + 1)


def unique_values(values: IntArray) -> list[int]:
    """Return the unique values in ascending order; fast if there are few."""
    found: set[int] = set()
    for chunk in chunks(len(values)):
        part = values[chunk]
        # Usually the same value follows many times.
        changes = np.flatnonzero(part[1:] != part[:-1]) + 1
        found.update(_distinct(part[np.append(0, changes)]).tolist())
    return sorted(found)


def sorted_distinct(values: IntArray) -> IntArray:
    """Return the distinct values in ascending order; fast if there are many, unlike `np.unique`.

    Examples
    --------
    >>> sorted_distinct(np.array([3, 1, 3])).tolist()
    [1, 3]
    """
    ordered = np.sort(values)
    found: IntArray = ordered[np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]]
    return found


def _distinct(values: IntArray) -> IntArray:
    if len(values) < _HASHED:
        return np.unique(values)
    import pandas as pd

    return pd.unique(values)


def factorize(values: IntArray) -> tuple[IntArray, int]:
    """Number the distinct values by first appearance.

    Returns
    -------
    codes
        int64 array: the number of each value, from 0.
    count
        Number of distinct values.
    """
    if len(values) < _HASHED:
        _, first, codes = np.unique(values, return_index=True, return_inverse=True)
        number = np.empty(len(first), np.int64)
        number[np.argsort(first)] = np.arange(len(first))
        return number[codes], len(first)
    import pandas as pd

    hashed, distinct = pd.factorize(values)
    return hashed.astype(np.int64, copy=False), len(distinct)


def unique_inverse(ids: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.intp]]:
    """Return the unique values in ascending order, and the position of each element in them.

    The same as ``np.unique(ids, return_inverse=True)``, without a sort for small integers.
    """
    if ids.size and ids.min() == ids.max():
        return ids[:1], np.zeros(len(ids), np.intp)
    if ids.size and ids.min() >= 0 and ids.max() <= max(65536, 2 * ids.size):
        present = np.zeros(int(ids.max()) + 1, np.bool_)
        present[ids] = True
        if present.all():
            return np.arange(len(present)), ids
        return np.flatnonzero(present), (np.cumsum(present) - 1)[ids]
    return np.unique(ids, return_inverse=True)


def row_dtype(rows: int) -> type[np.signedinteger[Any]]:
    """Return the smaller dtype, int32 or int64, that holds the numbers of `rows` rows."""
    return np.int32 if rows < 2**31 else np.int64


def _is_range(ids: IntArray) -> bool:
    """Return whether each id is one more than the id before it, and none is `MISSING`."""
    if not len(ids):
        return False
    low = int(ids[0])
    if int(ids[-1]) - low != len(ids) - 1 or low <= MISSING <= int(ids[-1]):
        return False
    return all(
        np.array_equal(ids[chunk] - low, np.arange(chunk.start, chunk.stop))
        for chunk in chunks(len(ids))
    )
