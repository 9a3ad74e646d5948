"""by_module: device and host time of each module, forward and backward."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.op_status import has_host_time, ran
from epprof_nb.analysis.base.op_totals import share
from epprof_nb.analysis.base.result_table import OptionalColumn, ResultTable, categorical
from epprof_nb.analysis.base.unknown_device_times import missing_if_unknown
from epprof_nb.analysis.frameworks.training_phases import (
    BACKWARD,
    FORWARD,
    FORWARD_TYPES,
    FUSED_TYPES,
    MODULE_TYPES,
    OTHER,
    is_framework_op,
    is_of_type,
    modules,
    op_phases,
)
from epprof_nb.arrays.groups import group_codes, sum_by_group
from epprof_nb.arrays.intervals import covered_by_group
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.op_args import arguments

if TYPE_CHECKING:
    from epprof_nb.analysis.base.attribution import Attribution
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.base.result_table import Column
    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.data.names import CategoryColumn

OUTSIDE = "(outside of modules)"


@missing_if_unknown
def module_table(index: ProfileIndex, *, attribution: Attribution = "launch") -> ResultTable:
    """Return the columns of `Profile.by_module`."""
    ops, tree = index.profile.tables["ops"], index.tree
    is_module = is_of_type(index, *MODULE_TYPES)
    named = np.flatnonzero(is_framework_op(index))
    # Paths of modules form separate groups: a module may have the name of an optimizer. A fused
    # kernel has one row for the forward and the backward pass, as modules have.
    is_fused = is_of_type(index, *FUSED_TYPES)
    types = np.where(is_fused, MISSING - 1, ops.names("op_type").codes)
    group_type = np.where(is_module, MISSING, types)[named]
    of_named, first = group_codes(ops.names("name").codes[named], group_type)
    groups = np.full(len(ops), MISSING, np.int64)
    groups[named] = of_named
    outside = n = len(first)
    sums = index.op_sums(attribution)
    owner = np.append(groups, MISSING)[tree.nearest_ancestor(groups >= 0)]

    def total_of(values: IntArray) -> IntArray:
        """Sum over each group itself; the last element is for work without a group."""
        own = sum_by_group(owner, values[:-1], n)
        own[outside] += values[-1]
        return own

    own_ns, own_kernels = total_of(sums["device_ns"]), total_of(sums["kernels"])
    outermost = tree.is_outermost(groups) & is_module
    module_groups = np.append(is_module[named[first]], False)

    def inclusive(values: IntArray, own: IntArray) -> IntArray:
        """Sum over the modules with all below them, and over the other groups themselves."""
        in_subtree = np.where(outermost, tree.subtree_sum(values), 0)
        return np.where(module_groups, sum_by_group(groups, in_subtree, n), own)

    phases = index.cached(op_phases)
    device = {}
    for phase in (FORWARD, BACKWARD):
        in_phase = np.append(np.where(phases == phase, sums["device_ns"][:-1], 0), 0)
        device[phase] = inclusive(in_phase[:-1], total_of(in_phase))
    device_ns = inclusive(sums["device_ns"][:-1], own_ns)
    whole = int(sums["device_ns"].sum())
    host = _host_ns(index, groups, outermost, is_module, n)
    calls = sum_by_group(groups, np.where(is_call(index), ops["count"], 0), n)
    counts_outside = _counts_outside(index, groups)
    if counts_outside.any():
        host[OTHER][outside] = _host_ns_outside(index, groups, counts_outside)
    host_ns = host[FORWARD] + host[BACKWARD] + host[OTHER]
    timed = sum_by_group(groups, has_host_time(ops).astype(np.int64), n)
    is_outside = np.arange(n + 1) == outside
    is_missing = np.where(is_outside, not counts_outside.any(), timed == 0)
    # Device and host time side by side: one of them is 0 in many profiles.
    kernels = inclusive(sums["kernels"][:-1], own_kernels)
    columns: dict[str, Column] = {
        "path": categorical([*ops.names("name").take(named[first]).to_list(), OUTSIDE]),
        "type": _types(index, named[first], is_module),
        "class": _classes(index, named, of_named, n),
        "calls": OptionalColumn(calls, is_outside),
        "device_ns": device_ns,
        "host_ns": OptionalColumn(host_ns, is_missing),
        "forward_ns": device[FORWARD],
        "forward_host_ns": OptionalColumn(host[FORWARD], is_missing | is_outside),
        "backward_ns": device[BACKWARD],
        "backward_host_ns": OptionalColumn(host[BACKWARD], is_missing | is_outside),
        "other_ns": device_ns - device[FORWARD] - device[BACKWARD],
        "other_host_ns": OptionalColumn(host[OTHER], is_missing),
        "self_device_ns": own_ns,
        "share": share(device_ns, whole),
        "kernels": kernels,
    }
    order = np.lexsort((-host_ns[:-1], -device_ns[:-1]))
    # Modules of an earlier profile matter here only if they captured work of this one.
    runs = sum_by_group(groups, ran(ops).astype(np.int64), n)
    is_here = (runs > 0) | (kernels > 0) | (device_ns > 0)
    return ResultTable(columns, index="path").take(np.append(order[is_here[order]], outside))


def is_call(index: ProfileIndex) -> BoolArray:
    """Return a mask of the ops that count as calls of their row.

    A wrapper, such as a compiled module, has the path of the module that it calls.
    """
    ops = index.profile.tables["ops"]
    names, args = ops.names("name").codes, ops.names("args").codes
    # The module call around each op, if there is one.
    above = np.append(index.cached(modules), MISSING)[index.tree.parent]
    is_module = is_of_type(index, *MODULE_TYPES)
    is_wrapped = is_module & (above >= 0) & (names == names[above]) & (args != args[above])
    repeats_forward = is_of_type(index, "recompute", "backward", "compiled")
    counted: BoolArray = is_framework_op(index) & ran(ops) & ~is_wrapped & ~repeats_forward
    return counted


def _host_ns(
    index: ProfileIndex, groups: IntArray, outermost: BoolArray, is_module: BoolArray, n: int
) -> dict[int, IntArray]:
    """Return the host time of each group: of the forward pass, of the backward pass, and other.

    The time of a module is inclusive; other groups leave out the groups inside of them.
    """
    ops = index.profile.tables["ops"]
    counted = np.where(is_module, outermost, groups >= 0) & has_host_time(ops)
    host_ns = np.where(counted, ops["duration_ns"], 0)
    host_ns = np.where(is_module, host_ns, np.maximum(host_ns - _time_inside(index, groups), 0))
    backward = is_of_type(index, "recompute", "backward", "autograd", FUSED_TYPES[1])
    forward = is_of_type(index, *FORWARD_TYPES, FUSED_TYPES[0])
    return {
        phase: sum_by_group(groups, np.where(mask, host_ns, 0), n)
        for phase, mask in (
            (FORWARD, forward),
            (BACKWARD, backward),
            (OTHER, ~(forward | backward)),
        )
    }


def _counts_outside(index: ProfileIndex, groups: IntArray) -> BoolArray:
    """Return a mask of the ops whose host time is outside of modules.

    Operators and nodes without a parent run on threads of autograd, for which a backward pass
    waits.
    """
    ops = index.profile.tables["ops"]
    counted: BoolArray = (index.tree.parent == MISSING) & (groups < 0) & has_host_time(ops)
    return counted & ~ops.names("category").equals("operator")


def _host_ns_outside(index: ProfileIndex, groups: IntArray, counted: BoolArray) -> int:
    """Return the host time of some ops without a parent, without the groups inside of them."""
    ops = index.profile.tables["ops"]
    host_ns = np.maximum(ops["duration_ns"] - _time_inside(index, groups), 0)
    return int(host_ns.sum(where=counted))


def _time_inside(index: ProfileIndex, groups: IntArray) -> IntArray:
    """Return how much time of each op (ns) the nearest ops with a group below it cover.

    It is known for ops with a group and for ops without a parent. Ops of all threads count: a
    backward pass waits while its own threads run the modules.
    """
    ops, tree = index.profile.tables["ops"], index.tree
    outermost = tree.parent == MISSING
    above = np.append(tree.nearest_ancestor((groups >= 0) | outermost), MISSING)[tree.parent]
    inner = np.flatnonzero((groups >= 0) & (above >= 0) & has_host_time(ops))
    outer = above[inner]
    begin = np.maximum(ops["start_ns"][inner], ops["start_ns"][outer])
    end = np.minimum(ops["end_ns"][inner], ops["end_ns"][outer])
    return covered_by_group(outer, begin, end, len(ops))


def _types(index: ProfileIndex, first: IntArray, is_module: BoolArray) -> CategoryColumn:
    types = index.profile.tables["ops"].names("op_type").take(first).to_list()
    fused, module = FUSED_TYPES[0], is_module[first].tolist()
    shown = [
        "module" if module else fused if name in FUSED_TYPES else name
        for name, module in zip(types, module, strict=True)
    ]
    return categorical([*shown, None])


def _classes(index: ProfileIndex, rows: IntArray, groups: IntArray, n: int) -> CategoryColumn:
    """Return the class of each group, taken from its last op, which is not a wrapper."""
    texts = index.profile.tables["ops"].names("args")
    argument = arguments(texts, rows, ["class"])[0]
    last = np.full(n, MISSING, np.int64)
    last[groups] = np.arange(len(rows))
    values = [*map(str, argument.distinct), None]
    return categorical([*(values[code] for code in argument.codes[last].tolist()), None])
