"""ONNX Runtime nodes that fell back to the CPU in a session with an accelerator, and the copies.

ONNX Runtime inserts a copy node wherever a value passes between CPU and accelerator. Its events
have no edges, so copies are matched to CPU nodes by order and shape: a copy to the host serves the
next CPU node with an input of its shape, a copy from the host the last one with such an output.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.arrays.groups import sum_by_group
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from epprof_nb.analysis.base.op_tree import OpTree
    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.data.names import CategoryColumn
    from epprof_nb.data.profile_data import ProfileData
    from epprof_nb.data.table import Table

CPU = "CPUExecutionProvider"
TO_HOST, FROM_HOST = "MemcpyToHost", "MemcpyFromHost"
NOT_ACCELERATORS = (CPU, "AzureExecutionProvider")


@dataclass(frozen=True, slots=True)
class FallbackReport:
    """Nodes that fell back to the CPU, and the copies they caused.

    Attributes
    ----------
    fell_back
        bool array, one value per op: it is a node that ran on the CPU in a session with an
        accelerator.
    caused_by
        int64 array, one value per op: for a copy node, the row of an execution of the CPU node
        that it served; `MISSING` for other ops, and if no CPU node matches.
    """

    fell_back: BoolArray
    caused_by: IntArray


def has_accelerator(providers: Iterable[str]) -> bool:
    """Whether one of these execution providers uses a device other than the CPU."""
    return bool(set(providers) - set(NOT_ACCELERATORS))


def providers_of(info: Mapping[str, Any], session: int) -> list[str]:
    """Return the execution providers of a session from a profile's info."""
    told = info.get("onnxruntime_providers")
    names = told.get(str(session)) if isinstance(told, dict) else None
    return list(map(str, names)) if isinstance(names, list) else []


def find_fallbacks(profile: ProfileData, groups: IntArray) -> FallbackReport:
    """Find the nodes that fell back to the CPU, and the copies that each caused.

    Parameters
    ----------
    profile
        The profile.
    groups
        int64 array, one value per op: the same number for all executions of one node; `MISSING` for
        ops that are not nodes.
    """
    ops = profile.tables["ops"]
    node = np.flatnonzero(groups >= 0)
    accelerated = np.isin(ops["session"][node], _accelerated(profile.info, ops, node))
    on_cpu = ops.names("provider").equals(CPU)[node]
    op_type = ops.names("op_type")
    is_copy = (op_type.equals(TO_HOST) | op_type.equals(FROM_HOST))[node]
    fell_back = np.zeros(len(ops), np.bool_)
    fell_back[node[accelerated & on_cpu & ~is_copy]] = True
    caused_by = np.full(len(ops), MISSING, np.int64)
    copies = node[accelerated & is_copy]
    if len(copies) and fell_back.any():
        # The graph decides which node a copy serves, so one execution is enough.
        copy_groups, first = np.unique(groups[copies], return_index=True)
        served = np.full(int(groups.max()) + 1, MISSING, np.int64)
        served[copy_groups] = _served_nodes(ops, copies[first], fell_back)
        caused_by[copies] = served[groups[copies]]
    return FallbackReport(fell_back, caused_by)


def copies_caused(
    profile: ProfileData, tree: OpTree, report: FallbackReport, groups: IntArray
) -> list[IntArray]:
    """Sum up the copies that nodes caused by running on the CPU.

    Parameters
    ----------
    profile, tree
        The profile, and the tree of its ops.
    report
        Result of `find_fallbacks`.
    groups
        int64 array, one value per op: the node that it executes, numbered from 0 without gaps;
        `MISSING` for ops that are not nodes.

    Returns
    -------
    sums
        Three int64 arrays, one value per node: executions of copy nodes, bytes that these copied,
        and their device time, nanoseconds.
    """
    n = int(groups.max(initial=-1)) + 1
    cause = np.append(groups, MISSING)[report.caused_by]
    activities = profile.tables["activities"]
    copies = np.flatnonzero(activities.names("kind").equals("memcpy"))
    cause_of_copy = np.append(cause, MISSING)[tree.rows(activities["op_id"][copies])]
    return [
        sum_by_group(cause, np.ones(len(cause), np.int64), n)[:-1],
        sum_by_group(cause_of_copy, np.maximum(activities["bytes"][copies], 0), n)[:-1],
        sum_by_group(cause_of_copy, activities["duration_ns"][copies], n)[:-1],
    ]


def _accelerated(info: dict[str, Any], ops: Table, node: IntArray) -> list[int]:
    """Return the sessions with an accelerator, by their providers or by a node that ran on it."""
    provider = ops.names("provider")
    elsewhere = provider.codes[node] >= 0
    for name in NOT_ACCELERATORS:
        elsewhere &= ~provider.equals(name)[node]
    sessions = set(np.unique(ops["session"][node][elsewhere]).tolist())
    told = info.get("onnxruntime_providers")
    for number in filter(str.isdecimal, map(str, told if isinstance(told, dict) else ())):
        if has_accelerator(providers_of(info, int(number))):
            sessions.add(int(number))
    return sorted(sessions - {MISSING})


def _served_nodes(ops: Table, copies: IntArray, fell_back: BoolArray) -> IntArray:
    """Return, for one execution of each copy node, the row of the CPU node that it served."""
    parents = ops["parent_op_id"]
    is_sibling = np.isin(parents, parents[copies]) & fell_back
    siblings: dict[int, list[int]] = {}
    by_start = np.argsort(ops["start_ns"][is_sibling], kind="stable")
    for row in np.flatnonzero(is_sibling)[by_start].tolist():
        siblings.setdefault(int(parents[row]), []).append(row)
    inputs, outputs = ops.names("input_shapes"), ops.names("output_shapes")
    to_host = ops.names("op_type").equals(TO_HOST)
    served = np.full(len(copies), MISSING, np.int64)
    for i, copy in enumerate(copies.tolist()):
        near = siblings.get(int(parents[copy]), [])
        start = int(ops["start_ns"][copy])
        if to_host[copy]:
            candidates = [row for row in near if ops["start_ns"][row] >= start]
            side, copied = inputs, _shapes(outputs, copy)
        else:
            candidates = [row for row in reversed(near) if ops["start_ns"][row] < start]
            side, copied = outputs, _shapes(inputs, copy)
        matching = (row for row in candidates if copied & _shapes(side, row))
        served[i] = next(matching, MISSING)
    return served


def _shapes(names: CategoryColumn, row: int) -> set[str]:
    """Return a node's inputs or outputs, each as ``float[1,4]``."""
    code = names.codes[row]
    return set(names.categories[code].split(", ")) if code >= 0 else set()
