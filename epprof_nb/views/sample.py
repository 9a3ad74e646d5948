"""Choosing which events to draw when there are too many: the longest of every moment."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


def longest_of_each_moment(
    start_ns: npt.NDArray[Any],
    duration_ns: npt.NDArray[Any],
    lane: npt.NDArray[Any],
    limit: int,
) -> Ints:
    """Rows of at most `limit` events that stand for all, in ascending order.

    The stretch is cut into equal moments, as many as fit; each lane keeps the longest event of
    each moment, and what room is left goes to the longest of the others.

    Parameters
    ----------
    start_ns, duration_ns
        int64 nanoseconds, one value an event.
    lane
        Integer, what must not hide what: thread and depth, or stream.
    limit
        How many to keep at most.
    """
    count = len(start_ns)
    if count <= limit:
        return np.arange(count, dtype=np.int64)
    if limit <= 0:
        return np.empty(0, np.int64)
    names, lanes = np.unique(lane, return_inverse=True)
    moments = max(limit // (len(names) * 4), 1)
    low, high = int(start_ns.min()), int(start_ns.max())
    # The width of a moment in whole ns, rounded up, keeps every event below `moments`.
    width = max((high - low) // moments + 1, 1)
    moment = (start_ns - low) // width
    key = lanes.astype(np.int64) * moments + moment
    order = np.lexsort((-duration_ns, key))
    ordered = key[order]
    first = np.flatnonzero(np.diff(ordered, prepend=-1))
    begin = np.repeat(first, np.diff(np.append(first, count)))
    rank = np.arange(count) - begin
    # All firsts of their moment come before all seconds, and so on; the longest first.
    best = np.lexsort((-duration_ns[order], np.where(rank < 3, rank, 3)))
    return np.sort(order[best[:limit]])
