"""Places: the statements that ops belong to, and the ops outside of all statements, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.dataframe import names_at, optional, values_at
from epprof_nb.arrays.groups import group_codes
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from epprof_nb.analysis.dataframe import Column
    from epprof_nb.analysis.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray


class Places:
    """The place of each op: its innermost statement, or the op itself outside of all statements.

    Executions of one statement, and ops of one name, share a place.

    Parameters
    ----------
    index
        Index of the profile.

    Attributes
    ----------
    count
        Number of places. Work without an op has place number ``count``.
    of_op
        int64 array, shape ``(ops + 1,)``: the place of each op; the last element is `count`.
    """

    def __init__(self, index: ProfileIndex) -> None:
        ops = index.profile.tables["ops"]
        owner = np.where(index.statement >= 0, index.statement, np.arange(len(ops)))
        codes, first = group_codes(
            ops.names("name").codes[owner], ops.names("cell").codes[owner], ops["line"][owner]
        )
        self.count = len(first)
        self.of_op = np.append(codes, self.count)
        self._ops = ops
        self._first = np.append(owner[first], MISSING)

    def columns(self, places: IntArray) -> dict[str, Column]:
        """Return the columns ``name``, ``cell``, ``line`` and ``op_id``, of the first execution."""
        rows = self._first[places]
        return {
            "name": names_at(self._ops.names("name"), rows),
            "cell": names_at(self._ops.names("cell"), rows),
            "line": optional(values_at(self._ops["line"], rows)),
            "op_id": optional(values_at(self._ops["op_id"], rows)),
        }
