"""Sets of time intervals, as sorted arrays of starts and ends in nanoseconds."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Times: TypeAlias = npt.NDArray[np.int64]


def union(starts: Times, ends: Times) -> tuple[Times, Times]:
    """Merge intervals that overlap or touch.

    Parameters
    ----------
    starts, ends
        int64 arrays of one length, nanoseconds, in any order. Intervals that do not end after
        their start are left out.

    Returns
    -------
    starts, ends
        int64 arrays: disjoint intervals in ascending order.
    """
    real = ends > starts
    if not real.all():
        starts, ends = starts[real], ends[real]
    # As activities are recorded, they are in order as a rule.
    if (starts[1:] < starts[:-1]).any():
        order = np.argsort(starts, kind="stable")
        starts, ends = starts[order], ends[order]
    reach = np.maximum.accumulate(ends)
    opens = np.ones(len(starts), np.bool_)
    opens[1:] = starts[1:] > reach[:-1]
    first = np.flatnonzero(opens)
    last = np.append(first[1:], len(starts)) - 1 if len(first) else first
    return starts[first], reach[last]


def complement(starts: Times, ends: Times, begin: int, end: int) -> tuple[Times, Times]:
    """Return what the disjoint, ascending intervals leave free between `begin` and `end`.

    Parameters
    ----------
    starts, ends
        int64 arrays as `union` returns them, nanoseconds.
    begin, end
        The window, nanoseconds.

    Returns
    -------
    starts, ends
        int64 arrays: the free intervals in ascending order, none of them empty.
    """
    free_from = np.maximum(np.concatenate(([begin], ends)), begin)
    free_until = np.minimum(np.concatenate((starts, [end])), end)
    free = free_until > free_from
    return free_from[free], free_until[free]
