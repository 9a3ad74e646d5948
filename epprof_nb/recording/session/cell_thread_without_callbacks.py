"""Observation of the cell's thread at each API call of another thread, after the recording.

If another profiler holds CUPTI's callbacks, no code of this package runs at a launch. This module
then adds to the launch log what the callback would have written: the op that was open on the cell's
thread, and whether that thread used CPU time since the previous call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from epprof_nb.data.schema import MISSING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from epprof_nb.arrays.types import IntArray
    from epprof_nb.recording.recorder import CellLog

Mask = npt.NDArray[np.bool_]

_IDLE = 8
"""An idle thread uses at most 1 / `_IDLE` of the time, as in `native/core/cell_thread_wait.h`."""
_FALLING_ASLEEP_NS = 50_000
"""CPU time that a thread may use to begin or end a wait, while another thread makes calls."""


def observe(logs: Sequence[CellLog], thread: IntArray, at: IntArray) -> tuple[IntArray, Mask, Mask]:
    """Look up the cell's thread at API calls of threads without an op.

    Parameters
    ----------
    logs
        The log of the cell's thread, in parts by time.
    thread, at
        Thread id and start time of each call.

    Returns
    -------
    op
        The op that was open on the cell's thread at each call; `MISSING` if there was none, or if
        the cell's thread made the call.
    waited, ran
        Masks of calls. Since an earlier call of the same thread under the same op, the cell's
        thread used no CPU time, or used some. A call may be in neither mask.
    """
    op = np.full(len(at), MISSING, np.int64)
    waited, ran = np.zeros(len(at), np.bool_), np.zeros(len(at), np.bool_)
    logs = [log for log in logs if len(log.top_ns)]
    if not logs:
        return op, waited, ran
    top_ns = np.concatenate([log.top_ns for log in logs])
    top_op = np.concatenate([log.top_op for log in logs])
    interval = np.searchsorted(top_ns, at, side="right") - 1
    others = (interval >= 0) & ~np.isin(thread, [log.thread_id for log in logs])
    # The log ends at the last change. Later ops are unknown.
    others &= interval < len(top_ns) - 1
    op[others] = top_op[interval[others]]
    op[op == 0] = MISSING
    rows = np.flatnonzero(op != MISSING)
    rows = rows[np.lexsort((at[rows], interval[rows], thread[rows]))]
    if not len(rows):
        return op, waited, ran
    # A burst: the calls of one thread while the stack of the cell's thread did not change.
    begins = (np.diff(thread[rows]) != 0) | (np.diff(interval[rows]) != 0)
    first = np.flatnonzero(np.concatenate([[True], begins]))
    burst = np.cumsum(np.concatenate([[0], begins]))
    last = np.append(first[1:], len(rows)) - 1
    idle, busy = _use_of_cpu(logs, at[rows[first]], at[rows[last]])
    later = np.ones(len(rows), np.bool_)
    later[first] = False
    waited[rows] = later & idle[burst]
    ran[rows] = later & busy[burst]
    return op, waited, ran


def _use_of_cpu(logs: Sequence[CellLog], begin: IntArray, end: IntArray) -> tuple[Mask, Mask]:
    """Return masks of time ranges in which the cell's thread was certainly idle or busy."""
    at = np.concatenate([log.cpu_at_ns for log in logs])
    cpu = np.concatenate([log.cpu_ns for log in logs])
    if len(at) < 2:
        return np.zeros(len(begin), np.bool_), np.zeros(len(begin), np.bool_)
    # Use the samples inside the range if there are any. Otherwise use the samples around it, with
    # an unknown part of the CPU time outside the range.
    low, high = np.searchsorted(at, begin), np.searchsorted(at, end, side="right") - 1
    inside = high > low
    low = np.where(inside, low, np.maximum(np.searchsorted(at, begin, side="right") - 1, 0))
    high = np.where(inside, high, np.minimum(np.searchsorted(at, end), len(at) - 1))
    wall, used = at[high] - at[low], cpu[high] - cpu[low]
    span = np.where(inside, wall, end - begin)
    known = inside | ((at[low] <= begin) & (at[high] >= end))
    most = np.minimum(used, span)
    least = np.maximum(used - (wall - span), 0)
    ran = (least * _IDLE > span) & (least > _FALLING_ASLEEP_NS)
    return known & (most * _IDLE <= span), known & ran
