"""Counts of a session's backward passes, and the op of those in progress."""

from __future__ import annotations

from dataclasses import dataclass

from epprof_nb import _native


@dataclass(slots=True)
class BackwardCounts:
    """Counts of nodes that ran in the backward passes of a session, and passes in progress.

    Attributes
    ----------
    nodes, unlinked
        Number of nodes with a number, and of those whose module call is unknown. In a pass without
        hooks, nodes that call no CUDA function do not count. Other nodes without a number count if
        their call is unknown.
    compiled
        Number of backward passes that compiled autograd executed, whose nodes have no hooks.
    failure
        The first error of linking.
    in_progress
        Number of running backward passes.
    parent
        The op of the innermost running pass if all passes are nested; otherwise 0. It is the parent
        of operators on autograd threads without an open op.
    """

    nodes: int = 0
    unlinked: int = 0
    compiled: int = 0
    failure: str | None = None
    in_progress: int = 0
    parent: int = 0

    def enter(self, op_id: int, *, is_nested: bool) -> int:
        """Count the start of a pass; return the argument for `leave`."""
        outer = self.parent
        is_only = not self.in_progress or (is_nested and outer)
        self.in_progress += 1
        self._set_parent(op_id if is_only else 0)
        return outer

    def leave(self, outer: int) -> None:
        """Count the end of a pass."""
        self.in_progress -= 1
        self._set_parent(outer if self.in_progress else 0)

    def _set_parent(self, op_id: int) -> None:
        self.parent = op_id
        _native.operators_backward(op_id)
