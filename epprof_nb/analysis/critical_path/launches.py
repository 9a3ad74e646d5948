"""Launches of activities: their API calls, the ops of these, and the usual delay."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.critical_path.columns import MAX_NS
from epprof_nb.arrays.chunks import chunks
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.critical_path.columns import Rows
    from epprof_nb.arrays.types import IntArray

_SAMPLE = 100_000
"""Maximum number of launch delays to estimate the usual one from."""
_DEFAULT_LATENCY_NS = 5_000


def calls_of(index: ProfileIndex) -> Rows:
    """Return the row of the API call of each activity; `MISSING` for none."""
    correlation = index.profile.tables["activities"]["correlation_id"]
    call = np.empty(len(correlation), np.int32)
    for chunk in chunks(len(correlation)):
        call[chunk] = index.calls.rows(correlation[chunk])
    return call


def call_ops(op: Rows, call: Rows, activity_op: Rows) -> Rows:
    """Return the op of each call; if its thread has no ops, the op of the activity it launched."""
    if (op != MISSING).all():
        return op
    op = op.copy()
    for chunk in chunks(len(call)):
        launched = np.flatnonzero(call[chunk] >= 0)
        rows = call[chunk][launched]
        without = op[rows] == MISSING
        op[rows[without]] = activity_op[chunk][launched[without]]
    return op


def after_launch(start: IntArray, call: Rows, call_start: IntArray) -> IntArray:
    """Return when activities started, but not before their call.

    Device times are interpolated: a kernel can seem to start before its launch.
    """
    result = start
    for chunk in chunks(len(call)):
        known = np.flatnonzero(call[chunk] >= 0)
        called = call_start[call[chunk][known]]
        early = called > start[chunk][known]
        if early.any():
            result = start.copy() if result is start else result
            result[chunk][known[early]] = called[early]
    return result


def usual_latency(
    start: IntArray, end: IntArray, order: Rows, call: Rows, call_start: IntArray
) -> int:
    """Return the 10th percentile of the launch delays: the delay of a launch without a queue.

    If most launches queue, only the launches that found no work on any device count. `order` is
    the `row_order` of the starts.
    """
    if not len(call):
        return _DEFAULT_LATENCY_NS
    at = np.arange(0, len(call), max(len(call) // _SAMPLE, 1))
    latest = np.maximum.reduceat(end[order] if len(order) else end, at)
    done = np.append(-MAX_NS, np.maximum.accumulate(latest)[:-1])
    rows = order[at] if len(order) else at
    start, call = start[rows], call[rows]
    called = np.append(call_start, 0)[call]
    delays = start - called
    launched = (call >= 0) & (delays > 0)
    found = [delays[some] for some in (launched, launched & (called >= done)) if some.any()]
    return min((int(np.percentile(some, 10)) for some in found), default=_DEFAULT_LATENCY_NS)
