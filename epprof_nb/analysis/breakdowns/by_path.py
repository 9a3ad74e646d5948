"""by_path: device and host time along each path from the session down to the kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.op_path_rows import table_of_paths
from epprof_nb.analysis.base.op_paths import MAX_DEPTH, SESSION, OpPaths, op_steps
from epprof_nb.analysis.base.op_status import has_host_time, ran
from epprof_nb.analysis.base.unknown_device_times import missing_if_unknown
from epprof_nb.arrays.groups import sum_by_group

if TYPE_CHECKING:
    from epprof_nb.analysis.base.attribution import Attribution
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.base.result_table import ResultTable
    from epprof_nb.arrays.types import BoolArray, IntArray


@missing_if_unknown
def path_table(index: ProfileIndex, *, attribution: Attribution = "launch") -> ResultTable:
    """Return the columns of `Profile.by_path`."""
    ops, tree = index.profile.tables["ops"], index.tree
    paths = OpPaths(op_steps(ops, tree))
    n = len(paths.parent)

    def of_ops(values: IntArray, counts_op: BoolArray) -> IntArray:
        counted = np.where((tree.depth < MAX_DEPTH) & counts_op, values, 0)
        return sum_by_group(paths.of_op, counted, n)[:-1]

    host, timed = (
        of_ops(values, has_host_time(ops))
        for values in (ops["duration_ns"], np.ones(len(ops), np.int64))
    )
    for column in (host, timed):
        column[SESSION] = column[paths.parent == SESSION].sum()
    count = of_ops(ops["count"], ran(ops))
    return table_of_paths(index, paths, count, host, timed > 0, attribution=attribution)
