"""by_node and by_op_type: ONNX Runtime's nodes and operators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.analysis.base.breakdown_columns import HIGH_PERCENTILE, MeasureColumns
from epprof_nb.analysis.base.executions import executions
from epprof_nb.analysis.base.op_status import has_host_time
from epprof_nb.analysis.base.op_totals import Totals, totals
from epprof_nb.analysis.base.result_table import OptionalColumn, ResultTable, categorical, optional
from epprof_nb.analysis.base.unknown_device_times import missing_if_unknown
from epprof_nb.analysis.onnx.fallback import copies_caused, find_fallbacks
from epprof_nb.analysis.onnx.node_usage import usage_columns
from epprof_nb.analysis.onnx.unprofiled_times import run_weights, unprofiled_host_ns
from epprof_nb.arrays.groups import count_distinct, group_codes, sum_by_group
from epprof_nb.arrays.intervals import EARLIEST, LATEST
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    import numpy.typing as npt

    from epprof_nb.analysis.base.attribution import Attribution
    from epprof_nb.analysis.base.executions import Executions
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.base.op_tree import OpTree
    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.data.names import CategoryColumn
    from epprof_nb.data.profile_data import ProfileData

NO_NODE = "(no node)"
"""Name of the row of device work without a node."""
_FIRST_MEASURES = ("count", "device_ns", "share", "host_ns", "mean_host_ns")


@missing_if_unknown
def node_table(index: ProfileIndex, *, attribution: Attribution = "capture") -> ResultTable:
    """Return the columns of `Profile.by_node`."""
    profile = index.profile
    ops, tree = profile.tables["ops"], index.tree
    is_node = ops.names("category").equals("node")
    enclosing = _enclosing(tree, is_node)
    groups, first = _node_groups(profile, enclosing, is_node)
    sums = totals(index, groups, tree.nearest_ancestor(is_node), attribution=attribution)
    order = sums.longest_first()
    rows, last = first[order], int(sums.has_unattributed)
    outer = enclosing[rows]
    outer_names = ops.names("name").take(outer).to_list()
    inside = [name if row >= 0 else None for name, row in zip(outer_names, outer, strict=True)]

    report = find_fallbacks(profile, groups)
    caused = copies_caused(profile, tree, report, groups)
    copies, size, copy_ns = (np.append(values[order], [0] * last) for values in caused)

    def names(column: str, of_last: str | None = None) -> CategoryColumn:
        return categorical([*ops.names(column).take(rows).to_list(), *[of_last] * last])

    executed = executions(index, is_node, sums.device_ns_of_op, attribution=attribution)
    measures = _measures(index, groups, sums, order, executed)
    return ResultTable(
        {
            "name": names("name", NO_NODE),
            "op_type": names("op_type"),
            "provider": names("provider"),
            **{name: measures.pop(name) for name in _FIRST_MEASURES},
            "session": optional([*ops["session"][rows], *[MISSING] * last]),
            "inside": categorical([*inside, *[None] * last]),
            "node_index": optional([*ops["node_index"][rows], *[MISSING] * last]),
            **measures,
            "fell_back": np.append(report.fell_back[rows], [False] * last).astype(np.bool_),
            "fallback_copies": copies.astype(np.int64),
            "fallback_bytes": size.astype(np.int64),
            "fallback_copy_ns": copy_ns.astype(np.int64),
            **_usage(profile, groups, sums, order),
        }
    )


@missing_if_unknown
def op_type_table(index: ProfileIndex, *, attribution: Attribution = "capture") -> ResultTable:
    """Return the columns of `Profile.by_op_type`."""
    profile = index.profile
    ops, tree = profile.tables["ops"], index.tree
    is_node = ops.names("category").equals("node")
    nodes, _ = _node_groups(profile, _enclosing(tree, is_node), is_node)
    codes = ops.names("op_type").codes, ops.names("provider").codes
    groups, first = _masked_group_codes(is_node, *codes)
    sums = totals(index, groups, tree.nearest_ancestor(is_node), attribution=attribution)
    order = sums.longest_first()
    rows, last = first[order], int(sums.has_unattributed)
    node_counts = count_distinct(groups[is_node], nodes[is_node], len(first))
    executed = executions(index, is_node, sums.device_ns_of_op, attribution=attribution)
    types, providers = (ops.names(n).take(rows).to_list() for n in ("op_type", "provider"))
    return ResultTable(
        {
            "op_type": categorical([*types, *[NO_NODE] * last]),
            "provider": categorical([*providers, *[None] * last]),
            "nodes": np.append(node_counts[order], np.zeros(last, np.int64)),
            **_measures(index, groups, sums, order, executed),
            **_usage(profile, groups, sums, order),
        }
    )


def _enclosing(tree: OpTree, is_node: BoolArray) -> IntArray:
    """Return the row of the node that encloses each op; `MISSING` for none."""
    nearest = np.append(tree.nearest_ancestor(is_node), MISSING)
    return nearest[tree.parent]


def _node_groups(
    profile: ProfileData, enclosing: IntArray, is_node: BoolArray
) -> tuple[IntArray, IntArray]:
    """Number the nodes of all graphs; executions of one node have the same number."""
    ops = profile.tables["ops"]
    path = np.full(len(ops) + 1, MISSING, np.int64)
    while True:
        # Node indexes restart in each subgraph: equal nodes also have equal enclosing nodes.
        groups, first = _masked_group_codes(
            is_node, ops["session"], ops.names("name").codes, ops.names("op_type").codes,
            ops["node_index"], path[enclosing],
        )  # fmt: skip
        next_path = np.append(groups, MISSING)
        if np.array_equal(next_path, path):
            return groups, first
        path = next_path


def _masked_group_codes(
    mask: BoolArray, *columns: npt.NDArray[np.integer[Any]]
) -> tuple[IntArray, IntArray]:
    """Return `group_codes` of the rows of a mask; other rows have the code `MISSING`."""
    rows = np.flatnonzero(mask)
    groups = np.full(len(mask), MISSING, np.int64)
    if not len(rows):
        return groups, rows
    codes, first = group_codes(*(column[rows] for column in columns))
    groups[rows] = codes
    return groups, rows[first]


def _recorded(profile: ProfileData, groups: IntArray, count: int) -> IntArray:
    """Return the number of executions of each group that were recorded node by node."""
    ops = profile.tables["ops"]
    recorded: IntArray = sum_by_group(groups, np.where(has_host_time(ops), ops["count"], 0), count)
    return recorded[:-1]


def _unprofiled(index: ProfileIndex, groups: IntArray, count: int) -> IntArray:
    """Return the host time of each group in all runs without the profiler."""
    if not (groups >= 0).any():
        return np.zeros(count, np.int64)
    known = groups >= 0
    total = np.bincount(groups[known], index.cached(unprofiled_host_ns)[known], count)
    return np.rint(np.clip(total, EARLIEST, LATEST)).astype(np.int64)


def _measures(
    index: ProfileIndex, groups: IntArray, sums: Totals, order: IntArray, executed: Executions
) -> dict[str, Any]:
    """Return the columns of executions, host time and device time, `_FIRST_MEASURES` first."""
    profile = index.profile
    columns = MeasureColumns(profile, groups, sums, order)
    host = columns.host_per_execution(50, HIGH_PERCENTILE, weights=index.cached(run_weights))
    device = columns.device_and_self()
    measures: dict[str, Any] = {
        "count": columns.count(executed),
        "device_ns": device["device_ns"],
        "share": device["share"],
        "host_ns": columns.host(sums.host_ns),
        "mean_host_ns": host["mean_host_ns"],
        "recorded": columns.column(_recorded(profile, groups, len(sums.count))),
        "unprofiled_host_ns": columns.host(_unprofiled(index, groups, len(sums.count))),
    }
    for more in (host, device, columns.device_per_execution(executed)):
        measures |= {name: column for name, column in more.items() if name not in measures}
    return measures


def _usage(
    profile: ProfileData, groups: IntArray, sums: Totals, order: IntArray
) -> dict[str, OptionalColumn]:
    """Return the columns of memory and threads."""
    columns = MeasureColumns(profile, groups, sums, order)
    return usage_columns(profile.tables["ops"], groups, len(sums.count), columns)
