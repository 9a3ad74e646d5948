"""Measures of device work, summed by group: by op, by stream or by kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb import _native
from epprof_nb.arrays.chunks import chunks
from epprof_nb.arrays.intervals import covered_by_group

if TYPE_CHECKING:
    import numpy.typing as npt

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray

MEASURES = (
    "activities", "device_ns", "bytes", "kernels", "memcpys", "memsets", "copied_bytes", "copy_ns",
    "delay_ns", "delays",
)  # fmt: skip
"""Names of the measures; see `epprof_nb.analysis.base.op_totals.Totals`."""


def activity_sums(
    index: ProfileIndex, groups: npt.NDArray[np.signedinteger[Any]], n: int
) -> dict[str, IntArray]:
    """Sum the device work of each group.

    Parameters
    ----------
    index
        Index of the profile.
    groups
        Integer array: the group of each activity, from 0 to ``n - 1``; `MISSING` for none.
    n
        Number of groups.

    Returns
    -------
    sums
        Name of a measure to int64 array, shape ``(n + 1,)``; the last element is the sum over
        the activities without a group.

    Examples
    --------
    >>> from epprof_nb.analysis.base.index import ProfileIndex
    >>> from epprof_nb.testing import synthetic_profile
    >>> index = ProfileIndex(synthetic_profile(activities=100))
    >>> activity_sums(index, np.zeros(100, np.int32), 1)["kernels"].tolist()
    [97, 0]
    """
    sums = np.zeros((len(MEASURES), n + 1), np.int64)
    add_activities(sums, index, groups)
    return dict(zip(MEASURES, sums, strict=True))


def add_activities(
    sums: npt.NDArray[np.int64], index: ProfileIndex, groups: npt.NDArray[np.signedinteger[Any]]
) -> None:
    """Add the device work of each group to sums, which have a row for each of `MEASURES`."""
    activities = index.profile.tables["activities"]
    call_start = index.profile.tables["api_calls"]["start_ns"]
    columns = [activities[name] for name in ("start_ns", "duration_ns", "bytes")]
    for chunk in chunks(len(activities)):
        _native.add_activities(
            sums,
            np.ascontiguousarray(groups[chunk], np.int32),
            index.kinds[chunk],
            index.is_device_work[chunk],
            # A column of equal values may repeat one in memory.
            *(np.ascontiguousarray(column[chunk]) for column in columns),
            index.calls.rows(activities["correlation_id"][chunk]),
            np.ascontiguousarray(call_start),
        )


def busy_by_group(index: ProfileIndex, groups: npt.NDArray[np.int32], n: int) -> IntArray:
    """Return the time in which each group works; work that overlaps counts once.

    Parameters
    ----------
    index
        Index of the profile.
    groups
        int32 array: the group of each activity, from 0 to ``n - 1``; ignored for activities that
        are not device work.
    n
        Number of groups.

    Returns
    -------
    busy
        int64 array, shape ``(n,)``, nanoseconds.
    """
    activities, work = index.profile.tables["activities"], index.is_device_work
    start, duration = map(np.ascontiguousarray, (activities["start_ns"], activities["duration_ns"]))
    busy = np.zeros(n, np.int64)
    last = np.full((2, n), np.iinfo(np.int64).min)
    if _native.add_covered(busy, last, groups, work, start, duration):
        return busy
    rows = np.flatnonzero(work)
    begin = start[rows]
    return covered_by_group(groups[rows].astype(np.int64), begin, begin + duration[rows], n)
