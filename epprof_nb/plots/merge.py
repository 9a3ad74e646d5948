"""Rectangles too short to be told apart, put together; what is long stays itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Merged:
    """Rectangles; ``event`` is the row of the first event that each stands for."""

    key: Ints
    start: Ints
    end: Ints
    event: Ints


def merge(key: Ints, start: Ints, end: Ints, shortest: int) -> Merged:
    """Put together what is shorter than `shortest` and less than that apart.

    Parameters
    ----------
    key
        int64 array: only rectangles of one key are put together.
    start, end
        int64 arrays, nanoseconds.
    shortest
        What can be told apart, nanoseconds.

    Returns
    -------
    merged
        In order of key, then start.
    """
    order = np.lexsort((start, key))
    key, start, end = key[order], start[order], end[order]
    short = end - start < shortest
    joins = np.zeros(len(key), np.bool_)
    joins[1:] = (key[1:] == key[:-1]) & short[1:] & short[:-1] & (start[1:] - end[:-1] < shortest)
    first = np.flatnonzero(~joins)
    if not len(first):
        return Merged(key, start, end, order)
    return Merged(key[first], start[first], np.maximum.reduceat(end, first), order[first])
