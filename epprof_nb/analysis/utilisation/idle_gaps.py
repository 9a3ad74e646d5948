"""Busy and idle time of devices, and the op that the host ran in each idle gap.

A device is *busy* while it executes device work; work that overlaps counts once. An *idle gap*
lies between its first and its last work. The time before and after these is mostly host setup:
`gaps` returns it too, with another ``position``, and the summary does not count it.
`epprof_nb.analysis.utilisation.idle_causes` says why a device was idle, and
`epprof_nb.analysis.utilisation.host_idle` at which line the host was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.index import ProfileIndex, index_of
from epprof_nb.analysis.base.result_table import ResultTable, names_at, optional
from epprof_nb.analysis.base.sampled_time import where_sampled
from epprof_nb.analysis.base.stack_lines import StackLines
from epprof_nb.analysis.utilisation.host_activity import main_place
from epprof_nb.analysis.utilisation.idle_causes import launching_thread, main_cause, split_by_cause
from epprof_nb.analysis.utilisation.idle_intervals import POSITIONS, idle_intervals
from epprof_nb.arrays.ids import unique_values, values_at
from epprof_nb.arrays.positions import positions
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.names import CategoryColumn

if TYPE_CHECKING:
    from epprof_nb.analysis.base.result_table import Column
    from epprof_nb.analysis.utilisation.idle_intervals import IdleIntervals
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.profile_data import ProfileData

IDLE_GAP_NS = 1_000_000
"""Shortest idle gap that the summary counts, and that `Profile.gaps` returns by default."""


def busy_intervals(profile: ProfileData, device_id: int | None = None) -> tuple[IntArray, IntArray]:
    """Return the intervals in which a device was busy.

    Parameters
    ----------
    profile
        The profile.
    device_id
        The device; None for the time in which any device was busy.

    Returns
    -------
    starts, ends
        int64 arrays, nanoseconds since the profile's start: disjoint intervals, ascending.
    """
    return index_of(profile).busy(device_id)


def busy_ns(profile: ProfileData, device_id: int | None = None) -> int:
    """Return the time in which a device (None: any device) was busy, nanoseconds.

    Work that overlaps counts once, so this is at most the time from the first to the last work.
    """
    starts, ends = busy_intervals(profile, device_id)
    return int((ends - starts).sum())


def gap_table(index: ProfileIndex, min_ns: int = IDLE_GAP_NS) -> ResultTable:
    """Return the columns of `Profile.gaps`."""
    ops, found = index.profile.tables["ops"], idle_intervals(index, min_ns)
    middle = found.start + (found.end - found.start) // 2
    op = host_ops(index, found.next_row, middle)
    statement = values_at(index.statement, op)
    parts = split_by_cause(index, found)
    return ResultTable(
        {
            "device_id": optional(found.device),
            "start_ns": found.start,
            "end_ns": found.end,
            "duration_ns": found.end - found.start,
            "position": CategoryColumn(found.position.astype(np.int32), POSITIONS),
            "cause": main_cause(parts),
            **{f"{name}_ns": time for name, time in parts.items()},
            "op_id": optional(values_at(ops["op_id"], op)),
            "name": names_at(ops.names("name"), op),
            "cell": names_at(ops.names("cell"), statement),
            "line": optional(values_at(ops["line"], statement)),
            **_sampled_columns(index, found),
        }
    )


def _sampled_columns(index: ProfileIndex, idle: IdleIntervals) -> dict[str, Column]:
    """Return the columns of the line that the host ran, by samples of the launching thread."""
    lines, thread = index.cached(StackLines), launching_thread(index, idle.next_row)
    stack = np.full(len(thread), MISSING, np.int64)
    samples = np.zeros(len(thread), np.int64)
    for device in unique_values(idle.device):
        at = np.flatnonzero(idle.device == device)
        stack[at], samples[at] = main_place(index, thread[at], idle.start[at], idle.end[at])
    return {
        "host_function": names_at(lines.function, stack),
        "host_file": names_at(lines.file, stack),
        "host_line": optional(values_at(lines.line, stack)),
        "host_samples": where_sampled(index.profile, samples),
    }


def host_ops(index: ProfileIndex, launched: IntArray, times: IntArray) -> IntArray:
    """Return the row of the op that the host ran at each time; `MISSING` for none.

    ``launched`` has an activity for each time; the thread that launched it is examined.
    """
    tables, tree = index.profile.tables, index.tree
    launcher = tree.rows(tables["activities"]["op_id"][launched])
    op_thread = values_at(tables["ops"]["thread_id"], launcher)
    thread = tables["activities"]["thread_id"][launched]
    thread = np.where(thread == MISSING, op_thread, thread)
    # An API call knows its op exactly, even among statements that share one row.
    op = tree.rows(_op_of_open_call(index, thread, times))
    op = np.where(op == MISSING, tree.open_op_at(thread, times), op)
    # The ops of a worker thread have ended, but not their ancestors: examine the thread of these.
    above = values_at(tables["ops"]["thread_id"], op)
    op = np.where((op >= 0) & (above != thread), tree.open_op_at(above, times), op)
    # A worker thread has no ops: examine the thread whose statement waited for it.
    return np.where(op == MISSING, tree.open_op_at(op_thread, times), op)


def _op_of_open_call(index: ProfileIndex, thread_ids: IntArray, times: IntArray) -> IntArray:
    """Return the op id of the API call open on a thread at a time; `MISSING` for none."""
    api_calls = index.profile.tables["api_calls"]
    op_ids = np.full(len(times), MISSING, np.int64)
    for thread_id in unique_values(thread_ids):
        calls = index.calls_of_thread(thread_id)
        queries = np.flatnonzero(thread_ids == thread_id)
        before = positions(api_calls["start_ns"][calls], times[queries], "right")
        queries, last = queries[before > 0], calls[before[before > 0] - 1]
        is_open = api_calls["end_ns"][last] > times[queries]
        op_ids[queries[is_open]] = api_calls["op_id"][last[is_open]]
    return op_ids
