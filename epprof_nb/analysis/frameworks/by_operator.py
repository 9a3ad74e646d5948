"""by_operator: device and host time of PyTorch's operators and their backward pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.breakdown_columns import MeasureColumns
from epprof_nb.analysis.base.op_status import host_times
from epprof_nb.analysis.base.op_totals import totals
from epprof_nb.analysis.base.result_table import OptionalColumn, ResultTable, categorical
from epprof_nb.analysis.base.unknown_device_times import missing_if_unknown
from epprof_nb.analysis.frameworks.operator_links import (
    forward_operators,
    is_node,
    is_operator,
    lacks_links,
)
from epprof_nb.analysis.frameworks.training_phases import modules as module_calls
from epprof_nb.arrays.groups import group_codes, sum_by_group
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from epprof_nb.analysis.base.attribution import Attribution
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.base.result_table import Column
    from epprof_nb.arrays.types import IntArray

NO_OPERATOR = "(no operator)"
"""Name of the row of device work outside of operators."""


@missing_if_unknown
def operator_table(
    index: ProfileIndex,
    *,
    modules: bool = False,
    shapes: bool = False,
    attribution: Attribution = "launch",
) -> ResultTable:
    """Return the columns of `Profile.by_operator`."""
    ops, tree = index.profile.tables["ops"], index.tree
    mask = is_operator(index)
    named = np.flatnonzero(mask)
    names = {"module": ops.names("name"), "input_shapes": ops.names("input_shapes")}
    module = index.cached(module_calls)[named]
    module_codes = np.append(names["module"].codes, MISSING)[module]
    keys = [ops.names("name").codes[named], ops.names("op_type").codes[named]]
    if modules:
        keys.append(module_codes)
    if shapes:
        keys.append(names["input_shapes"].codes[named])
    groups = np.full(len(ops), MISSING, np.int64)
    groups[named], first = group_codes(*keys)
    sums = totals(index, groups, tree.nearest_ancestor(mask), attribution=attribution)
    order = sums.longest_first()
    rows, last = named[first[order]], int(sums.has_unattributed)
    measures = MeasureColumns(index.profile, groups, sums, order)
    host_ns = host_times(ops)

    def of_backward(time: IntArray) -> OptionalColumn:
        column = measures.host(_backward(index, groups, time))
        is_unknown = column.is_missing | index.cached(lacks_links)
        return OptionalColumn(column.numbers, is_unknown)

    columns: dict[str, Column] = {
        "name": categorical([*ops.names("name").take(rows).to_list(), *[NO_OPERATOR] * last]),
        "op_type": categorical([*ops.names("op_type").take(rows).to_list(), *[None] * last]),
    }
    if modules:
        table = [*names["module"].categories, None]
        of_group = module_codes[first[order]].tolist()
        columns["module"] = categorical([*(table[code] for code in of_group), *[None] * last])
    if shapes:
        of_rows = names["input_shapes"].take(rows).to_list()
        columns["input_shapes"] = categorical([*of_rows, *[None] * last])
    device = measures.device_and_self()
    # Device and host time side by side: one of them is 0 in many profiles.
    columns |= {
        "count": measures.column(sums.count),
        "device_ns": device.pop("device_ns"),
        "host_ns": measures.host(sums.host_ns),
        "self_device_ns": device.pop("self_device_ns"),
        "self_host_ns": measures.host(sums.own_host_ns),
        "backward_ns": of_backward(sums.device_ns_of_op),
        "backward_host_ns": of_backward(host_ns),
        **device,
        **measures.device_per_execution(),
    }
    return ResultTable(columns)


def hints(index: ProfileIndex) -> list[str]:
    """Return hints on where to find the operators, which the summary does not list.

    Examples
    --------
    >>> from epprof_nb.analysis.base.index import ProfileIndex
    >>> from epprof_nb.testing import synthetic_profile
    >>> hints(ProfileIndex(synthetic_profile(activities=100)))  # has no operators
    []
    """
    if not is_operator(index).any():
        return []
    hint = (
        "Operators of PyTorch were recorded: prof.by_operator() has a row for each, and for each "
        "of their modules and shapes with modules=True and shapes=True."
    )
    return [hint]


def _backward(index: ProfileIndex, groups: IntArray, time: IntArray) -> IntArray:
    """Sum the time of the backward nodes of each group of operators.

    Parameters
    ----------
    groups
        int64 array: the group of each op; `MISSING` for none.
    time
        int64 array: time of each op and all ops below it.
    """
    tree = index.tree
    linked = index.cached(forward_operators)
    # A backward pass inside of a node is part of its time.
    nodes = np.flatnonzero(
        tree.is_outermost(np.where(is_node(index), 0, MISSING)) & (linked != MISSING)
    )
    of_operator = sum_by_group(linked[nodes], time[nodes], len(tree))[:-1]
    in_subtree = np.where(tree.is_outermost(groups), tree.subtree_sum(of_operator), 0)
    return sum_by_group(groups, in_subtree, int(groups.max(initial=-1)) + 1)[:-1]
