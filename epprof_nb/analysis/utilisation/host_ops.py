"""The op that the host ran at a time, such as in the middle of an idle gap."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.arrays.ids import unique_values, values_at
from epprof_nb.arrays.positions import positions
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray


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
