"""Steps that finish the tables of every trace: times from zero, ids, and the nesting of ops."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.schema import MISSING
from epprof_nb.files.readers.nesting import OpStacks

if TYPE_CHECKING:
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.table import Table


def from_zero(tables: dict[str, Table]) -> tuple[dict[str, Table], int]:
    """Shift all times so that the first is 0, fill the durations, and sort by start.

    Returns
    -------
    tables, origin
        The tables, and the time that became 0.
    """
    starts = {name: "time_ns" if name == "memory" else "start_ns" for name in tables}
    origin = min((int(t[starts[n]].min()) for n, t in tables.items() if len(t)), default=0)
    shifted = {}
    for name, table in tables.items():
        start = table[starts[name]] - origin
        columns: dict[str, IntArray] = {starts[name]: start}
        if "end_ns" in table.schema.names:
            columns["end_ns"] = table["end_ns"] - origin
            columns["duration_ns"] = table["end_ns"] - table["start_ns"]
        # Among ops that start together, the longest is the outermost.
        order = np.lexsort((-columns.get("duration_ns", start), start))
        shifted[name] = table.replace(**columns).take(order)
    return shifted, origin


def with_stacks(ops: Table, source: str) -> tuple[Table, OpStacks]:
    """Fill the columns of ops derived from their order and nesting."""
    stacks = OpStacks(ops["thread_id"], ops["start_ns"], ops["end_ns"])
    ids = np.arange(1, len(ops) + 1)
    filled = ops.replace(
        op_id=ids,
        parent_op_id=np.append(ids, MISSING)[stacks.parent],
        count=np.ones(len(ops), np.int64),
        source=CategoryColumn.constant(source, len(ops)),
        status=CategoryColumn.constant("complete", len(ops)),
    )
    return filled, stacks
