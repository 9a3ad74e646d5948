"""The stacks in which ops were opened, for launches of threads that run no Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.arrays.ids import IdIndex
from epprof_nb.arrays.types import MISSING
from epprof_nb.recording.native_columns import numbers
from epprof_nb.util.cached import cached_property

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from epprof_nb.data.table import Table


class OpStacks:
    """Stacks of ops by id.

    Parameters
    ----------
    drained
        What `_native.drain_op_stacks` returned since the session began.
    """

    def __init__(self, drained: Sequence[dict[str, Any]]) -> None:
        self._drained = drained

    @cached_property
    def _stack(self) -> dict[int, int]:
        """Stack of each op; most recordings of many ops need none of them."""
        found: dict[int, int] = {}
        for raw in self._drained:
            ops = numbers(raw, "op_id", np.int64).tolist()
            found |= zip(ops, numbers(raw, "op_stack", np.int32).tolist(), strict=True)
        return found

    def of(self, op_ids: npt.NDArray[np.int64], ops: Table) -> npt.NDArray[np.int32]:
        """Return the id of the stack of some ops, `MISSING` for none.

        An op without a stack has the stack of the statement's first execution in the same op, or
        else the stack of the nearest op around it.
        """
        if not self._stack:
            return np.full(len(op_ids), MISSING, np.int32)
        index, parents = IdIndex(ops["op_id"]), ops["parent_op_id"]
        cells, lines = ops.names("cell").codes, ops["line"]

        def place(row: int) -> tuple[int, int, int]:
            return int(parents[row]), int(cells[row]), int(lines[row])

        rows = index.rows(np.fromiter(self._stack, np.int64, len(self._stack))).tolist()
        of_place: dict[tuple[int, int, int], int] = {}
        for row, stack in zip(rows, self._stack.values(), strict=True):
            if row >= 0 and lines[row] != MISSING:
                of_place.setdefault(place(row), stack)
        found = []
        for op_id in op_ids.tolist():
            op, stack = op_id, MISSING
            while op != MISSING and stack == MISSING:
                stack = self._stack.get(op, MISSING)
                row = int(index.rows(np.array([op]))[0])
                if row < 0:
                    break
                if stack == MISSING and lines[row] != MISSING:
                    stack = of_place.get(place(row), MISSING)
                op = int(parents[row])
            found.append(stack)
        return np.array(found, np.int32)
