"""Cells and lines of statements, as columns of a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.arrays.types import MISSING
from epprof_nb.data.names import CategoryColumn
from epprof_nb.recording.statements.statement_registry import statement_of

if TYPE_CHECKING:
    import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class StatementColumns:
    """Result of `statements_table`: one entry per key, missing for unknown keys."""

    cell: CategoryColumn
    line: npt.NDArray[np.int64]
    end_line: npt.NDArray[np.int64]


def statements_table(keys: npt.NDArray[Any]) -> StatementColumns:
    """Look up an array of keys, as columns of a table."""
    used, inverse = np.unique(keys, return_inverse=True)
    statements = [statement_of(int(key)) for key in used]
    cell = CategoryColumn.of([None if s is None else s.cell.name for s in statements])
    line = np.array([MISSING if s is None else s.line for s in statements], np.int64)
    end_line = np.array([MISSING if s is None else s.end_line for s in statements], np.int64)
    return StatementColumns(cell.take(inverse), line[inverse], end_line[inverse])
