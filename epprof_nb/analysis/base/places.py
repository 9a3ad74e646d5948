"""Places: the statements that ops belong to, and the ops outside of all statements, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.result_table import names_at, optional, values_at
from epprof_nb.arrays.groups import group_codes
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.names import CategoryColumn

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.base.result_table import Column
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
        self._index = index
        self._first = np.append(owner[first], MISSING)

    def columns(self, places: IntArray) -> dict[str, Column]:
        """Return the columns ``name``, ``cell``, ``line`` and ``op_id``, of the first execution."""
        ops, rows = self._index.profile.tables["ops"], self._first[places]
        return {
            "name": names_at(ops.names("name"), rows),
            "cell": cells_at(self._index, rows),
            "line": optional(values_at(ops["line"], rows)),
            "op_id": optional(values_at(ops["op_id"], rows)),
        }


def cells_at(index: ProfileIndex, op: IntArray) -> CategoryColumn:
    """Return the cell of the statement of each op row, or of the op if no statement was marked."""
    statement = values_at(index.statement, op)
    ops = index.profile.tables["ops"]
    cells, names = ops.names("cell"), ops.names("name")
    of_cell = values_at(index.tree.nearest_ancestor(ops.names("op_type").equals("cell")), op)
    offset = np.int32(len(cells.categories))
    codes = np.append(cells.codes, np.int32(MISSING))[statement]
    cell_op = np.append(names.codes, np.int32(MISSING))[of_cell]
    codes = np.where(codes >= 0, codes, np.where(cell_op >= 0, cell_op + offset, MISSING))
    # The same name can be in both.
    texts = CategoryColumn.of([*cells.categories, *names.categories])
    merged = np.append(texts.codes, np.int32(MISSING))[codes]
    return CategoryColumn(merged, texts.categories).compact()
