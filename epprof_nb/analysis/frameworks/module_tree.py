"""module_tree: device and host time along paths of modules, then of ops, down to the kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.analysis.base.op_path_rows import subtree_sum, table_of_paths
from epprof_nb.analysis.base.op_paths import MAX_DEPTH, OpPaths, Steps, op_keys
from epprof_nb.analysis.base.op_status import has_host_time, ran
from epprof_nb.analysis.base.op_totals import self_host_ns
from epprof_nb.analysis.base.unknown_device_times import missing_if_unknown
from epprof_nb.analysis.frameworks.by_module import OUTSIDE, is_call
from epprof_nb.analysis.frameworks.training_phases import (
    FORWARD_TYPES,
    MODULE_TYPES,
    is_of_type,
    modules,
    phase_ops,
)
from epprof_nb.arrays.groups import sum_by_group
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    import numpy.typing as npt

    from epprof_nb.analysis.base.attribution import Attribution
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.base.result_table import ResultTable
    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.data.names import CategoryColumn

_MODULE, _WORK, _OUTSIDE = -2, -3, -4
"""Codes in place of a type; a type has no code below `MISSING`."""


@missing_if_unknown
def module_tree(index: ProfileIndex, *, attribution: Attribution = "launch") -> ResultTable:
    """Return a tree of the modules with the columns of `by_path`.

    Below a module are the modules that it calls, and its own work: a row ``forward`` and a row
    ``backward`` with the ops and activities of each. Work outside of modules is below the
    framework's op around it, else below ``(outside of modules)`` and the op that launched it.

    Parameters
    ----------
    index
        Index of the profile.
    attribution
        See `epprof_nb.Profile.by_path`.

    Raises
    ------
    ValueError
        If `attribution` is unknown.
    """
    ops, tree = index.profile.tables["ops"], index.tree
    n = len(ops)
    is_module = is_of_type(index, *MODULE_TYPES)
    calls = np.flatnonzero(is_module)
    outside = n + len(calls)
    # The step of the work that each op launches; a call of a module has a further step below it.
    work_step = np.arange(n)
    work_step[calls] = n + np.arange(len(calls))
    steps = _steps(index, calls, work_step, outside)
    paths = OpPaths(steps)
    paths.of_op = paths.of_row[work_step]
    paths.parent[paths.no_op] = paths.of_row[outside]
    paths.depth[paths.no_op] += 1
    paths.labels[int(paths.of_row[outside])] = ("none", OUTSIDE)
    # Calls below this depth belong to the node of another step.
    own = calls[steps.depth[work_step[calls]] < MAX_DEPTH]
    _label(paths, own, ops.names("name").take(own), is_of_type(index, *FORWARD_TYPES)[own])
    size = len(paths.parent)
    count = sum_by_group(paths.of_op[calls], ops["count"][calls], size)
    counted = np.where(is_call(index) | (~is_module & ran(ops)), ops["count"], 0)
    count += sum_by_group(paths.of_row[:n], counted, size)
    host, timed = (
        subtree_sum(sum_by_group(paths.of_op, values, size)[:-1], paths.parent, paths.depth)
        for values in (self_host_ns(ops, tree.parent), has_host_time(ops).astype(np.int64))
    )
    return table_of_paths(index, paths, count[:-1], host, timed > 0, attribution=attribution)


def _steps(index: ProfileIndex, calls: IntArray, work_step: IntArray, outside: int) -> Steps:
    """Return the ops, the work of each call of a module, and the work outside, as steps."""
    tree = index.tree
    names, types, *places = op_keys(index.profile.tables["ops"])
    types = types.copy()
    types[calls] = _MODULE
    is_forward = is_of_type(index, *FORWARD_TYPES)[calls].astype(np.int64)
    none = np.full(len(calls), MISSING)
    further = (is_forward, np.full(len(calls), _WORK), *[none for _ in places])
    keys = tuple(
        np.concatenate([of_ops, of_calls, [_OUTSIDE]])
        for of_ops, of_calls in zip((names, types, *places), further, strict=True)
    )
    framework_op = np.append(index.cached(phase_ops), MISSING)
    above = np.where(framework_op[tree.parent] >= 0, tree.parent, MISSING)
    parent = np.append(work_step, MISSING)[above]
    parent[calls] = _calling_modules(index, calls, names)
    parent[framework_op[:-1] < 0] = outside
    parent = np.concatenate([parent, calls, [MISSING]])
    return Steps(keys, parent, _depths(parent))


def _calling_modules(
    index: ProfileIndex, calls: IntArray, names: npt.NDArray[np.integer[Any]]
) -> IntArray:
    """Return the row of the nearest call of another module around each call, else `MISSING`.

    A module is inside of a call of itself if it is recomputed, recursive, or wrapped.
    """
    outer = np.append(np.append(index.cached(modules), MISSING)[index.tree.parent], MISSING)
    above = outer[calls]
    while True:
        is_same = (above >= 0) & (names[above] == names[calls])
        if not is_same.any():
            return above
        above[is_same] = outer[above[is_same]]


def _label(paths: OpPaths, calls: IntArray, names: CategoryColumn, is_forward: BoolArray) -> None:
    """Name the nodes of modules, and the nodes of their own work below."""
    for work, of_calls in (("forward", is_forward), ("backward", ~is_forward)):
        nodes = np.unique(paths.of_op[calls[of_calls]])
        paths.labels |= dict.fromkeys(nodes.tolist(), (work, work))
    nodes, first = np.unique(paths.of_row[calls], return_index=True)
    for node, name in zip(nodes.tolist(), names.take(first).to_list(), strict=True):
        paths.labels[node] = ("module", name)


def _depths(parent: IntArray) -> IntArray:
    """Return the number of rows above each row."""
    jump = np.append(parent, MISSING)
    depth = (jump >= 0).astype(np.int64)
    while (jump >= 0).any():
        depth += depth[jump]
        jump = jump[jump]
    return depth[:-1]
