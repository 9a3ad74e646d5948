"""Changes of the events whose effect on the critical path is computed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from epprof_nb.analysis.critical_path.columns import Rows
    from epprof_nb.arrays.types import IntArray

_NONE = np.empty(0, np.int64)
_NO_PARTS = np.empty(0, np.float64)


class Owners(NamedTuple):
    """Owners of activities and API calls, instead of ops.

    Attributes
    ----------
    of_activities, of_calls
        int32 arrays: the owner of each, from 0; `MISSING` for none.
    size
        Number of owners.
    """

    of_activities: Rows
    of_calls: Rows
    size: int


class Removed(NamedTuple):
    """Work that a change of the code would remove.

    Attributes
    ----------
    calls, activities
        int64 arrays: rows of the removed API calls and activities.
    thread, start, end
        int64 arrays of one length: removed intervals, ns, of the thread with the operating-system
        id ``thread``.
    remains
        float64 array, one value per element of ``activities``: the part of its time that remains,
        0 to 1. Empty if nothing remains.
    """

    calls: IntArray = _NONE
    activities: IntArray = _NONE
    thread: IntArray = _NONE
    start: IntArray = _NONE
    end: IntArray = _NONE
    remains: npt.NDArray[np.float64] = _NO_PARTS


class HostTime(NamedTuple):
    """Time of threads.

    Attributes
    ----------
    thread, start, end
        int64 arrays of one length: numbers of threads, and intervals, ns.
    """

    thread: IntArray
    start: IntArray
    end: IntArray


NO_TIME = HostTime(_NONE, _NONE, _NONE)


class Changes(NamedTuple):
    """Factors of durations.

    Attributes
    ----------
    of_ops
        uint8 array, one value per op, then one per owner, and one for none: a row of ``factors``.
    factors
        float64 array, rows x 3: factors of host code, of work of a device, and of delays before it.
        Calls with a delay factor of 0 do not exist: they wait for nothing.
    activity_ns
        int64 array: durations of the activities.
    freed_ns
        int64 array: the part of the delay before each activity that is left out. Empty for none.
    added_ns
        int64 array, one value per op: time that its thread spends at its end. Empty for none.
    left_out
        Time of threads that they do not take.
    without_waits
        Whether API calls that wait take no time, and no longer wait.
    """

    of_ops: npt.NDArray[np.uint8]
    factors: npt.NDArray[np.float64]
    activity_ns: IntArray
    freed_ns: IntArray = _NONE
    added_ns: IntArray = _NONE
    left_out: HostTime = NO_TIME
    without_waits: bool = False
