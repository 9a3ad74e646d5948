"""OpPaths: the paths of a profile's ops, from the session down."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from epprof_nb.analysis.base.op_tree import NO_OP
from epprof_nb.arrays.ancestors import nearest_ancestor
from epprof_nb.arrays.groups import group_codes
from epprof_nb.arrays.ids import mask_as_rows
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from epprof_nb.analysis.base.op_tree import OpTree
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.table import Table

MAX_DEPTH = 48
"""Ops below this depth are merged into their ancestor at this depth."""
SESSION = 0
"""Node of the session, the root of all paths."""


class Steps(NamedTuple):
    """The steps of paths, one per row: the ops, then any further steps.

    Attributes
    ----------
    keys
        Integer arrays: rows below one node with equal values in all arrays form one node.
    parent, depth
        int64 arrays: row above (`MISSING` for none), and number of rows above.
    """

    keys: tuple[npt.NDArray[np.integer[Any]], ...]
    parent: IntArray
    depth: IntArray


def op_steps(ops: Table, tree: OpTree) -> Steps:
    """Return the ops themselves as steps."""
    return Steps(op_keys(ops), tree.parent, tree.depth)


def op_keys(ops: Table) -> tuple[npt.NDArray[np.integer[Any]], ...]:
    """Return the columns whose values are equal for ops of one path."""
    return (*(ops.names(name).codes for name in ("name", "op_type", "cell")), ops["line"])


class OpPaths:
    """The paths of the ops: nodes in order of depth, starting with the session.

    Parameters
    ----------
    steps
        The steps; the ops come first.
    max_depth
        Steps below this depth are merged into their ancestor at it.

    Attributes
    ----------
    of_row
        int64 array, one value per step: its node.
    of_op
        int64 array, one value per op: the node of the work that it launches.
    parent, depth, row
        int64 arrays, one value per node: the node above (`MISSING` for the session), the steps
        from the session, and the first row of the path (`MISSING` for nodes without an op).
    no_op
        The node of activities without an op.
    labels
        Node to its level and name, for nodes that do not take these from an op.
    """

    def __init__(self, steps: Steps, max_depth: int = MAX_DEPTH) -> None:
        keys, above_row, depth = steps
        # A column of equal values, which divides nothing, may repeat one in memory.
        keys = tuple(column for column in keys if any(column.strides))
        # The last element is the parent of a root: the session.
        of_row = np.full(len(depth) + 1, SESSION, np.int64)
        parents, rows, depths = ([np.array([value])] for value in (MISSING, MISSING, 0))
        known = 1
        for level in range(min(int(depth.max(initial=-1)) + 1, max_depth)):
            here = mask_as_rows(depth == level)
            above = of_row[above_row[here]]
            groups, first = group_codes(above, *(column[here] for column in keys))
            of_row[here] = known + groups
            parents.append(above[first])
            rows.append(here.start + first if isinstance(here, slice) else here[first])
            depths.append(np.full(len(first), level + 1))
            known += len(first)
        parents.append(np.array([SESSION]))
        rows.append(np.array([MISSING]))
        depths.append(np.array([1]))
        deeper = np.flatnonzero(depth >= max_depth)
        of_row[deeper] = of_row[nearest_ancestor(above_row, depth < max_depth)[deeper]]
        self.of_row = self.of_op = of_row[:-1]
        self.parent, self.row = np.concatenate(parents), np.concatenate(rows)
        self.depth = np.concatenate(depths)
        self.no_op = known
        self.labels: dict[int, tuple[str | None, str | None]] = {
            SESSION: ("session", "session"),
            known: ("none", NO_OP),
        }

    def add_captured(self, ops: Table, owner: IntArray, captured: IntArray) -> IntArray:
        """Append nodes for the ops that captured the activities of graphs.

        Parameters
        ----------
        ops
            The ops.
        owner
            Node of the op that launched each activity.
        captured
            Row of the op that captured each activity; `MISSING` for none.

        Returns
        -------
        owner
            The node of each activity: below the node of its launch if another op captured it.
            Captures by ops of the same name and type share a node.
        """
        owner = owner.copy()
        rows = np.flatnonzero(captured >= 0)
        rows = rows[self.of_op[captured[rows]] != owner[rows]]
        if not len(rows):
            return owner
        op = captured[rows]
        groups, first = group_codes(owner[rows], *(column[op] for column in op_keys(ops)))
        above = owner[rows][first]
        owner[rows] = len(self.parent) + groups
        self.depth = np.append(self.depth, self.depth[above] + 1)
        self.parent = np.append(self.parent, above)
        self.row = np.append(self.row, op[first])
        return owner
