"""ONNX Runtime nodes that ran on the CPU though their session has an accelerator, and the copies.

ONNX Runtime puts a copy node wherever a value passes from one to the other. Its events name no
edges, so a copy is tied to a CPU node by order and shape: the next one that takes a value of the
shape copied to the host, the last one that gave a value of the shape copied from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.arrays.groups import sum_by_group
from epprof_nb.data.schema import MISSING

if TYPE_CHECKING:
    from epprof_nb.analysis.op_tree import OpTree
    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.data.profile_data import ProfileData
    from epprof_nb.data.table import Table


CPU = "CPUExecutionProvider"
TO_HOST, FROM_HOST = "MemcpyToHost", "MemcpyFromHost"
# Providers that are no other device: nothing runs on the CPU for the want of them.
_NO_DEVICE = (CPU, "AzureExecutionProvider")


@dataclass(frozen=True, slots=True)
class Placement:
    """Where nodes fell back to the CPU.

    Attributes
    ----------
    fell_back
        bool array, one an op: it is a node that ran on the CPU in a session with an accelerator.
    caused_by
        int64 array, one an op: for a copy node, the row of an execution of the CPU node that it
        served; `MISSING` for other ops, and where no CPU node fits.
    """

    fell_back: BoolArray
    caused_by: IntArray


def placement(profile: ProfileData, groups: IntArray) -> Placement:
    """Find the nodes that fell back to the CPU, and the copies each caused.

    Parameters
    ----------
    profile
        The profile.
    groups
        int64 array, one an op: the same number for executions of one node; `MISSING` for ops that
        are no nodes.
    """
    ops = profile.tables["ops"]
    node = np.flatnonzero(groups >= 0)
    accelerated = np.isin(ops["session"][node], _accelerated(profile.info, ops, node))
    on_cpu = ops.names("provider").equals(CPU)[node]
    op_type = ops.names("op_type")
    copy = (op_type.equals(TO_HOST) | op_type.equals(FROM_HOST))[node]
    fell_back = np.zeros(len(ops), np.bool_)
    fell_back[node[accelerated & on_cpu & ~copy]] = True
    caused_by = np.full(len(ops), MISSING, np.int64)
    copies = node[accelerated & copy]
    if len(copies) and fell_back.any():
        # What a copy serves is the graph's: one execution tells it for all.
        of_group, first = np.unique(groups[copies], return_index=True)
        served = np.full(int(groups.max()) + 1, MISSING, np.int64)
        served[of_group] = _served(ops, copies[first], fell_back)
        caused_by[copies] = served[groups[copies]]
    return Placement(fell_back, caused_by)


def copies_caused(
    profile: ProfileData, tree: OpTree, place: Placement, groups: IntArray
) -> list[IntArray]:
    """Add up the copies that the nodes caused by running on the CPU.

    Parameters
    ----------
    profile, tree
        The profile, and the tree of its ops.
    place
        What `placement` found.
    groups
        int64 array, one an op: the node it executes, numbered from 0 without a hole; `MISSING`
        for ops that are no nodes.

    Returns
    -------
    sums
        Three int64 arrays, one value a node: executions of copy nodes, bytes copied in them, and
        the device time of that, nanoseconds.
    """
    n = int(groups.max(initial=-1)) + 1
    cause = np.append(groups, MISSING)[place.caused_by]
    activities = profile.tables["activities"]
    copies = np.flatnonzero(activities.names("kind").equals("memcpy"))
    of_copy = np.append(cause, MISSING)[tree.rows(activities["op_id"][copies])]
    return [
        sum_by_group(cause, np.ones(len(cause), np.int64), n)[:-1],
        sum_by_group(of_copy, np.maximum(activities["bytes"][copies], 0), n)[:-1],
        sum_by_group(of_copy, activities["duration_ns"][copies], n)[:-1],
    ]


def _accelerated(info: dict[str, Any], ops: Table, node: IntArray) -> list[int]:
    """Return the sessions that have another device than the CPU, by option or by a node on it."""
    provider = ops.names("provider")
    elsewhere = provider.codes[node] >= 0
    for name in _NO_DEVICE:
        elsewhere &= ~provider.equals(name)[node]
    found = set(np.unique(ops["session"][node][elsewhere]).tolist())
    told = info.get("onnxruntime_providers")
    for number, names in told.items() if isinstance(told, dict) else ():
        if isinstance(names, list) and set(map(str, names)) - set(_NO_DEVICE):
            found.add(int(number) if str(number).isdecimal() else MISSING)
    return sorted(found - {MISSING})


def _served(ops: Table, copies: IntArray, fell_back: BoolArray) -> IntArray:
    """Return, for one execution of each copy node, the row of the CPU node it served."""
    parents = ops["parent_op_id"]
    around = np.isin(parents, parents[copies]) & fell_back
    siblings: dict[int, list[int]] = {}
    for row in np.flatnonzero(around)[np.argsort(ops["start_ns"][around], kind="stable")].tolist():
        siblings.setdefault(int(parents[row]), []).append(row)
    inputs, outputs = ops.names("input_shapes"), ops.names("output_shapes")
    to_host = ops.names("op_type").equals(TO_HOST)
    found = np.full(len(copies), MISSING, np.int64)
    for i, copy in enumerate(copies.tolist()):
        near = siblings.get(int(parents[copy]), [])
        start = int(ops["start_ns"][copy])
        if to_host[copy]:
            fits = [r for r in near if ops["start_ns"][r] >= start]
            side, moved = inputs, _values(outputs, copy)
        else:
            fits = [r for r in reversed(near) if ops["start_ns"][r] < start]
            side, moved = outputs, _values(inputs, copy)
        found[i] = next((r for r in fits if moved & _values(side, r)), MISSING)
    return found


def _values(shapes: Any, row: int) -> set[str]:  # noqa: ANN401
    """Return the values of a node, each as ``float[1,4]``."""
    code = shapes.codes[row]
    return set(shapes.categories[code].split(", ")) if code >= 0 else set()
