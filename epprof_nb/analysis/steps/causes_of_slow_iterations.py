"""Events on the host that make iterations slow: garbage collection, and the recording of nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.onnx.profiler_slowdown import call_durations, without_profiling
from epprof_nb.analysis.onnx.recorded_runs import RECORDED, node_events, run_rows
from epprof_nb.analysis.steps.iterations import iterations
from epprof_nb.arrays.groups import sum_by_group
from epprof_nb.arrays.intervals import covered_before, union
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.repeats import repeat_at

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray


def collections(index: ProfileIndex) -> IntArray:
    """Return the rows of the pauses of Python's garbage collector."""
    ops = index.profile.tables["ops"]
    is_pause = ops.names("op_type").equals("gc") & ops.names("source").equals("python")
    return np.flatnonzero(is_pause)


def collecting(index: ProfileIndex) -> IntArray:
    """Return how long each iteration was paused by the garbage collector, ns.

    Pauses that share a row have no times of their own, and are left out.
    """
    ops, found = index.profile.tables["ops"], index.cached(iterations)
    rows = index.cached(collections)
    rows = rows[ops["count"][rows] == 1]
    paused = union(ops["start_ns"][rows], ops["end_ns"][rows])
    before, until = covered_before(*paused, np.stack([found.start, found.end]))
    inside: IntArray = until - before
    return inside


def recording(index: ProfileIndex) -> IntArray:
    """Return how much longer each iteration took because nodes of its runs were recorded, ns."""
    profile, found = index.profile, index.cached(iterations)
    ops = profile.tables["ops"]
    rows = run_rows(ops)
    rows = rows[np.array(node_events(ops, rows), object) == RECORDED]
    call, unprofiled = call_durations(ops, rows)
    for session in np.unique(ops["session"][rows]).tolist():
        unknown = (ops["session"][rows] == session) & (unprofiled == MISSING)
        estimate = without_profiling(profile.info, session, call[unknown])
        unprofiled[unknown] = call[unknown] if estimate is None else estimate.astype(np.int64)
    number = repeat_at(found.start, found.end, ops["start_ns"][rows])
    longer = np.where(call == MISSING, 0, np.maximum(call - unprofiled, 0))
    return sum_by_group(number, longer, len(found.start))[:-1]
