"""Time that a profile would end sooner if some of its work did not exist, or were shorter."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.critical_path.chain import CriticalPath
from epprof_nb.arrays.ids import unique_values
from epprof_nb.arrays.intervals import covered_between, union

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.critical_path.changed_durations import Removed
    from epprof_nb.arrays.types import IntArray

_SKIPPED = 0.9
"""Minimum part of a call that is within removed time of its thread for it to be removed."""


def saving_without(index: ProfileIndex, removed: Removed) -> int:
    """Return how much shorter the critical path is without some work, ns.

    It is less than the time of the work where other work is the next limit. API calls within
    removed time of a thread are removed; the work that they launched remains.

    Examples
    --------
    >>> from epprof_nb.analysis.base.index import ProfileIndex
    >>> from epprof_nb.analysis.critical_path.changed_durations import Removed
    >>> from epprof_nb.testing import synthetic_profile
    >>> index = ProfileIndex(synthetic_profile(activities=100))
    >>> saving_without(index, Removed())
    0
    """
    path = index.cached(CriticalPath, "launch")
    if not path.length_ns:
        return 0
    is_removed = np.zeros(len(index.profile.tables["api_calls"]), np.bool_)
    is_removed[removed.calls] = True
    is_removed[_calls_within(index, removed)] = True
    removed = removed._replace(calls=np.flatnonzero(is_removed))
    return max(path.length_ns - path.input.length_without(removed), 0)


def _calls_within(index: ProfileIndex, removed: Removed) -> IntArray:
    """Return the rows of the calls in removed time of their thread."""
    calls = index.profile.tables["api_calls"]
    found = [np.empty(0, np.int64)]
    for thread in unique_values(removed.thread):
        of_thread = removed.thread == thread
        rows = index.calls_of_thread(thread)
        start, end = calls["start_ns"][rows], calls["end_ns"][rows]
        intervals = union(removed.start[of_thread], removed.end[of_thread])
        inside = covered_between(*intervals, start, end)
        found.append(rows[(inside > 0) & (inside >= _SKIPPED * (end - start))])
    return np.concatenate(found)
