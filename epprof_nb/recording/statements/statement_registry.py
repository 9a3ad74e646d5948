"""Registry of the statements of profiled cells: native key to cell, line and text.

The native core stores only the key and name of a statement. This module keeps the cell and lines
until the process ends, because a profile may be built at any later time.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from epprof_nb import _native
from epprof_nb.recording.statements.markers import LINE
from epprof_nb.util.format import elide

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

STATEMENT = 1
"""Category of statements in the native core."""
NO_PARENT, IN_FUNCTION, IN_GENERATOR = -1, -2, -3
"""Parents of statements that no other encloses: of a cell, of the body of a function, and of the
body of a generator or coroutine."""
TEXT_LIMIT = 80
_JOINED_LINES = 8


@dataclass(slots=True)
class Cell:
    """A cell with its source. Its name is set when it starts to run."""

    name: str
    source: str


class Statement(NamedTuple):
    """One statement of a profiled cell; lines count from 1, as in the editor."""

    cell: Cell
    line: int
    end_line: int
    text: str


_statements: dict[int, Statement] = {}


def register(statements: Sequence[Statement], parents: Sequence[int]) -> int:
    """Register statements with the native core and return the key of the first.

    Parameters
    ----------
    statements
        The statements, in the order of their keys.
    parents
        For each, the index in `statements` of the enclosing statement in the same body,
        `NO_PARENT`, `IN_FUNCTION` or `IN_GENERATOR`.
    """
    names = [_native.intern(statement.text) for statement in statements]
    first = _native.add_statements(array("i", parents).tobytes(), array("I", names).tobytes())
    _statements.update(enumerate(statements, first))
    return first


def statement_of(key: int) -> Statement | None:
    """Return the statement with a key; None if there is none."""
    return _statements.get(key)


def statement_in(frame: FrameType) -> Statement | None:
    """Return the innermost statement that a frame of a profiled cell executes; None for others."""
    code, line = frame.f_code, frame.f_lineno
    if LINE not in code.co_names or line is None:
        return None
    # The keys of its statements are constants of the code; other numbers may look like keys.
    keys = [k for k in code.co_consts if type(k) is int and k in _statements]
    if not keys:
        return None
    cell = _statements[max(keys)].cell
    found = [s for s in map(_statements.__getitem__, keys) if s.line <= line <= s.end_line]
    own = [statement for statement in found if statement.cell is cell]
    return min(own, key=lambda statement: statement.end_line - statement.line, default=None)


def statement_text(
    lines: Sequence[str], *, line: int, column: int, end_line: int, end_column: int | None
) -> str:
    """Return a range of source on one line, shortened in the middle.

    Lines count from 1. Columns are UTF-8 offsets as in the ``ast`` module; None is the end of the
    line.
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
