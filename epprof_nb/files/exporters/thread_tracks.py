"""Tracks of the threads in a trace: their ops and API calls, nested."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.thread_labels import thread_label, thread_names
from epprof_nb.arrays.ids import IdIndex
from epprof_nb.arrays.row_packing import pack_rows
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.data.profile_data import ProfileData
    from epprof_nb.data.table import Table


_ROUNDING_NS = 1_000
"""ONNX Runtime gives the durations of nodes in whole microseconds."""


def is_shown(ops: Table) -> BoolArray:
    """Return which ops a trace shows.

    Ops of an earlier profile, which captured graphs, have no time on this clock.
    """
    return ~ops.names("status").equals("earlier")


def is_nested(ops: Table) -> BoolArray:
    """Return which ops nest as slices must: ops that merge many or were suspended do not."""
    nested: BoolArray = (ops["count"] <= 1) & (ops["suspended_ns"] <= 0)
    return nested


def host_threads(profile: ProfileData) -> dict[int, str]:
    """Map ids to names of the threads with ops or API calls, the cell's thread first."""
    ops, calls = profile.tables["ops"], profile.tables["api_calls"]
    threads = np.unique(np.concatenate([ops["thread_id"], calls["thread_id"]])).tolist()
    cells = ops["thread_id"][ops.names("category").equals("cell")]
    main = int(cells[0]) if len(cells) else None
    named = thread_names(profile.info)
    return {
        thread: thread_label(named, thread, is_main=thread == main)
        for thread in sorted(threads, key=lambda thread: (thread != main, thread))
    }


@dataclass(frozen=True, slots=True)
class ThreadTrack:
    """A track whose slices nest.

    Attributes
    ----------
    thread_id
        The thread.
    name
        Name of the track.
    slices
        int64 array, one value per begin and end in the order of time: the row of `ops`, or the row
        of `api_calls` plus the number of ops.
    begins
        bool array: whether the slice begins.
    times
        int64 array, ns.
    """

    thread_id: int
    name: str
    slices: IntArray
    begins: BoolArray
    times: IntArray


def thread_tracks(profile: ProfileData) -> Iterator[ThreadTrack]:
    """Yield the tracks of each thread of the host.

    The first one has the ops and API calls that nest. Others have the rest: ops that merge
    many executions or were suspended, and slices that overlap in damaged traces.
    """
    ops, calls = profile.tables["ops"], profile.tables["api_calls"]
    start, end, thread = (
        np.concatenate([table[name] for table in (ops, calls)])
        for name in ("start_ns", "end_ns", "thread_id")
    )
    end = np.maximum(start, end)
    end[len(ops) :] = _ends_within_ops(ops, calls)
    shown, nests = (
        np.append(of_ops, np.ones(len(calls), np.bool_))
        for of_ops in (is_shown(ops), is_nested(ops))
    )
    order = np.argsort(thread, kind="stable")
    order = order[shown[order]]
    threads = thread[order]
    for thread_id, name in host_threads(profile).items():
        rows = order[slice(*np.searchsorted(threads, [thread_id, thread_id + 1]))]
        first, left = _nested(rows[nests[rows]], start, end)
        yield ThreadTrack(thread_id, name, *first)
        left = np.concatenate([rows[~nests[rows]], left])
        packed = pack_rows(start[left], end[left])
        by_track = np.split(left[np.lexsort((start[left], packed))], np.cumsum(np.bincount(packed)))
        for number, members in enumerate(by_track[:-1], 2):
            times = np.stack([start[members], end[members]], axis=1).ravel()
            begins = np.tile([True, False], len(members))
            title = f"{name}, overlapping ({number})"
            yield ThreadTrack(thread_id, title, np.repeat(members, 2), begins, times)


def _ends_within_ops(ops: Table, calls: Table) -> IntArray:
    """Return the ends of API calls, or the rounded end of the op if that is earlier."""
    end: IntArray = np.maximum(calls["start_ns"], calls["end_ns"])
    op = IdIndex(ops["op_id"]).rows(calls["op_id"])
    of_op = np.append(ops["end_ns"], MISSING)[op]
    is_rounded = (op >= 0) & (calls["start_ns"] < of_op) & (end > of_op)
    is_rounded &= end - of_op < _ROUNDING_NS
    end[is_rounded] = of_op[is_rounded]
    return end


def _nested(
    rows: IntArray, start: IntArray, end: IntArray
) -> tuple[tuple[IntArray, BoolArray, IntArray], IntArray]:
    """Return begins and ends of the slices that nest, as in `ThreadTrack`, and the other rows."""
    # Among slices that start together, the longest is the outermost.
    rows = rows[np.lexsort((rows, -end[rows], start[rows]))]
    signed: list[int] = []  # the row of a slice that begins, its complement if it ends
    left: list[int] = []
    open_rows: list[int] = []
    open_ends: list[int] = []
    columns = (rows, start[rows], end[rows])
    for row, begin, until in zip(*(column.tolist() for column in columns), strict=True):
        while open_ends and open_ends[-1] <= begin:
            open_ends.pop()
            signed.append(~open_rows.pop())
        if open_ends and open_ends[-1] < until:
            left.append(row)
            continue
        signed.append(row)
        open_rows.append(row)
        open_ends.append(until)
    signed += [~row for row in reversed(open_rows)]
    slices = np.array(signed, np.int64)
    begins = slices >= 0
    slices = np.where(begins, slices, ~slices)
    events = slices, begins, np.where(begins, start[slices], end[slices])
    return events, np.array(left, np.int64)
