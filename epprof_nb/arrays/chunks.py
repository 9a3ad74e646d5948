"""Row ranges: chunks that fit the cache, and concatenated ranges."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epprof_nb.arrays.types import IntArray


def chunks(length: int, size: int = 1 << 16) -> Iterator[slice]:
    """Split `length` rows into slices; columns of the default `size` fit the CPU cache.

    Examples
    --------
    >>> list(chunks(5, 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return (slice(low, min(low + size, length)) for low in range(0, length, size))


def concat_ranges(begin: IntArray, size: IntArray) -> IntArray:
    """Concatenate the ranges that start at `begin` and have `size` numbers each.

    Examples
    --------
    >>> concat_ranges(np.array([3, 10]), np.array([2, 3])).tolist()
    [3, 4, 10, 11, 12]
    """
    shift = begin - (np.cumsum(size) - size)
    numbers = np.repeat(shift, size)
    numbers += np.arange(len(numbers))
    return numbers
