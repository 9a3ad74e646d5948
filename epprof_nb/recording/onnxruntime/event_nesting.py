"""Nesting of ONNX Runtime's events among the ops, for learned nodes and for notes.

A library that a node calls may open its own ops inside: CUB does so with NVTX ranges. The op of a
launch is decided in `native/ort/node_events.cpp`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.arrays.ids import IdIndex
from epprof_nb.data.schema import MISSING

if TYPE_CHECKING:
    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.data.table import Table


class EventNesting:
    """The nesting of ONNX Runtime's events.

    Parameters
    ----------
    ops
        A table of schema `epprof_nb.data.schema.OPS`.

    Attributes
    ----------
    is_event
        bool array, one value per op: whether ONNX Runtime reported it.
    event
        int64 array: row of the event that an op is, or that encloses it; -1 outside of events.
    parent
        int64 array: op id of the event that encloses an op; `MISSING` outside of events.
    outermost
        int64 array: row of the outermost op within the event of an op, which is the op itself or an
        op around it. For an event it is the event's own row.
    """

    def __init__(self, ops: Table) -> None:
        rows = np.arange(len(ops))
        parent_row = IdIndex(ops["op_id"]).rows(ops["parent_op_id"])
        self.is_event: BoolArray = ops.names("source").equals("onnxruntime")
        above = np.append(np.where(self.is_event, rows, parent_row), MISSING)
        self.event: IntArray = _end_of_path(above)[:-1]
        event_above = np.append(self.event, MISSING)[parent_row]
        self.parent: IntArray = np.append(ops["op_id"], MISSING)[event_above]
        inside = ~self.is_event & (parent_row >= 0)
        inside[inside] = ~self.is_event[parent_row[inside]]
        self.outermost: IntArray = _end_of_path(
            np.append(np.where(inside, parent_row, rows), MISSING)
        )[:-1]


def _end_of_path(above: IntArray) -> IntArray:
    """Return the last row of the path from each row; the last element, -1, means no row."""
    for _ in range(64):
        doubled = above[above]
        if np.array_equal(doubled, above):
            break
        above = doubled
    return above
