"""CUDA graph nodes of the process: which op captured each, across sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.arrays.ids import contains
from epprof_nb.data.schema import MISSING
from epprof_nb.data.table import Table, concat

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt


class GraphNodes:
    """Node id to the op that captured it, and the rows of those ops.

    A graph lives longer than the cell that captured it, so what is learnt at capture is kept for
    the life of the process: two numbers a node, and a row an op.
    """

    def __init__(self) -> None:
        self._op: dict[int, int] = {}
        self._original: dict[int, int] = {}
        self._ops: Table | None = None

    def add(self, nodes: Mapping[str, npt.NDArray[np.int64]]) -> None:
        """Take in nodes as `Recorded.graph_nodes` has them."""
        if not nodes:
            return
        for node, original, op in zip(
            nodes["node"].tolist(), nodes["original"].tolist(), nodes["op_id"].tolist(), strict=True
        ):
            # Instantiation reports a node as created (with no op) and then as cloned: the clone's
            # link says more.
            if original:
                self._original[node] = original
            elif op:
                self._op[node] = op

    def capture_op(self, node_ids: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The op that captured each node; missing where the capture was not recorded."""
        used, inverse = np.unique(node_ids, return_inverse=True)
        ops = np.array([self._resolve(node) for node in used.tolist()], np.int64)
        return ops[inverse] if len(used) else np.empty(0, np.int64)

    def _resolve(self, node: int) -> int:
        for _ in range(64):  # a clone of a clone of ...: bounded, should ids ever form a ring
            if node not in self._original:
                break
            node = self._original[node]
        return self._op.get(node, MISSING)

    def remember_ops(self, ops: Table) -> None:
        """Keep the rows (absolute times) of ops that captured nodes, with their ancestors."""
        capturing = np.unique(np.fromiter(self._op.values(), np.int64, len(self._op)))
        known = self._ops["op_id"] if self._ops is not None else np.empty(0, np.int64)
        rows = _with_ancestors(ops, np.setdiff1d(capturing, known))
        fresh = ops.take(rows & ~contains(known, ops["op_id"]))
        if len(fresh):
            self._ops = fresh if self._ops is None else concat([self._ops, fresh])

    def earlier_ops(self, needed: npt.NDArray[np.int64]) -> Table | None:
        """Rows of the ops `needed` and their ancestors, as remembered; None for none."""
        if self._ops is None or not len(needed):
            return None
        rows = _with_ancestors(self._ops, needed)
        return self._ops.take(rows) if rows.any() else None


def _with_ancestors(ops: Table, needed: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Where the ops `needed` and all that enclose them are."""
    rows = np.zeros(len(ops), np.bool_)
    while len(needed):
        found = contains(needed, ops["op_id"]) & ~rows
        rows |= found
        parents = ops["parent_op_id"][found]
        needed = np.unique(parents[parents != MISSING])
    return rows
