"""by_path: device and host time along each path from the session down to the kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.attribution import Attribution, attributed_op_rows
from epprof_nb.analysis.by_op import NO_OP
from epprof_nb.analysis.dataframe import ResultTable, categorical, optional
from epprof_nb.analysis.index import ProfileIndex, index_of
from epprof_nb.analysis.op_paths import MAX_DEPTH, SESSION, OpPaths
from epprof_nb.analysis.op_status import has_host_time, ran
from epprof_nb.arrays.groups import count_distinct, group_codes, sum_by_group
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.columns import with_columns

if TYPE_CHECKING:
    import pandas as pd

    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.data.names import CategoryColumn
    from epprof_nb.data.profile_data import ProfileData


@with_columns("by_path")
def by_path(
    profile: ProfileData, *, attribution: Attribution = "launch", index: ProfileIndex | None = None
) -> pd.DataFrame:
    """Return the device and host time along each path of ops, down to the kernels.

    Parameters
    ----------
    profile, attribution, index
        See `epprof_nb.analysis.by_op.by_op`. By launch, the work of a graph is below the op that
        replayed it, in a row for the op that captured it.

    Returns
    -------
    frame
        {columns}

    Raises
    ------
    ValueError
        If `attribution` is unknown.

    Examples
    --------
    >>> from epprof_nb.testing import synthetic_profile
    >>> by_path(synthetic_profile(activities=100))["level"].head(3).tolist()
    ['session', 'cell', 'line']
    """
    return path_table(index or index_of(profile), attribution=attribution).to_frame()


def path_table(index: ProfileIndex, *, attribution: Attribution = "launch") -> ResultTable:
    """Return the columns of `by_path`."""
    tables, tree = index.profile.tables, index.tree
    ops, activities = tables["ops"], tables["activities"]
    paths = OpPaths(ops, tree)
    work = np.flatnonzero(index.is_device_work)
    rows = attributed_op_rows(activities, tree, attribution)[work]
    owner = np.append(paths.of_op, paths.no_op)[rows]
    uncaptured = len(paths.parent)
    if attribution == "launch":  # the work of a graph is below both, its launch and its capture
        owner = paths.add_captured(ops, owner, tree.rows(activities["capture_op_id"][work]))
    kinds, names = activities.names("kind").take(work), activities.names("name").take(work)
    leaf, example = group_codes(owner, kinds.codes, names.codes)
    inner, leaves = len(paths.parent), len(example)
    parent = np.append(paths.parent, owner[example])
    depth = np.append(paths.depth, paths.depth[owner[example]] + 1)

    def of_leaves(values: IntArray) -> IntArray:
        return np.append(np.zeros(inner, np.int64), sum_by_group(leaf, values, leaves)[:-1])

    def of_ops(values: IntArray, counts_op: BoolArray) -> IntArray:
        counted = np.where((tree.depth < MAX_DEPTH) & counts_op, values, 0)
        return np.append(sum_by_group(paths.of_op, counted, inner)[:-1], np.zeros(leaves, np.int64))

    durations = activities["duration_ns"][work]
    one = np.ones(len(work), np.int64)
    count = of_ops(ops["count"], ran(ops)) + of_leaves(one)
    if inner > uncaptured:
        replays = count_distinct(owner, activities["correlation_id"][work], inner)
        count[uncaptured:inner] = replays[uncaptured:]
    host = of_ops(ops["duration_ns"], has_host_time(ops))
    host[SESSION] = host[parent == SESSION].sum()
    count[SESSION] = 1
    launched = sum_by_group(owner, durations, inner)[:-1]
    example_op = np.where(paths.row >= 0, paths.row, 0)
    columns = {
        "depth": depth,
        "count": count,
        "device_ns": _subtree_sum(of_leaves(durations), parent, depth),
        # The time of a leaf is already that of the row above.
        "self_device_ns": np.append(launched, np.zeros(leaves, np.int64)),
        "host_ns": host,
        "kernels": _subtree_sum(of_leaves(kinds.equals("kernel").astype(np.int64)), parent, depth),
        "bytes": _subtree_sum(of_leaves(np.maximum(activities["bytes"][work], 0)), parent, depth),
    }
    # Drop paths that neither ran nor launched anything: mostly ops of earlier profiles.
    kept = np.flatnonzero(_subtree_sum(count, parent, depth) > 0)
    number = np.full(len(parent) + 1, MISSING, np.int64)
    number[kept] = np.arange(len(kept))

    def texts(of_op: list[str | None], of_leaf: list[str | None]) -> CategoryColumn:
        return categorical(np.array([*of_op, *of_leaf], object)[kept].tolist())

    def of_example(column: str) -> list[str | None]:
        if not len(ops):
            return [None] * inner
        values = ops.names(column).take(example_op).to_list()
        return [v if row >= 0 else None for v, row in zip(values, paths.row, strict=True)]

    none: list[str | None] = [None] * leaves
    types = of_example("op_type")
    nodes = [category == "node" for category in of_example("category")]
    levels = ["node" if node else kind for node, kind in zip(nodes, types, strict=True)]
    line = ops["line"][example_op] if len(ops) else np.zeros(inner, np.int64)
    line = np.append(np.where(paths.row >= 0, line, MISSING), np.full(leaves, MISSING))
    op_names = of_example("name")
    levels[SESSION] = op_names[SESSION] = "session"
    levels[paths.no_op], op_names[paths.no_op] = "none", NO_OP
    return ResultTable(
        {
            "parent": optional(number[parent[kept]]),
            "depth": columns.pop("depth")[kept],
            "level": texts(levels, kinds.take(example).to_list()),
            "name": texts(op_names, names.take(example).to_list()),
            "op_type": texts(types, none),
            "cell": texts(of_example("cell"), none),
            "line": optional(line[kept]),
            **{name: values[kept] for name, values in columns.items()},
        },
        index="node",
    )


def _subtree_sum(values: IntArray, parent: IntArray, depth: IntArray) -> IntArray:
    """Sum `values` over each node and all nodes below it."""
    sums = values.copy()
    for level in range(int(depth.max(initial=0)), 0, -1):
        here = np.flatnonzero(depth == level)
        np.add.at(sums, parent[here], sums[here])
    return sums
