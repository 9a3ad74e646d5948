"""Memory and threads of ONNX Runtime's nodes, summed over the executions of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.result_table import OptionalColumn
from epprof_nb.arrays.groups import sum_by_group
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from epprof_nb.analysis.base.breakdown_columns import MeasureColumns
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.table import Table

_COLUMNS = (
    "output_bytes", "parameter_bytes", "activation_bytes", "arena_held_delta_bytes",
    "in_use_bytes", "pool_start_ns", "pool_wait_ns",
)  # fmt: skip
_GREATEST = "in_use_bytes"


def usage_columns(
    ops: Table, groups: IntArray, count: int, columns: MeasureColumns
) -> dict[str, OptionalColumn]:
    """Return the columns of memory and threads of groups of nodes.

    Parameters
    ----------
    ops
        A table of schema `epprof_nb.data.schema.OPS`.
    groups
        int64 array: the group of each op; `MISSING` for none.
    count
        Number of groups.
    columns
        Selects the groups to show.

    Returns
    -------
    columns
        Totals over the executions of a group, and the maximum of ``in_use_bytes``; missing if no
        execution has a value.
    """
    result = {}
    for name in _COLUMNS:
        values = np.zeros(count, np.int64)
        is_known = np.zeros(count, np.bool_)
        if not ops.is_absent(name):
            rows = np.flatnonzero((groups >= 0) & ops.has_value(name))
            is_known[groups[rows]] = True
            if name == _GREATEST:
                np.maximum.at(values, groups[rows], ops[name][rows])
            else:
                values = sum_by_group(groups[rows], ops[name][rows], count)[:-1]
        known = columns.column(is_known.astype(np.int64)) == 1
        result[name] = OptionalColumn(np.where(known, columns.column(values), MISSING), ~known)
    return result
