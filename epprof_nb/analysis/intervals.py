"""Sets of time intervals, as sorted arrays of starts and ends in nanoseconds."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from epprof_nb.analysis.lookup import pieces

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
    # As activities are recorded, they are in order as a rule.
    disorder = (starts[1:] < starts[:-1]).any()
    order = np.argsort(starts, kind="stable") if disorder else None
    opened: list[Times] = []
    closed: list[Times] = []
    reached = starts.min()
    for piece in pieces(len(starts)):
        rows = piece if order is None else order[piece]
        start, reach = starts[rows], np.maximum.accumulate(ends[rows])
        np.maximum(reach, reached, out=reach)
        before = np.concatenate(([reached], reach[:-1]))
        opens = start > before
        opens[0] |= not opened
        at = np.flatnonzero(opens)
        opened.append(start[at])
        closed.append(before[at])
        reached = reach[-1]
    # Before the first interval nothing was open.
    return np.concatenate(opened), np.concatenate([*closed, [reached]])[1:]


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
