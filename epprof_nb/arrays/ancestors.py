"""Ancestors in trees that store the row of each row's parent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb import _native
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from epprof_nb.arrays.types import BoolArray, IntArray


def nearest_ancestor(parent: IntArray, mask: BoolArray) -> IntArray:
    """Return the nearest row in `mask`: each row itself or an ancestor; `MISSING` if none.

    The cost grows with the logarithm of the depth, unless parents precede their rows.

    Examples
    --------
    >>> nearest_ancestor(np.array([-1, 0, 1]), np.array([False, True, False])).tolist()
    [-1, 1, 1]
    """
    found = np.empty(len(parent), np.int64)
    columns = np.ascontiguousarray(parent, np.int64), np.ascontiguousarray(mask)
    if _native.find_nearest(found, *columns):
        return found
    jump = np.append(np.where(mask, np.arange(len(parent)), parent), MISSING)
    while True:
        next_jump = jump[jump]
        if np.array_equal(next_jump, jump):
            return jump[:-1]
        jump = next_jump
