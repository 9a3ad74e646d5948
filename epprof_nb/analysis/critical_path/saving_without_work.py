"""Time that a profile would end sooner if some of its work did not exist, or were shorter."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.critical_path.chain import CriticalPath
from epprof_nb.arrays.ids import unique_values
from epprof_nb.arrays.intervals import covered_between, union

if TYPE_CHECKING:
    from collections.abc import Sequence

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.critical_path.changed_durations import Removed
    from epprof_nb.arrays.types import IntArray

_SKIPPED = 0.9
"""Minimum part of a call that is within removed time of its thread for it to be removed."""


def saving_without(index: ProfileIndex, removed: Removed) -> int:
    """Return how much shorter the critical path is without some work, ns; see `savings_without`.

    Examples
    --------
    >>> from epprof_nb.analysis.base.index import ProfileIndex
    >>> from epprof_nb.analysis.critical_path.changed_durations import Removed
    >>> from epprof_nb.testing import synthetic_profile
    >>> index = ProfileIndex(synthetic_profile(activities=100))
    >>> saving_without(index, Removed())
    0
    """
    return savings_without(index, [removed])[0]


def savings_without(index: ProfileIndex, removals: Sequence[Removed]) -> list[int]:
    """Return how much shorter the critical path is without each of several kinds of work, ns.

    It is less than the time of the work where other work is the next limit. API calls within
    removed time of a thread are removed; the work that they launched remains. Several savings take
    little longer than one.
    """
    path = index.cached(CriticalPath, "launch")
    savings = [0] * len(removals)
    if not path.length_ns:
        return savings
    some = [k for k, removed in enumerate(removals) if any(map(len, removed))]
    lengths = path.input.lengths_without([_with_calls(index, removals[k]) for k in some])
    for k, length in zip(some, lengths, strict=True):
        savings[k] = max(path.length_ns - length, 0)
    return savings


def _with_calls(index: ProfileIndex, removed: Removed) -> Removed:
    """Return work with the calls in its time of threads."""
    is_removed = np.zeros(len(index.profile.tables["api_calls"]), np.bool_)
    is_removed[removed.calls] = True
    is_removed[_calls_within(index, removed)] = True
    return removed._replace(calls=np.flatnonzero(is_removed))


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
        touched = np.flatnonzero(inside > 0)
        is_within = inside[touched] >= _SKIPPED * (end[touched] - start[touched])
        found.append(rows[touched[is_within]])
    return np.concatenate(found)
