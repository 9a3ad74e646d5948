"""When a device worked, when it waited, and what the host did meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from epprof_nb.analysis.dataframe import categorical, optional
from epprof_nb.analysis.index import Shared
from epprof_nb.arrays.chunks import chunks
from epprof_nb.arrays.ids import unique_values
from epprof_nb.arrays.intervals import complement
from epprof_nb.data.schema import MISSING
from epprof_nb.data.table import Names

if TYPE_CHECKING:
    from epprof_nb.analysis.op_tree import OpTree
    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.data.profile_data import ProfileData
    from epprof_nb.data.table import Table

_POSITION = pd.CategoricalDtype(pd.Index(["before", "between", "after"], dtype=object))


def busy_intervals(profile: ProfileData, device_id: int | None = None) -> tuple[IntArray, IntArray]:
    """Return when a device ran kernels, copies or sets.

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
    return Shared(profile).busy(device_id)


def busy_ns(profile: ProfileData, device_id: int | None = None) -> int:
    """Return the time in which a device (None: any device) was busy, nanoseconds.

    Times that activities share count once, so it never exceeds the time from the first to the
    last.
    """
    starts, ends = busy_intervals(profile, device_id)
    return int((ends - starts).sum())


def gaps(
    profile: ProfileData, min_ns: int = 1_000_000, *, shared: Shared | None = None
) -> pd.DataFrame:
    """Return the stretches in which a device that did work had nothing to do.

    Parameters
    ----------
    profile
        The profile.
    min_ns
        Shortest stretch, nanoseconds.
    shared
        What the profile's tables share; made anew where left out.

    Returns
    -------
    frame
        One row a stretch, by device and time:

        ===========  ========  ================================================================
        device_id    Int64     the device
        start_ns     int64     start, since the profile's start
        end_ns       int64     end
        duration_ns  int64     ``end_ns - start_ns``
        position     category  before the device's first activity in the profile, between
                               activities, or after the last
        op_id        Int64     what the host was doing: the deepest op open at the middle of
                               the stretch on the thread that launched the next activity (the
                               last one, for the stretch after it)
        name         category  that op's name
        cell, line   category, where the statement around it stands, or the op itself, where it
                     Int64     is a statement
        ===========  ========  ================================================================
    """
    activities = profile.tables["activities"]
    shared = shared or Shared(profile)
    devices = unique_values(activities["device_id"])
    found = [_of_device(profile, shared, device, min_ns) for device in devices]
    start, end, position, launched = np.concatenate([np.empty((4, 0), np.int64), *found], axis=1)
    ops = profile.tables["ops"]
    tree = shared.tree
    op = _host_op(profile, tree, launched, start + (end - start) // 2)
    statement = np.append(tree.nearest(ops["line"] != MISSING), MISSING)[op]
    return pd.DataFrame(
        {
            "device_id": optional(activities["device_id"][launched]),
            "start_ns": start,
            "end_ns": end,
            "duration_ns": end - start,
            "position": pd.Categorical.from_codes(position, dtype=_POSITION),
            "op_id": optional(_at(ops["op_id"], op)),
            "name": categorical(_names_at(ops.names("name"), op)),
            "cell": categorical(_names_at(ops.names("cell"), statement)),
            "line": optional(_at(ops["line"], statement)),
        }
    )


def _of_device(profile: ProfileData, shared: Shared, device: int, min_ns: int) -> IntArray:
    """Return start, end, position and nearest launched activity of a device's idle stretches.

    The result is an array of shape ``(4, stretches)``.
    """
    activities = profile.tables["activities"]
    busy = shared.busy(device)
    if not len(busy[0]):
        return np.empty((4, 0), np.int64)
    start, end = complement(*busy, 0, max(profile.wall_ns, int(busy[1][-1])))
    long = end - start >= min_ns
    start, end = start[long], end[long]
    position = np.where(end <= busy[0][0], 0, np.where(start >= busy[1][-1], 2, 1))
    on_device = shared.work & (activities["device_id"] == device)
    return np.stack([start, end, position, _next(activities["start_ns"], on_device, end)])


def _next(starts: IntArray, which: BoolArray, times: IntArray) -> IntArray:
    """Return the row of the first start at or after each of `times`, which ascend.

    Only rows are looked at that `which` marks, at least one. Where none starts that late, it is
    the row of the last start.
    """
    found, last = np.full(len(times), MISSING, np.int64), MISSING
    earliest, latest = np.full(len(times), np.iinfo(np.int64).max), np.iinfo(np.int64).min
    for piece in chunks(len(starts)):
        rows = np.flatnonzero(which[piece]) + piece.start
        if not len(rows):
            continue
        start = starts[rows]
        back = len(rows) - 1 - int(start[::-1].argmax())
        if start[back] >= latest:
            latest, last = start[back], rows[back]
        after = np.searchsorted(times, start, "right") - 1
        near = np.flatnonzero(after >= 0)
        near = near[start[near] < earliest[after[near]]]
        np.minimum.at(earliest, after[near], start[near])
        # Of several assignments to one place the last one stays: the first row.
        near = near[start[near] == earliest[after[near]]][::-1]
        found[after[near]] = rows[near]
    place = np.where(found >= 0, np.arange(len(times)), len(times))
    place = np.minimum.accumulate(place[::-1])[::-1]
    return np.append(found, last)[place]


def _host_op(profile: ProfileData, tree: OpTree, launched: IntArray, times: IntArray) -> IntArray:
    """Return the row of the op that the host was in at each time; `MISSING` for none.

    ``launched`` is, for each time, the activity whose launching thread is asked.
    """
    activities, ops = profile.tables["activities"], profile.tables["ops"]
    launcher = tree.rows(activities["op_id"][launched])
    op_thread = _at(ops["thread_id"], launcher)
    thread = activities["thread_id"][launched]
    thread = np.where(thread == MISSING, op_thread, thread)
    # An API call knows its op exactly, even among statements that share one row.
    op = tree.rows(_op_of_open_call(profile.tables["api_calls"], thread, times))
    op = np.where(op == MISSING, tree.deepest_at(thread, times), op)
    # A worker thread has no ops: ask the thread whose statement waited for it.
    return np.where(op == MISSING, tree.deepest_at(op_thread, times), op)


def _op_of_open_call(api_calls: Table, thread_ids: IntArray, times: IntArray) -> IntArray:
    """Return the op id of the API call open on a thread at a time; `MISSING` for none."""
    found = np.full(len(times), MISSING, np.int64)
    for thread_id in np.unique(thread_ids):
        calls = np.flatnonzero(api_calls["thread_id"] == thread_id)
        calls = calls[np.argsort(api_calls["start_ns"][calls], kind="stable")]
        asked = np.flatnonzero(thread_ids == thread_id)
        before = np.searchsorted(api_calls["start_ns"][calls], times[asked], side="right")
        asked, last = asked[before > 0], calls[before[before > 0] - 1]
        is_open = api_calls["end_ns"][last] > times[asked]
        found[asked[is_open]] = api_calls["op_id"][last[is_open]]
    return found


def _at(values: IntArray, rows: IntArray) -> IntArray:
    # Row MISSING, -1, is the last element: missing again.
    return np.append(values, MISSING)[rows]


def _names_at(names: Names, rows: IntArray) -> list[str | None]:
    return Names(np.append(names.codes, np.int32(MISSING)), names.categories).take(rows).to_list()
