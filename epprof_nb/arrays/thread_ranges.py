"""The first event of a thread in each of its time ranges."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from epprof_nb.arrays.types import IntArray


def first_in_ranges(
    threads: IntArray,
    starts: IntArray,
    range_threads: IntArray,
    range_starts: IntArray,
    range_ends: IntArray,
) -> IntArray:
    """Return the time range of the same thread in which each event is the first to begin.

    Parameters
    ----------
    threads, starts
        Thread and start of each event.
    range_threads, range_starts, range_ends
        Thread, start and end of each range. Ranges of one thread do not overlap.

    Returns
    -------
    positions
        int64 array, one position of a range per event; `MISSING` for an event outside of the
        ranges, and for one that is not the first in its range.

    Examples
    --------
    >>> import numpy as np
    >>> one = np.ones(3, np.int64)
    >>> first_in_ranges(one, np.array([5, 6, 20]), one[:1], np.array([4]), np.array([9])).tolist()
    [0, -1, -1]
    """
    positions = np.full(len(starts), MISSING, np.int64)
    for thread in np.intersect1d(threads, range_threads):
        ranges = np.flatnonzero(range_threads == thread)
        ranges = ranges[np.argsort(range_starts[ranges], kind="stable")]
        rows = np.flatnonzero(threads == thread)
        rows = rows[np.argsort(starts[rows], kind="stable")]
        at = np.searchsorted(range_starts[ranges], starts[rows], side="right") - 1
        rows, at = rows[at >= 0], at[at >= 0]
        inside = (starts[rows] < range_ends[ranges[at]]) & (np.diff(at, prepend=-1) != 0)
        positions[rows[inside]] = ranges[at[inside]]
    return positions
