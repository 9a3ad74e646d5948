"""Memory of ONNX Runtime's allocators at the end of nodes, which 1.28 and later report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb import _native
from epprof_nb.arrays.ids import IdIndex
from epprof_nb.core.native_columns import numbers
from epprof_nb.data.ort_arguments import NODE_MEMORY
from epprof_nb.data.table import FILL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.table import Table

_NOT_REPORTED = -(2**63)


def drain() -> dict[str, IntArray]:
    """Take what was reported since the last call: ``op_id`` and columns; empty if nothing."""
    raw = _native.drain_node_memory()
    if not len(raw["op_id"]):
        return {}
    return {name: numbers(raw, name, np.int64) for name in ("op_id", *NODE_MEMORY)}


def with_node_memory(ops: Table, parts: Sequence[dict[str, IntArray]]) -> Table:
    """Return the ops with the memory at their ends.

    Parameters
    ----------
    ops
        The ops of a recording.
    parts
        Results of `drain` that are not empty, of this recording and possibly others.
    """
    if not parts:
        return ops
    row = IdIndex(ops["op_id"]).rows(np.concatenate([part["op_id"] for part in parts]))
    of_recording = np.flatnonzero(row >= 0)
    columns = {}
    for name in NODE_MEMORY:
        missing = int(FILL[ops.schema.column(name).kind])
        values = np.concatenate([part[name] for part in parts])[of_recording]
        column = np.full(len(ops), missing, np.int64)
        column[row[of_recording]] = np.where(values == _NOT_REPORTED, missing, values)
        columns[name] = column
    return ops.replace(**columns)
