"""by_path: device and host time along each path from the session down to the kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from epprof_nb.analysis.base.index import ProfileIndex, index_of
from epprof_nb.analysis.base.op_path_rows import table_of_paths
from epprof_nb.analysis.base.op_paths import MAX_DEPTH, SESSION, OpPaths, op_steps
from epprof_nb.analysis.base.op_status import has_host_time, ran
from epprof_nb.analysis.frameworks.module_tree import module_tree
from epprof_nb.arrays.groups import sum_by_group
from epprof_nb.data.column_docs import with_columns

if TYPE_CHECKING:
    import pandas as pd

    from epprof_nb.analysis.base.attribution import Attribution
    from epprof_nb.analysis.base.result_table import ResultTable
    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.data.profile_data import ProfileData


@with_columns("by_path")
def by_path(
    profile: ProfileData,
    *,
    by: Literal["op", "module"] = "op",
    attribution: Attribution = "launch",
    index: ProfileIndex | None = None,
) -> pd.DataFrame:
    """Return the device and host time along each path of ops, down to the kernels.

    Parameters
    ----------
    profile, attribution, index
        See `epprof_nb.analysis.breakdowns.by_op.by_op`. By launch, the work of a graph is below
        the op that replayed it, in a row for the op that captured it.
    by
        Steps of the paths: the ops as they are nested, or the modules of PyTorch. Below a module
        are the modules that it calls, and rows ``forward`` and ``backward`` with the ops and
        activities of its own work. Work outside of modules is below the framework op around it,
        such as that of an optimizer, or below ``(outside of modules)`` and the op that launched
        it. Host times are those of the ops themselves and of all rows below.

    Returns
    -------
    frame
        {columns}

    Raises
    ------
    ValueError
        If `by` or `attribution` is unknown.

    Examples
    --------
    >>> from epprof_nb.testing import synthetic_profile
    >>> by_path(synthetic_profile(activities=100))["level"].head(3).tolist()
    ['session', 'cell', 'line']
    """
    tables = {"op": path_table, "module": module_tree}
    if by not in tables:
        raise ValueError(f"by must be 'op' or 'module', not {by!r}")
    return tables[by](index or index_of(profile), attribution=attribution).to_frame()


def path_table(index: ProfileIndex, *, attribution: Attribution = "launch") -> ResultTable:
    """Return the columns of `by_path`."""
    ops, tree = index.profile.tables["ops"], index.tree
    paths = OpPaths(op_steps(ops, tree))
    n = len(paths.parent)

    def of_ops(values: IntArray, counts_op: BoolArray) -> IntArray:
        counted = np.where((tree.depth < MAX_DEPTH) & counts_op, values, 0)
        return sum_by_group(paths.of_op, counted, n)[:-1]

    host = of_ops(ops["duration_ns"], has_host_time(ops))
    host[SESSION] = host[paths.parent == SESSION].sum()
    return table_of_paths(
        index, paths, of_ops(ops["count"], ran(ops)), host, attribution=attribution
    )
