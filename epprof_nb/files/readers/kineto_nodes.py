"""Nodes of backward passes in the traces of PyTorch's profiler."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.schema import MISSING

if TYPE_CHECKING:
    from epprof_nb.data.table import Table

_ENGINE = "autograd::engine::evaluate_function: "
"""Prefix of the name of the engine's op around a node, before the name of the node."""


def with_nodes(ops: Table) -> Table:
    """Return the ops of a trace, which are numbered from 1, with the nodes of backward passes.

    Nodes have the same type as in recordings. The number that links a node to the operator that
    created it comes from the engine's op.
    """
    names = ops.names("name")
    code = {name: i for i, name in enumerate(names.categories)}
    inside = [
        code.get(name.removeprefix(_ENGINE), MISSING) if name.startswith(_ENGINE) else MISSING
        for name in names.categories
    ]
    # Code of the node in each op of the engine; the last element is for ops without a parent.
    node = np.append(np.array([*inside, MISSING], np.int64)[names.codes], MISSING)
    parent = ops["parent_op_id"]
    above = node[np.where(parent == MISSING, MISSING, parent - 1)]
    rows = np.flatnonzero((above == names.codes) & (above != MISSING))
    types = ops.names("op_type").replaced(rows, CategoryColumn.constant("autograd_node", len(rows)))
    ops = ops.replace(op_type=types)
    if ops.is_absent("sequence_number"):
        return ops
    is_engine = np.array([*(name.startswith(_ENGINE) for name in names.categories), False])
    numbers = np.where(is_engine[names.codes], MISSING, ops["sequence_number"])
    return ops.replace(sequence_number=numbers)
