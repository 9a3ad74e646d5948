"""Calls of Python functions that overlap the ranges which they begin and end.

A range begins inside the call that begins it, and ends inside the call that ends it, so neither
contains the other. Host time counts once if only the part of the call outside of the range counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.data.schema import MISSING
from epprof_nb.files.readers.nesting import OpStacks, rounding

if TYPE_CHECKING:
    from epprof_nb.data.table import Table


def without_overlaps(ops: Table, notes: list[str]) -> Table:
    """Cut calls of Python where an overlapping op begins or ends.

    Parameters
    ----------
    ops
        The ops of a trace, in any order. Ops of type ``function`` are calls of Python; other ops
        keep their times.
    notes
        Notes of the trace; a note on the calls that were cut is appended.
    """
    is_call = ops.names("op_type").equals("function")
    if not is_call.any():
        return ops
    thread, start, end = ops["thread_id"], ops["start_ns"].copy(), ops["end_ns"]
    slack = rounding(start, end)
    calls, others = np.flatnonzero(is_call), np.flatnonzero(~is_call)
    around = OpStacks(thread[others], start[others], end[others]).open_at(
        thread[calls], start[calls]
    )
    until = np.append(end[others], 0)[around]
    ending = (around != MISSING) & (end[calls] - until > slack)
    start[calls[ending]] = until[ending]
    end = np.where(is_call, OpStacks(thread, start, end).left, end)
    cut = (start - ops["start_ns"]) + (ops["end_ns"] - end)
    if (cut > slack).any():
        notes.append(
            f"{int((cut > slack).sum()):,} calls of Python begin or end a range: their time inside "
            f"of it counts for the range alone, {cut.sum() / 1e6:,.3f} ms in all."
        )
    return ops.replace(start_ns=start, end_ns=end)
