"""waits: places where the host waited for a device, the awaited work, and idle time after it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epprof_nb.analysis.base.lines_of_work import Places
from epprof_nb.analysis.base.missing_records import is_unrecorded
from epprof_nb.analysis.base.processes import process_by_process
from epprof_nb.analysis.base.result_table import ResultTable, names_at
from epprof_nb.analysis.base.tasks_of_ops import tasks_begun
from epprof_nb.analysis.utilisation.blocking_calls import is_wait
from epprof_nb.analysis.utilisation.idle_intervals import BETWEEN, idle_intervals
from epprof_nb.arrays.chunks import chunks
from epprof_nb.arrays.groups import group_codes, sum_by_group
from epprof_nb.arrays.intervals import complement, covered_before
from epprof_nb.arrays.nearest import first_from, last_until
from epprof_nb.arrays.positions import positions
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray


@process_by_process
def wait_table(index: ProfileIndex) -> ResultTable:
    """Return the columns of `Profile.waits`."""
    found, places = index.cached(find_waits), index.cached(Places)
    calls, activities = index.profile.tables["api_calls"], index.profile.tables["activities"]
    place = places.of_calls(found.call)
    groups, first = group_codes(place, calls.names("name").codes[found.call])
    n = len(first)

    def total(values: IntArray) -> IntArray:
        return sum_by_group(groups, values, n)[:-1]

    wait_ns = total(found.wait)
    order = np.argsort(-wait_ns, kind="stable")
    columns = {
        "waits": total(np.ones(len(groups), np.int64)),
        "wait_ns": wait_ns,
        "busy_ns": total(found.busy),
        "idle_after_ns": total(found.idle_after),
        "avoidable_ns": total(found.avoidable),
    }
    names = activities.names("short_name")
    return ResultTable(
        {
            **places.columns(place[first[order]]),
            "api_name": names_at(calls.names("name"), found.call[first[order]]),
            "waited_for": names_at(names, _most_awaited(index, found, groups, n)[order]),
            **{name: values[order] for name, values in columns.items()},
        }
    )


class Waits(NamedTuple):
    """The waits of the host, by start: int64 columns.

    ``call`` is the row of the API call. In ns: ``wait``, its duration; ``busy``, the part during
    which a device worked; ``idle_after``, how long all devices were idle until the host launched
    the next work; ``avoidable``, how much of that fits into ``busy``. ``next_row`` is that work.
    """

    call: IntArray
    wait: IntArray
    busy: IntArray
    idle_after: IntArray
    avoidable: IntArray
    next_row: IntArray


def find_waits(index: ProfileIndex) -> Waits:
    """Return the waits of the host."""
    calls = index.profile.tables["api_calls"]
    rows = np.flatnonzero(index.cached(is_wait))
    rows = rows[np.argsort(calls["start_ns"][rows], kind="stable")]
    start = calls["start_ns"][rows]
    end = np.maximum(calls["end_ns"][rows], start)
    before, until = covered_before(*index.busy(), np.stack([start, end]))
    busy = until - before
    idle_after, next_row = _idle_after(index, start, end, calls["thread_id"][rows])
    return Waits(rows, end - start, busy, idle_after, np.minimum(busy, idle_after), next_row)


def delay_launches(index: ProfileIndex, ends: IntArray) -> bool:
    """Return whether launches follow at least half of the waits that ended at `ends`.

    Waits at the end of the code, and of the last turn of a loop, delay nothing.
    """
    tables = index.profile.tables
    correlation, start = tables["activities"]["correlation_id"], tables["api_calls"]["start_ns"]
    last = MISSING
    for chunk in chunks(len(correlation)):
        call = index.calls.rows(correlation[chunk][index.is_device_work[chunk]])
        last = max(last, int(start[call[call != MISSING]].max(initial=MISSING)))
    return 2 * int((ends <= last).sum()) >= len(ends)


def _idle_after(
    index: ProfileIndex, start: IntArray, end: IntArray, thread: IntArray
) -> tuple[IntArray, IntArray]:
    """Return how long all devices were idle after each wait, and the work that ended it.

    Only idle intervals that the same thread ended count, each for the longest wait before it. A
    task of Dask does not wait for the next one.
    """
    activities, calls = index.profile.tables["activities"], index.profile.tables["api_calls"]
    none = np.zeros(len(start), np.int64)
    idle_start, idle_end, row = index.cached(_idle_everywhere)
    if not len(row):
        return none, none + MISSING
    call = index.calls.rows(activities["correlation_id"][row])
    launched = np.append(calls["start_ns"], MISSING)[call]
    launcher = np.append(calls["thread_id"], MISSING)[call]
    # The interval in which the wait ended: it began during the wait, and ended after it.
    gap = positions(idle_start, end, "right") - 1
    at = np.maximum(gap, 0)
    fits = (gap >= 0) & (idle_end[at] > end) & (idle_start[at] >= start)
    fits &= (launcher[at] == thread) & (launched[at] >= end)
    fits &= tasks_begun(index, thread, end) == tasks_begun(index, thread, launched[at])
    result, next_row = none, none + MISSING
    of_gap = np.flatnonzero(fits)
    # If several waits precede one launch, the longest one, which comes first, made it late.
    of_gap = of_gap[np.lexsort((start[of_gap] - end[of_gap], at[of_gap]))]
    _, first = np.unique(at[of_gap], return_index=True)
    chosen = of_gap[first]
    result[chosen] = idle_end[at[chosen]] - idle_start[at[chosen]]
    next_row[chosen] = row[at[chosen]]
    return result, next_row


def _idle_everywhere(index: ProfileIndex) -> tuple[IntArray, IntArray, IntArray]:
    """Return start and end of each interval between work in which all devices idled.

    The third array has the row of the activity that ended it.
    """
    if len(index.device_ids) == 1:
        idle = idle_intervals(index)
        between = idle.take(idle.position == BETWEEN)
        return between.start, between.end, between.next_row
    starts, ends = index.busy()
    if len(starts) < 2:
        return starts[:0], ends[:0], starts[:0]
    idle_start, idle_end = complement(starts, ends, int(starts[0]), int(ends[-1]))
    is_known = ~is_unrecorded(index, idle_start, idle_end)
    idle_start, idle_end = idle_start[is_known], idle_end[is_known]
    starts = index.profile.tables["activities"]["start_ns"]
    return idle_start, idle_end, first_from(starts, index.is_device_work, idle_end)


def _most_awaited(index: ProfileIndex, found: Waits, groups: IntArray, n: int) -> IntArray:
    """Return for each group an activity of the name that it waited for the longest."""
    calls, activities = index.profile.tables["api_calls"], index.profile.tables["activities"]
    # The host waited for the work that ended last before the wait returned.
    end = calls["end_ns"][found.call]
    by_end = np.argsort(end, kind="stable")
    awaited = np.full(len(end), MISSING, np.int64)
    awaited[by_end] = last_until(activities["end_ns"], index.is_device_work, end[by_end])
    result = np.full(n, MISSING, np.int64)
    some = np.flatnonzero(awaited != MISSING)
    names = activities.names("short_name").codes
    pairs, first = group_codes(groups[some], names[awaited[some]])
    time = sum_by_group(pairs, found.wait[some], len(first))[:-1]
    # The last assignment to an element remains: the longest wait.
    best = np.argsort(time, kind="stable")
    result[groups[some][first[best]]] = awaited[some][first[best]]
    return result
