"""Rows of the nodes of paths and of the activities below them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.op_paths import SESSION
from epprof_nb.analysis.base.result_table import (
    Column,
    OptionalColumn,
    ResultTable,
    categorical,
    names_at,
    optional,
)
from epprof_nb.arrays.groups import count_distinct, group_codes, sum_by_group
from epprof_nb.arrays.ids import values_at
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from epprof_nb.analysis.base.attribution import Attribution
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.base.op_paths import OpPaths
    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.data.names import CategoryColumn


def table_of_paths(
    index: ProfileIndex,
    paths: OpPaths,
    count: IntArray,
    host_ns: IntArray,
    has_host_time: BoolArray,
    *,
    attribution: Attribution,
) -> ResultTable:
    """Return the nodes of paths with the activities below them.

    Parameters
    ----------
    index
        Index of the profile.
    paths
        Nodes of the ops; nodes of activities are added.
    count, host_ns
        int64 arrays, one value per node of `paths`.
    has_host_time
        bool array, one value per node of `paths`: whether the host time of the node is known.
    attribution
        See `by_path`.

    Returns
    -------
    table
        The columns of `by_path`, without nodes that neither ran nor launched anything.
    """
    tables, tree = index.profile.tables, index.tree
    ops, activities = tables["ops"], tables["activities"]
    owner = np.append(paths.of_op, paths.no_op)[index.attributed_op(attribution)]
    # Waits, of which there are few, get a leaf as well, without work: that copies no column.
    waits = np.flatnonzero(~index.is_device_work)
    owner[waits] = paths.no_op
    uncaptured = len(paths.parent)
    if attribution == "launch" and activities.has_value("capture_op_id").any():
        # The work of a graph is below its launch and its capture.
        captured = tree.rows(activities["capture_op_id"])
        captured[waits] = MISSING
        owner = paths.add_captured(ops, owner, captured)
    kinds, names = activities.names("kind"), activities.names("name")
    leaf, example = group_codes(owner, kinds.codes, names.codes)
    leaf[waits] = MISSING
    inner, leaves = len(paths.parent), len(example)
    above, kinds, names = owner[example], kinds.take(example), names.take(example)
    parent = np.append(paths.parent, above)
    depth = np.append(paths.depth, paths.depth[above] + 1)

    def by_leaf(values: IntArray) -> IntArray:
        return sum_by_group(leaf, values, leaves)[:-1]

    def of_leaves(sums: IntArray) -> IntArray:
        return np.append(np.zeros(inner, np.int64), sums)

    def of_nodes(values: IntArray) -> IntArray:
        return np.append(values, np.zeros(len(parent) - uncaptured, np.int64))

    executed = by_leaf(np.ones(len(owner), np.int64))
    durations = by_leaf(activities["duration_ns"])
    # A column that is left out has no value to sum.
    sizes = np.zeros(leaves, np.int64)
    if not activities.is_absent("bytes"):
        sizes = by_leaf(np.maximum(activities["bytes"], 0))
    count = of_nodes(count) + of_leaves(executed)
    if inner > uncaptured:
        replays = count_distinct(owner, activities["correlation_id"], inner)
        count[uncaptured:inner] = replays[uncaptured:]
    count[SESSION] = 1
    launched = sum_by_group(above, durations, inner)[:-1]
    columns = {
        "count": count,
        "device_ns": subtree_sum(of_leaves(durations), parent, depth),
        # The row above already includes the time of a leaf.
        "self_device_ns": np.append(launched, np.zeros(leaves, np.int64)),
        "host_ns": of_nodes(host_ns),
        "kernels": subtree_sum(
            of_leaves(np.where(kinds.equals("kernel"), executed, 0)), parent, depth
        ),
        "bytes": subtree_sum(of_leaves(sizes), parent, depth),
    }
    # Drop paths that neither ran nor launched anything: mostly ops of earlier profiles.
    kept = np.flatnonzero(subtree_sum(count, parent, depth) > 0)
    number = np.full(len(parent) + 1, MISSING, np.int64)
    number[kept] = np.arange(len(kept))
    # Activities run on no host, and the nodes of graphs only as a whole.
    is_timed = np.append(has_host_time, np.zeros(len(parent) - uncaptured, np.bool_))[kept]
    sums: dict[str, Column] = {name: values[kept] for name, values in columns.items()}
    sums["host_ns"] = OptionalColumn(columns["host_ns"][kept], ~is_timed)
    # Steps beyond the ops have labels.
    example_op = np.where(paths.row < len(ops), paths.row, MISSING)

    def texts(of_op: list[str | None], of_leaf: list[str | None]) -> CategoryColumn:
        return categorical(np.array([*of_op, *of_leaf], object)[kept].tolist())

    def of_example(column: str) -> list[str | None]:
        return names_at(ops.names(column), example_op).to_list()

    none: list[str | None] = [None] * leaves
    types = of_example("op_type")
    nodes = [category == "node" for category in of_example("category")]
    levels = ["node" if node else kind for node, kind in zip(nodes, types, strict=True)]
    line = np.append(values_at(ops["line"], example_op), np.full(leaves, MISSING))
    op_names = of_example("name")
    for node, (level, name) in paths.labels.items():
        levels[node], op_names[node] = level, name
    return ResultTable(
        {
            "parent": optional(number[parent[kept]]),
            "depth": depth[kept],
            "level": texts(levels, kinds.to_list()),
            "name": texts(op_names, names.to_list()),
            "op_type": texts(types, none),
            "cell": texts(of_example("cell"), none),
            "line": optional(line[kept]),
            **sums,
        },
        index="node",
    )


def subtree_sum(values: IntArray, parent: IntArray, depth: IntArray) -> IntArray:
    """Sum `values` over each node and all nodes below it."""
    sums = values.copy()
    for level in range(int(depth.max(initial=0)), 0, -1):
        here = np.flatnonzero(depth == level)
        np.add.at(sums, parent[here], sums[here])
    return sums
