"""Orders of integers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from epprof_nb.arrays.types import IntArray


def stable_order(values: IntArray) -> IntArray:
    """Return the rows in ascending order of their values; equal ones keep their order.

    It is what a stable ``argsort`` returns, several times faster where values and rows fit into 63
    bits together: NumPy sorts numbers faster than rows.

    Examples
    --------
    >>> stable_order(np.array([30, -10, 30, 20])).tolist()
    [1, 3, 0, 2]
    """
    n = len(values)
    bits = max(n - 1, 0).bit_length()
    low, high = (int(values.min()), int(values.max())) if n else (0, 0)
    if (high - low).bit_length() + bits > 63:
        return np.argsort(values, kind="stable")
    key = values - low
    key <<= bits
    key |= np.arange(n)
    key.sort()
    key &= (1 << bits) - 1
    return key


def in_order(rows: IntArray, values: IntArray) -> IntArray:
    """Return rows in ascending order of their values. Rows of events mostly have it already.

    Examples
    --------
    >>> in_order(np.array([4, 5, 6]), np.array([30, 10, 30])).tolist()
    [5, 4, 6]
    """
    if (values[1:] >= values[:-1]).all():
        return rows
    return rows[np.argsort(values, kind="stable")]
