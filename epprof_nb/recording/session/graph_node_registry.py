"""Registry of CUDA graph nodes with the ops and the stacks that captured them, across sessions.

``native/cupti/graph_nodes.h`` says which numbers nodes of clones and of child graphs have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.arrays.ids import contains
from epprof_nb.data.schema import MISSING
from epprof_nb.data.table import Table, concat
from epprof_nb.recording.stacks.resolution import resolve
from epprof_nb.recording.stacks.tree import StackTree

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt


class GraphNodeRegistry:
    """Map from node id to the op that captured it, with the rows of those ops.

    A graph outlives the cell that captured it, so the registry exists as long as the process. It
    holds two integers per node and one row per op.
    """

    def __init__(self) -> None:
        self._op: dict[int, int] = {}
        self._original: dict[int, int] = {}
        self._ops: Table | None = None
        self._stack: dict[int, int] = {}
        self._stacks = StackTree()

    def add(
        self, nodes: Mapping[str, npt.NDArray[np.int64]], drained: Sequence[dict[str, Any]] = ()
    ) -> None:
        """Add nodes in the form of `RecordedGraphs.nodes`.

        Parameters
        ----------
        nodes
            Columns of the nodes.
        drained
            Stacks that the native core has logged; their numbers begin anew in each recording.
        """
        if not nodes:
            return
        self._add_stacks(nodes["node"], nodes["stack_id"], drained)
        for node, original, op in zip(
            nodes["node"].tolist(), nodes["original"].tolist(), nodes["op_id"].tolist(), strict=True
        ):
            # Instantiation reports a node as created (with no op) and then as cloned. The link
            # from the clone to its original takes precedence.
            if original:
                self._original[node] = original
            elif op:
                self._op[node] = op

    def _add_stacks(
        self,
        nodes: npt.NDArray[np.int64],
        stacks: npt.NDArray[np.int64],
        drained: Sequence[dict[str, Any]],
    ) -> None:
        known = np.flatnonzero(stacks != MISSING)
        if not len(known):
            return
        resolved = resolve(drained, [stacks[known]])
        rows = resolved.rows(stacks[known]).tolist()
        kept = self._stacks.graft(resolved.stacks, rows)
        for node, row in zip(nodes[known].tolist(), rows, strict=True):
            self._stack[node] = kept[row]

    def capture_stacks(
        self, node_ids: npt.NDArray[np.int64], tree: StackTree
    ) -> npt.NDArray[np.int32]:
        """Add the stack that captured each node to `tree`; return its row, `MISSING` for none."""
        used, inverse = np.unique(node_ids, return_inverse=True)
        rows = [self._stack.get(self._created(node), MISSING) for node in used.tolist()]
        found = tree.graft(self._stacks.stacks(), rows)
        return np.array([found[row] for row in rows], np.int32)[inverse]

    def capture_op(self, node_ids: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the op that captured each node; `MISSING` if the capture was not recorded."""
        used, inverse = np.unique(node_ids, return_inverse=True)
        ops = [self._op.get(self._created(node), MISSING) for node in used.tolist()]
        return np.array(ops, np.int64)[inverse]

    def _created(self, node: int) -> int:
        """Return the node that a capture created, from which a node was cloned."""
        for _ in range(64):  # chains of clones; bounded in case ids form a cycle
            if node not in self._original:
                break
            node = self._original[node]
        return node

    def remember_ops(self, ops: Table) -> None:
        """Keep the rows (absolute times) of ops that captured nodes, and of their ancestors."""
        capturing = np.unique(np.fromiter(self._op.values(), np.int64, len(self._op)))
        known = self._ops["op_id"] if self._ops is not None else np.empty(0, np.int64)
        rows = _with_ancestors(ops, np.setdiff1d(capturing, known))
        added = ops.take(rows & ~contains(known, ops["op_id"]))
        if len(added):
            self._ops = added if self._ops is None else concat([self._ops, added])

    def earlier_ops(self, needed: npt.NDArray[np.int64]) -> Table | None:
        """Return the kept rows of the ops `needed` and their ancestors; None if there are none."""
        if self._ops is None or not len(needed):
            return None
        rows = _with_ancestors(self._ops, needed)
        return self._ops.take(rows) if rows.any() else None


def _with_ancestors(ops: Table, needed: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Return a mask of the ops `needed` and all their ancestors."""
    rows = np.zeros(len(ops), np.bool_)
    while len(needed):
        added = contains(needed, ops["op_id"]) & ~rows
        rows |= added
        parents = ops["parent_op_id"][added]
        needed = np.unique(parents[parents != MISSING])
    return rows
