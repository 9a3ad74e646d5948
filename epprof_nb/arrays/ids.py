"""Finding rows by id: a table where ids are dense enough, a sort where they are not."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_SPARSE = 64
"""Largest range of ids a row for which a table is made; 8 bytes an id of the range."""


def find(keys: npt.NDArray[np.int64], wanted: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The row of each wanted id in `keys`; -1 where there is none.

    Parameters
    ----------
    keys
        Ids of the rows. Of several rows with one id any may be found.
    wanted
        Ids to find, in any order.
    """
    if not len(keys) or not len(wanted):
        return np.full(len(wanted), -1, np.int64)
    low, high = int(keys.min()), int(keys.max())
    if high - low <= _SPARSE * len(keys) + 1024:
        table = np.full(high - low + 2, -1, np.int64)
        table[keys - low] = np.arange(len(keys))
        inside = (wanted >= low) & (wanted <= high)
        return table[np.where(inside, wanted - low, high - low + 1)]
    order = np.argsort(keys, kind="stable")
    at = np.minimum(np.searchsorted(keys, wanted, sorter=order), len(keys) - 1)
    row = order[at]
    return np.where(keys[row] == wanted, row, -1)


def selection(keep: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_] | slice:
    """The rows of a mask as a slice where they follow each other: taking them copies nothing."""
    count = int(np.count_nonzero(keep))
    first = int(keep.argmax()) if count else 0
    return slice(first, first + count) if keep[first : first + count].all() else keep


def contains(keys: npt.NDArray[np.int64], wanted: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Where a wanted id is among `keys`."""
    return find(keys, wanted) >= 0
