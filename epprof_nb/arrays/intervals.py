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
    if not len(starts):
        return starts, ends
    # As many have ended as have started where nothing is open: which end is whose does not matter.
    starts, ends = _ascending(starts), _ascending(ends)
    opens = np.flatnonzero(starts[1:] > ends[:-1]) + 1
    return starts[np.append(0, opens)], ends[np.append(opens, len(ends)) - 1]


def _ascending(times: Times) -> Times:
    """Return the times in order, as they are as a rule."""
    return np.sort(times) if (times[1:] < times[:-1]).any() else times


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
