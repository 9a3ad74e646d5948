"""Work that the critical path awaits: by API calls, for devices; by streams, for events.

``native/analysis/critical_path.cpp`` follows the edge from the end of a wait to this work. If the
call that recorded an event is unknown, ``event_for`` of ``critical_path_lanes.h`` beside it chooses
the work that the stream waits for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.device_work import MEMCPY
from epprof_nb.analysis.critical_path.columns import MAX_NS
from epprof_nb.analysis.critical_path.lanes import lane_of_stream
from epprof_nb.arrays.ids import values_at
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    import numpy.typing as npt

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.critical_path.columns import Columns, Rows
    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.data.names import CategoryColumn

NO_WAIT, _LANE, _CONTEXT, _ALL, THREAD, _MARK, TIME, OP = range(8)
"""Kinds of waits of an API call, as the native core numbers them."""
_NO_WORK = -2
"""Mark of an event before which nothing was launched on its stream."""


class EventMarks:
    """The work for which awaited events stand: what their streams were given before them.

    Correlation ids ascend, so that work has lower ones.

    Attributes
    ----------
    mark_of_activity
        int32 array: the mark of each activity; `MISSING` for none. Only the last work that an event
        stands for has one, because the work of a stream is in order.
    """

    def __init__(self, index: ProfileIndex, lane: Rows, streams: tuple[IntArray, IntArray]) -> None:
        activities = index.profile.tables["activities"]
        self.mark_of_activity = np.full(len(lane), MISSING, np.int32)
        self._rows = np.flatnonzero(activities["event_correlation_id"] != MISSING)
        self._marks = np.full(len(self._rows), _NO_WORK, np.int32)
        if not len(self._rows):
            return
        correlation = activities["correlation_id"]
        work = np.flatnonzero(index.is_device_work & (correlation != MISSING))
        work = work[np.lexsort((correlation[work], lane[work]))]
        recorded = activities["event_correlation_id"][self._rows]
        of_event = lane_of_stream(
            streams, *(activities[f"event_{name}_id"][self._rows] for name in ("context", "stream"))
        )
        last = np.full(len(self._rows), MISSING)
        for number in np.unique(of_event[of_event != MISSING]).tolist():
            begin, end = np.searchsorted(lane[work], [number, number + 1])
            asked = of_event == number
            before = np.searchsorted(correlation[work[begin:end]], recorded[asked])
            last[asked] = np.where(before > 0, begin + before - 1, MISSING)
        # All work of the launch, such as the nodes of a graph, has the mark.
        is_first = np.diff(lane[work], prepend=MISSING) != 0
        is_first |= np.diff(correlation[work], prepend=MISSING) != 0
        launch = np.append(np.cumsum(is_first) - 1, MISSING)
        found = np.unique(launch[last[last != MISSING]])
        number_of = np.full(len(work) + 1, MISSING, np.int32)
        number_of[found] = np.arange(len(found))
        self.mark_of_activity[work] = number_of[launch[:-1]]
        self._marks = np.where(last == MISSING, _NO_WORK, number_of[launch[last]]).astype(np.int32)

    def marks(self, rows: IntArray) -> Rows:
        """Return the marks of synchronizations: `MISSING` if the event is unknown."""
        if not len(self._rows):
            return np.full(len(rows), MISSING, np.int32)
        at = np.minimum(np.searchsorted(self._rows, rows), len(self._rows) - 1)
        return np.where(self._rows[at] == rows, self._marks[at], np.int32(MISSING))


def waiting_calls(
    index: ProfileIndex, call: Rows, lane: Rows, end: IntArray, events: EventMarks
) -> tuple[npt.NDArray[np.uint8], Rows]:
    """Return how each API call waits, and the lane or mark that it waits for.

    To wait for a context is to wait for one of its lanes.
    """
    activities, calls = (index.profile.tables[name] for name in ("activities", "api_calls"))
    names = calls.names("name")
    # A synchronization without a record waits for everything.
    wait = np.where(_named(names, "Synchronize"), np.uint8(_ALL), np.uint8(NO_WAIT))
    call_lane = np.zeros(len(calls), np.int32)

    rows = _blocking_copies(index, call, end)
    wait[call[rows]], call_lane[call[rows]] = _LANE, lane[rows]

    rows = np.flatnonzero(activities.names("kind").equals("synchronization") & (call >= 0))
    name = activities.names("name").take(rows)
    of_stream = _named(name, "stream", "event") & (activities["stream_id"][rows] != MISSING)
    how = np.where(of_stream, _LANE, _CONTEXT)
    # The call that makes a stream wait returns at once.
    how[_named(name, "wait")] = NO_WAIT
    mark = events.marks(rows)
    is_known = (mark != MISSING) & (how != NO_WAIT)
    wait[call[rows]] = np.where(is_known, _MARK, how)
    call_lane[call[rows]] = np.where(is_known, np.maximum(mark, MISSING), lane[rows])
    return wait, call_lane


def _blocking_copies(index: ProfileIndex, call: Rows, end: IntArray) -> IntArray:
    """Return the rows of the copies whose call returned after they ended."""
    activities, calls = (index.profile.tables[name] for name in ("activities", "api_calls"))
    rows = np.flatnonzero((index.kinds == MEMCPY) & (call >= 0))
    may_block = ~_named(calls.names("name").take(call[rows]), "Async")
    for column in ("src_kind", "dst_kind"):
        may_block |= activities.names(column).take(rows).equals("pageable")
    return rows[may_block & (end[rows] <= calls["end_ns"][call[rows]])]


def event_waits(index: ProfileIndex, call: Rows, lane: Rows, events: EventMarks) -> Columns:
    """Return when calls made streams wait for an event, ascending, the lanes and the marks."""
    activities, calls = (index.profile.tables[name] for name in ("activities", "api_calls"))
    rows = np.flatnonzero(activities.names("kind").equals("synchronization"))
    rows = rows[_named(activities.names("name").take(rows), "wait")]
    rows = rows[activities["stream_id"][rows] != MISSING]
    called = values_at(calls["start_ns"], call[rows])
    time = np.where(call[rows] >= 0, called, activities["start_ns"][rows])
    time = np.clip(time, -MAX_NS, MAX_NS)
    order = np.argsort(time, kind="stable")
    return time[order], lane[rows[order]], events.marks(rows[order])


def _named(names: CategoryColumn, *words: str) -> BoolArray:
    """Return which names contain one of `words`, in any case."""
    found = [any(w.lower() in text.lower() for w in words) for text in names.categories]
    result: BoolArray = np.array([*found, False], np.bool_)[names.codes]
    return result
