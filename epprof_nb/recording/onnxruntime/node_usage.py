"""Memory and threads of ONNX Runtime's nodes, which it reports at the end of each node."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb import _native
from epprof_nb.arrays.ids import IdIndex
from epprof_nb.data.ort_arguments import NODE_MEMORY
from epprof_nb.data.table import FILL
from epprof_nb.recording.native_columns import numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.table import Table

COLUMNS = (*NODE_MEMORY, "pool_start_ns", "pool_wait_ns")
_NOT_REPORTED = -(2**63)


def drain() -> dict[str, IntArray]:
    """Take the reports since the last call: ``op_id`` and `COLUMNS`; empty if there are none."""
    raw = _native.drain_node_usage()
    if not len(raw["op_id"]):
        return {}
    return {name: numbers(raw, name, np.int64) for name in ("op_id", *COLUMNS)}


def with_node_usage(ops: Table, parts: Sequence[dict[str, IntArray]]) -> Table:
    """Return the ops with the memory and threads of the nodes.

    Parameters
    ----------
    ops
        The ops of a recording.
    parts
        Non-empty results of `drain`, of this recording and possibly others.
    """
    if not parts:
        return ops
    row = IdIndex(ops["op_id"]).rows(np.concatenate([part["op_id"] for part in parts]))
    of_recording = np.flatnonzero(row >= 0)
    columns = {}
    for name in COLUMNS:
        missing = int(FILL[ops.schema.column(name).kind])
        values = np.concatenate([part[name] for part in parts])[of_recording]
        column = np.full(len(ops), missing, np.int64)
        column[row[of_recording]] = np.where(values == _NOT_REPORTED, missing, values)
        if (column != missing).any():
            columns[name] = column
    return ops.replace(**columns)
