"""The statements of profiled cells: native key to cell, line and text.

The native core knows a statement by its key and name only; what tables and views say about it
is kept here, for the life of the process, because a profile may be built at any later time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from epprof_nb import _native
from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.schema import MISSING
from epprof_nb.util.format import elide

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

TEXT_LIMIT = 80
_JOINED_LINES = 8


@dataclass(slots=True)
class Cell:
    """The source that statements belong to; its name is known only once it runs."""

    name: str
    source: str


class Statement(NamedTuple):
    """One statement of a profiled cell; lines count from 1 as the editor shows them."""

    cell: Cell
    line: int
    end_line: int
    text: str


@dataclass(frozen=True, slots=True)
class StatementColumns:
    """What `statements_table` returns: one entry a key, missing where the key is unknown."""

    cell: CategoryColumn
    line: npt.NDArray[np.int64]
    end_line: npt.NDArray[np.int64]
    text: CategoryColumn


_statements: dict[int, Statement] = {}


def add(statements: Sequence[Statement], parents: Sequence[int]) -> int:
    """Register statements with the native core; the key of the first is returned.

    Parameters
    ----------
    statements
        The statements, in the order of their keys.
    parents
        For each, the index in `statements` of the one around it in the same body, or -1.
    """
    names = [_native.intern(statement.text) for statement in statements]
    first = _native.add_statements(
        np.array(parents, np.int32).tobytes(), np.array(names, np.uint32).tobytes()
    )
    _statements.update(enumerate(statements, first))
    return first


def statement(key: int) -> Statement | None:
    """Return the statement of `key`, or None where no cell has it."""
    return _statements.get(key)


def statements_table(keys: npt.NDArray[Any]) -> StatementColumns:
    """Look up many keys at once, as columns in the shape that tables use."""
    used, inverse = np.unique(keys, return_inverse=True)
    found = [_statements.get(int(key)) for key in used]
    cell = CategoryColumn.of([None if s is None else s.cell.name for s in found])
    text = CategoryColumn.of([None if s is None else s.text for s in found])
    line = np.array([MISSING if s is None else s.line for s in found], np.int64)
    end_line = np.array([MISSING if s is None else s.end_line for s in found], np.int64)
    return StatementColumns(
        cell.take(inverse), line[inverse], end_line[inverse], text.take(inverse)
    )


def text_of(
    lines: Sequence[str], *, line: int, column: int, end_line: int, end_column: int | None
) -> str:
    """One line of text for a stretch of source, shortened in the middle.

    Columns are UTF-8 bytes, as the ``ast`` module counts them, None is the end of the line;
    lines count from 1.
    """
    part = [text.encode(errors="replace") for text in lines[line - 1 : end_line]]
    if not part:
        return ""
    part[-1] = part[-1][:end_column]
    part[0] = part[0][column:]
    if len(part) > _JOINED_LINES:
        part = [part[0], "…".encode(), part[-1]]
    text = " ".join(text.decode(errors="replace").strip() for text in part)
    return elide(text.strip(), TEXT_LIMIT, tail=TEXT_LIMIT // 3)
