"""Threads of the critical path: the home thread, and the ops of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.critical_path.columns import spans
from epprof_nb.analysis.critical_path.kernel_ops import kernel_ops
from epprof_nb.arrays.groups import group_codes
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.table import Table


class Threads:
    """Numbers of the threads, the home thread, and the ops that are a part of a thread's time.

    Attributes
    ----------
    home
        Number of the thread that starts the others.
    ends_profile
        Whether the profile ends when the home thread and the devices do. Other threads may go on
        then. It is not known if the home thread is only the most similar one.
    """

    def __init__(self, index: ProfileIndex, call_start: IntArray) -> None:
        tables = index.profile.tables
        ops, calls, waits = (tables[name] for name in ("ops", "api_calls", "thread_waits"))
        waited_for = waits["other_thread_id"]
        ids = np.concatenate([
            ops["thread_id"], calls["thread_id"], waits["thread_id"],
            waited_for[waited_for != MISSING],
        ])  # fmt: skip
        number, first = group_codes(ids)
        self.count = max(len(first), 1)
        id_of_number = ids[first]
        self.numbers = np.argsort(id_of_number)
        self.ids = id_of_number[self.numbers]
        self.of_calls = number[len(ops) :][: len(calls)].astype(np.int32)
        start, end = spans(ops)
        self.op_start, self.op_end = np.maximum(start, 0), np.maximum(end, 0)
        # A row of many executions says nothing about the time between them.
        listed = (ops["count"] <= 1) & (self.op_end > self.op_start)
        listed &= ~ops.names("status").equals("earlier") & ~index.cached(kernel_ops)
        self.of_ops = np.where(listed, number[: len(ops)], MISSING).astype(np.int32)
        starter = self.numbers_of(np.array([index.profile.info.get("thread_id", MISSING)]))
        self.ends_profile = True
        self.home = self._home(ops, np.flatnonzero(listed), call_start, int(starter[0]))

    def numbers_of(self, ids: IntArray) -> IntArray:
        """Return the numbers of threads; `MISSING` for those of which nothing is known."""
        at = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        if not len(self.ids):
            return np.full(len(ids), MISSING)
        return np.where(self.ids[at] == ids, self.numbers[at], MISSING)

    def _home(self, ops: Table, rows: IntArray, call_start: IntArray, starter: int) -> int:
        """Return the number of the thread of the cell, else of the most similar thread.

        `starter` is the number of the thread that started the profile; `MISSING` if it is unknown
        or did nothing.
        """
        types = ops.names("op_type").take(rows)
        cells, tasks = (rows[types.equals(name)] for name in ("cell", "task"))
        if len(tasks) and not len(cells):
            # The event loop of a Dask worker only hands out its tasks.
            time = self.op_end[tasks] - self.op_start[tasks]
            return int(np.bincount(self.of_ops[tasks], time).argmax())
        if len(cells):  # the cell's thread starts the others
            return int(self.of_ops[cells[self.op_start[cells].argmin()]])
        if starter != MISSING:
            return starter
        self.ends_profile = False
        own = rows[~types.equals("gc")]  # a collection of garbage may run on any thread
        if len(own):
            return int(self.of_ops[own[self.op_start[own].argmin()]])
        return int(self.of_calls[call_start.argmin()]) if len(call_start) else 0
