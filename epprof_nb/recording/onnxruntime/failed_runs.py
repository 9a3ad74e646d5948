"""Runs of ONNX Runtime that raised, and the node that each failed in.

ONNX Runtime ends the events of a run that fails as those of one that succeeds. Only the exception
of the call tells them apart, and names the node.
"""

from __future__ import annotations

import re
import threading
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epprof_nb.arrays.types import MISSING
from epprof_nb.data import ort_runs
from epprof_nb.data.names import CategoryColumn
from epprof_nb.recording.onnxruntime.unprofiled_runs import now

if TYPE_CHECKING:
    from epprof_nb.arrays.types import BoolArray
    from epprof_nb.data.table import Table

_MAX_CALLS = 100_000
_NODE = re.compile(r"while running (\S+) node\. Name:'([^']*)'")

_calls: deque[_Call] = deque(maxlen=_MAX_CALLS)


class _Call(NamedTuple):
    thread_id: int
    begin_ns: int | None
    """None for a run that began on another thread."""
    end_ns: int
    op_type: str
    node: str


def clear() -> None:
    """Discard the runs of earlier recordings."""
    _calls.clear()


def add_call(begin_ns: int, error: BaseException) -> None:
    """Add a call on this thread that has raised."""
    is_of_runtime = type(error).__module__.startswith("onnxruntime")
    _add(begin_ns, str(error) if is_of_runtime else "")


def add_ended_run(error: str) -> None:
    """Add the run that has ended last on this thread, whose callback gets an error."""
    _add(None, error)


def _add(begin_ns: int | None, error: str) -> None:
    found = _NODE.search(error)
    op_type, node = found.groups() if found else ("", "")
    _calls.append(_Call(threading.get_native_id(), begin_ns, now(), op_type, node))


def with_failures(ops: Table) -> Table:
    """Return ops in which runs that failed have this status, and the node that failed in each.

    Their times are still those of the clock.
    """
    found = _failed_runs(ops)
    rows = list(found)
    name, op_type, is_node = ops.names("name"), ops.names("op_type"), _is_node(ops)
    for run, call in found.items():
        same = name.equals(call.node) if call.node else op_type.equals(call.op_type)
        nodes = np.flatnonzero(is_node & same & (ops["run_id"] == ops["run_id"][run]))
        rows += nodes[ops["start_ns"][nodes].argsort()[-1:]].tolist()
    if not rows:
        return ops
    failed = CategoryColumn.constant("failed", len(rows))
    return ops.replace(status=ops.names("status").replaced(np.array(rows), failed))


def _is_node(ops: Table) -> BoolArray:
    mask: BoolArray = ops.names("category").equals("node") & (ops["run_id"] != MISSING)
    return mask


def _failed_runs(ops: Table) -> dict[int, _Call]:
    """Return the row of each run that failed, and its call.

    It is the first run that the call made, or the last one before its callback.
    """
    calls = list(_calls)
    is_ended = ort_runs.is_run(ops) & ops.names("status").equals("complete")
    rows = np.flatnonzero(is_ended) if calls else np.empty(0, np.int64)
    rows = rows[np.lexsort((ops["start_ns"][rows], ops["thread_id"][rows]))]
    thread, start = ops["thread_id"][rows], ops["start_ns"][rows]
    found = {}
    for call in calls:
        first, last = np.searchsorted(thread, [call.thread_id, call.thread_id + 1])
        of_thread = start[first:last]
        at = int(first)
        if call.begin_ns is None:
            at += int(np.searchsorted(of_thread, call.end_ns)) - 1
        else:
            at += int(np.searchsorted(of_thread, call.begin_ns))
        if first <= at < last and start[at] < call.end_ns:
            found[int(rows[at])] = call
    return found
