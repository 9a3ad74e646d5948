"""Places: the lines that work belongs to, and the ops outside of all statements, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import proxy

import numpy as np

from epprof_nb.analysis.base.result_table import names_at, optional
from epprof_nb.analysis.base.source_text import line_text, split_lines
from epprof_nb.analysis.base.stack_lines import StackLines
from epprof_nb.arrays.groups import group_codes
from epprof_nb.arrays.ids import values_at
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.names import CategoryColumn
from epprof_nb.util.cached import cached_property

if TYPE_CHECKING:
    import numpy.typing as npt

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.base.result_table import Column
    from epprof_nb.arrays.types import IntArray


class Places:
    """The place of each op and of each Python stack.

    The place of an op is its innermost statement, or the op itself outside of all statements. The
    place of a stack is its innermost line of the user's code. Executions of one statement, stacks
    of one line, and ops of one name, share a place.

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
    of_stack
        int64 array, shape ``(stacks + 1,)``: the place of each stack; `MISSING` for one without
        code of the user, and as last element.
    """

    def __init__(self, index: ProfileIndex) -> None:
        self._index = proxy(index)  # which keeps this object
        ops, lines = index.profile.tables["ops"], index.cached(StackLines)
        self._lines = lines
        n = len(ops)
        owner = np.where(index.statement >= 0, index.statement, np.arange(n))
        with_own = np.flatnonzero(lines.own[:-1] >= 0)
        own = lines.own[with_own]
        cells, files = _merged(ops.names("cell"), lines.file)
        in_cell, line = cells[owner], ops["line"][owner]
        is_line = (line >= 0) & (in_cell >= 0)
        names = np.where(is_line, MISSING, ops.names("name").codes[owner])
        codes, first = group_codes(
            np.append(names, np.full(len(own), MISSING)),
            np.append(in_cell, files[own]),
            np.append(line, lines.line[own]),
        )
        self.count = len(first)
        self.of_op = np.append(codes[:n], self.count)
        self.of_stack = np.full(len(lines) + 1, MISSING, np.int64)
        self.of_stack[with_own] = codes[n:]
        self._has_stacks = len(with_own) > 0
        # A place belongs to an op or to a stack; the last element is for work without a place.
        none = np.full(len(own), MISSING)
        self._op = np.append(np.append(owner, none)[first], MISSING)
        self._stack = np.append(np.append(np.full(n, MISSING), own)[first], MISSING)

    def of_activities(self, rows: npt.NDArray[Any] | slice) -> IntArray:
        """Return the places that launched some activities: of their stacks, else of their ops."""
        op = self._index.activity_op[rows]
        return (
            self.of(self._lines.of_activities()[rows], op) if self._has_stacks else self.of_op[op]
        )

    def of_calls(
        self, rows: npt.NDArray[Any], op: npt.NDArray[np.signedinteger[Any]] | None = None
    ) -> IntArray:
        """Return the places that made some API calls; `op` replaces the ops of the calls."""
        op = self._index.call_op[rows] if op is None else op
        return self.of(self._lines.of_calls()[rows], op) if self._has_stacks else self.of_op[op]

    def of(
        self, stack: npt.NDArray[np.signedinteger[Any]], op: npt.NDArray[np.signedinteger[Any]]
    ) -> IntArray:
        """Return the places of stacks, or of ops where a stack has none."""
        place = self.of_stack[stack]
        found: IntArray = np.where(place >= 0, place, self.of_op[op])
        return found

    @cached_property
    def _first_op(self) -> IntArray:
        """Row of the op of each place; for a stack, of the op in which it launched first."""
        found = self._op.copy()
        for stack, op in (
            (self._lines.of_calls(), self._index.call_op),
            (self._lines.of_activities(), self._index.activity_op),
        ):
            of_row = self.of_stack[stack]
            first = group_codes(of_row)[1]
            at = first[of_row[first] >= 0]
            place = of_row[at]
            is_unknown = found[place] == MISSING
            found[place[is_unknown]] = op[at[is_unknown]]
        return found

    def columns(self, places: IntArray) -> dict[str, Column]:
        """Return the columns ``name``, ``cell``, ``line`` and ``op_id``, of the first execution."""
        ops = self._index.profile.tables["ops"]
        rows, stacks = self._op[places], self._stack[places]
        names = names_at(ops.names("name"), rows)
        cells = cells_at(self._index, rows)
        line = values_at(ops["line"], rows)
        op = rows
        if (stacks >= 0).any():
            at = np.flatnonzero(stacks >= 0)
            texts = [self.text(place) for place in places[at].tolist()]
            names = names.replaced(at, CategoryColumn.of(texts)).compact()
            files = self._lines.file.take(stacks[at])
            cells = cells.replaced(at, files).compact()
            line = np.where(stacks >= 0, values_at(self._lines.line, stacks), line)
            op = self._first_op[places]
        return {
            "name": names,
            "cell": cells,
            "line": optional(line),
            "op_id": optional(values_at(ops["op_id"], op)),
        }

    def stack(self, place: int) -> int:
        """Return the frame of a place that no statement marks; `MISSING` for other places."""
        return int(self._stack[place])

    def text(self, place: int) -> str:
        """Return the source of the line of a stack, or the function if it is not known."""
        row = int(self._stack[place])
        (file,) = self._lines.file.take(np.array([row])).to_list()
        source = split_lines(self._index.profile.sources.get(file or "", ""))
        (function,) = self._lines.function.take(np.array([row])).to_list()
        return line_text(source, int(self._lines.line[row])) or str(function)


def _merged(one: CategoryColumn, other: CategoryColumn) -> tuple[IntArray, IntArray]:
    """Return codes of two columns of names that are equal where the names are."""
    index: dict[str, int] = {}
    found = []
    for names in (one, other):
        number = [index.setdefault(text, len(index)) for text in names.categories]
        found.append(np.array([*number, MISSING], np.int64)[names.codes])
    return found[0], found[1]


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


def lines_at(
    index: ProfileIndex,
    stack: npt.NDArray[np.signedinteger[Any]],
    op: npt.NDArray[np.signedinteger[Any]],
) -> tuple[CategoryColumn, IntArray]:
    """Return cell or file, and line, of the user's code in stacks.

    Where a stack has none, the statement of an op has them; `MISSING` for none.

    Parameters
    ----------
    index
        Index of the profile.
    stack, op
        Rows of stacks and of ops, of one length; `MISSING` for none.
    """
    lines = index.cached(StackLines)
    ops = index.profile.tables["ops"]
    op = np.asarray(op, np.int64)
    cells = cells_at(index, op)
    line = values_at(ops["line"], values_at(index.statement, op))
    own = lines.own[stack]
    at = np.flatnonzero(own >= 0)
    if not len(at):
        return cells, line
    cells = cells.replaced(at, lines.file.take(own[at])).compact()
    return cells, np.where(own >= 0, values_at(lines.line, own), line)


def callers_at(
    index: ProfileIndex,
    stack: npt.NDArray[np.signedinteger[Any]],
    op: npt.NDArray[np.signedinteger[Any]],
) -> tuple[CategoryColumn, IntArray]:
    """Return cell or file, and line, of the line of the profiled cell that called each stack.

    Outside of a cell it is the outermost line of the user's code. See `lines_at`.
    """
    lines = index.cached(StackLines)
    op = np.asarray(op, np.int64)
    of_statement = values_at(index.profile.tables["ops"]["line"], values_at(index.statement, op))
    # Without a stack, the statement itself is in the cell.
    caller = lines.caller[stack]
    at = np.flatnonzero(caller >= 0)
    cells = cells_at(index, op).replaced(at, lines.file.take(caller[at])).compact()
    return cells, np.where(caller >= 0, values_at(lines.line, caller), of_statement)
