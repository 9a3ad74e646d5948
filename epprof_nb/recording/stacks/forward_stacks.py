"""Stacks of launches in PyTorch's backward passes, from the stacks of the forward pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.arrays.types import MISSING
from epprof_nb.data.python_stacks import EXACT, NEAR
from epprof_nb.recording.native_columns import numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt


class ForwardStacks:
    """The stacks in which the forward pass launched work, by autograd's nodes.

    Parameters
    ----------
    drained
        What `_native.drain_node_stacks` returned since the session began.

    Attributes
    ----------
    correlation : ndarray, int64
        Correlation ids of launches in backward passes.
    """

    def __init__(self, drained: Sequence[dict[str, Any]]) -> None:
        def get(name: str, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
            parts = [numbers(raw, name, dtype) for raw in drained if name in raw]
            return np.concatenate(parts) if parts else np.empty(0, dtype)

        thread, number = get("forward_thread", np.uint64), get("forward_number", np.uint64)
        # Of several launches of an operator, the first one; later ones may be of operators that
        # create no node.
        order = np.lexsort((np.arange(len(number)), number, thread))
        is_first = np.ones(len(order), np.bool_)
        is_first[1:] = np.diff(thread[order]).astype(np.bool_) | np.diff(number[order]).astype(
            np.bool_
        )
        first = order[is_first]
        self._thread, self._number = thread[first], number[first]
        self._stack = get("forward_stack", np.int32)[first]
        creates = np.append(get("forward_creates", np.uint32)[first] != 0, np.False_)
        self.correlation = get("backward_correlation", np.uint64).astype(np.int64)
        node = get("backward_thread", np.uint64), get("backward_number", np.uint64)
        self._is_own = get("backward_is_own", np.uint32) != 0
        is_view = get("backward_is_view", np.uint32) != 0
        self._after = self._position(*node)
        padded = np.append(self._stack, np.int32(MISSING))  # position -1 finds the last element
        size = len(self._stack)
        same_thread = np.append(self._thread, np.uint64(0))
        has_after = (self._after < size) & (same_thread[np.minimum(self._after, size)] == node[0])
        has_before = (self._after > 0) & (same_thread[self._after - 1] == node[0])
        at = np.minimum(self._after, size)
        is_number = np.append(self._number, np.uint64(0))[at] == node[1]
        self._is_launch = has_after & is_number & creates[at] & ~is_view
        self._next = np.where(has_after, padded[np.minimum(self._after, size)], np.int32(MISSING))
        self._previous = np.where(has_before, padded[self._after - 1], np.int32(MISSING))

    def _position(
        self, thread: npt.NDArray[np.uint64], number: npt.NDArray[np.uint64]
    ) -> npt.NDArray[np.intp]:
        """Return where each node is, or would be, among the nodes of the forward pass."""
        position = np.zeros(len(thread), np.intp)
        for one in np.unique(thread):
            begin, end = (
                np.searchsorted(self._thread, one),
                np.searchsorted(self._thread, one, "right"),
            )
            rows = thread == one
            position[rows] = begin + np.searchsorted(self._number[begin:end], number[rows])
        return position

    @property
    def used(self) -> npt.NDArray[np.int32]:
        """Ids of the stacks that launches may get, of the native core."""
        return np.unique(np.concatenate([self._next, self._previous]))

    def of_launches(
        self, rows: npt.NDArray[np.int32]
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int8]]:
        """Return the stack of each launch of `correlation`, and how it was found.

        Parameters
        ----------
        rows
            Row of each id of the native core in the tree, and `MISSING` as last element.

        Returns
        -------
        stack, source
            Row in the tree, and `EXACT` or `NEAR`; `MISSING` for none. The stack is exact if the
            node's operator launched work in the forward pass, too, or if the launches before and
            after its creation were calls of one line, in their order.
        """
        after, before = rows[self._next], rows[self._previous]
        stack = np.where(self._is_launch | (before == MISSING), after, before)
        # Stacks are numbered at first sight, in the order in which a line makes its calls. In
        # another order, they belong to two iterations of a loop, and other lines ran in between.
        is_between = (after == before) & (self._previous < self._next)
        is_exact = self._is_own & (self._is_launch | is_between)
        source = np.where(stack == MISSING, MISSING, np.where(is_exact, EXACT, NEAR))
        return stack, source.astype(np.int8)
