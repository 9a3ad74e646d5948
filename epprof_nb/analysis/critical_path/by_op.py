"""The critical path by op: the time of ops of one name and line on it, and what it saves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.op_tree import NO_OP
from epprof_nb.analysis.base.processes import process_by_process
from epprof_nb.analysis.base.result_table import ResultTable, categorical, optional
from epprof_nb.analysis.base.unknown_device_times import device_column
from epprof_nb.analysis.critical_path.chain import API_CALL, HOST, CriticalPath, ops_below
from epprof_nb.analysis.critical_path.interleaved_ops import interleaved_ops
from epprof_nb.analysis.critical_path.kernel_ops import kernel_ops
from epprof_nb.analysis.critical_path.native_input import VARIANTS
from epprof_nb.analysis.critical_path.unrecorded_runs import UnrecordedRuns
from epprof_nb.arrays.groups import group_codes, sum_by_group
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from epprof_nb.analysis.base.attribution import Attribution
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray

SAVINGS = 3 * VARIANTS
"""Number of ops whose saving is computed: those with the most time on the path."""


@process_by_process
def critical_path_op_table(index: ProfileIndex, attribution: Attribution = "launch") -> ResultTable:
    """Return the columns of ``Profile.critical_path(by="op")``."""
    path = index.cached(CriticalPath, attribution)
    ops, tree = index.profile.tables["ops"], index.tree
    names, types, cells = ops.names("name"), ops.names("op_type"), ops.names("cell")
    groups, first = group_codes(names.codes, types.codes, cells.codes, ops["line"])
    n = len(first)
    on_device = (path.step != HOST) & (path.step != API_CALL)
    # The time of an op below another op of its group is already included.
    outermost = tree.is_outermost(groups)
    owner = np.where(outermost, groups, MISSING)
    sums = [
        sum_by_group(owner, tree.subtree_sum(_sum(path.op[mask], path.duration_ns[mask], n_ops)), n)
        for n_ops in (len(ops),)
        for mask in (slice(None), on_device)
    ]
    path_ns, device_ns = (values[:-1] for values in sums)
    own_ns = sum_by_group(groups, _sum(path.op, path.duration_ns, len(ops)), n)[:-1]
    order = np.lexsort((first, -path_ns))
    order = order[path_ns[order] > 0]
    rows = first[order]
    without = path.op == MISSING
    no_op = [int(path.duration_ns[mask].sum()) for mask in (without, without & on_device)]
    last = int(no_op[0] > 0)

    def column(values: IntArray, of_no_op: int) -> IntArray:
        return np.append(values[order], np.full(last, of_no_op, np.int64))

    inclusive_ns = column(path_ns, no_op[0])
    return ResultTable(
        {
            "name": categorical([*names.take(rows).to_list(), *[NO_OP] * last]),
            "saving_ns": optional(column(_savings(index, path, groups, order), MISSING)),
            "path_ns": inclusive_ns,
            "share": inclusive_ns / max(path.length_ns, 1),
            "op_type": categorical([*types.take(rows).to_list(), *[None] * last]),
            "cell": categorical([*cells.take(rows).to_list(), *[None] * last]),
            "line": optional(column(ops["line"][first], MISSING)),
            "count": column(sum_by_group(groups, ops["count"], n)[:-1], 0),
            "self_path_ns": column(own_ns, no_op[0]),
            "device_path_ns": device_column(index, column(device_ns, no_op[1])),
            "host_path_ns": column(path_ns - device_ns, no_op[0] - no_op[1]),
        }
    )


def _savings(
    index: ProfileIndex, path: CriticalPath, groups: IntArray, order: IntArray
) -> IntArray:
    """Return how much shorter the path is if the ops of a group, and all below, take no time.

    The first `SAVINGS` groups of `order` are computed, the others are `MISSING`.
    """
    savings = np.full(int(groups.max(initial=MISSING)) + 1, MISSING, np.int64)
    tree, unrecorded = index.tree, index.cached(UnrecordedRuns)
    for begin in range(0, min(len(order), SAVINGS), VARIANTS):
        chosen = order[begin : min(begin + VARIANTS, SAVINGS)]
        free = np.zeros(len(tree) + 1, np.uint8)
        for bit, group in enumerate(chosen.tolist()):
            free[:-1] |= ops_below(index, groups == group).astype(np.uint8) << np.uint8(bit)
        lengths = path.input.lengths(free)[: len(chosen)]
        savings[chosen] = path.length_ns - lengths
        for group in chosen.tolist() if len(unrecorded.rows) else ():
            factors = np.where(ops_below(index, groups == group), 0.0, 1.0)
            of_op = path.input.activity_op
            of_device = np.append(factors, 1.0)[of_op]
            of_device = unrecorded.device_factors(of_device, factors, of_op)
            factors[unrecorded.rows] = unrecorded.factors(factors)
            savings[group] = path.length_ns - path.input.length_with(factors, of_device)
    savings[groups[interleaved_ops(index) | index.cached(kernel_ops)]] = MISSING
    return savings


def _sum(ops: IntArray, values: IntArray, count: int) -> IntArray:
    """Sum values by op; values without an op are left out."""
    return sum_by_group(ops, values, count)[:-1]
