"""Instrument the statements of a cell as ops, by inserting marker calls into its syntax tree.

``__epprof_line__(key)`` precedes each statement. It ends the previous statement of the same level
and begins this one. The header of a loop and the exit of a context manager run after the last
statement of their body, so ``__epprof_back__(key)`` ends that body, unless the loop merely counts,
which takes less time than the marker. The body of a function is
enclosed in ``with __epprof_body__(key)``: its statements are children of the statement that called
it.

Each marker has the position of the statement that follows it, so tracebacks do not change. A
``try`` around the body would change them: if a ``finally`` block ends with an exception,
``frame.f_lineno`` is the line of the ``finally``. The exit of a ``with`` restores the line. Outside
of a session the markers do nothing.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, TypeVar

from epprof_nb.recording.statements.instrumentable_functions import (
    compiled_names,
    has_own_yield,
    is_plain_function,
)
from epprof_nb.recording.statements.markers import BACK, BODY, FRAME_BODY, LINE, YIELD_BODY
from epprof_nb.recording.statements.statement_registry import (
    IN_FUNCTION,
    IN_GENERATOR,
    NO_PARENT,
    Cell,
    Statement,
    register,
    statement_text,
)
from epprof_nb.recording.statements.yields import can_mark_yields, mark_yields

if TYPE_CHECKING:
    from collections.abc import Sequence

    Function = ast.FunctionDef | ast.AsyncFunctionDef

_Node = TypeVar("_Node", bound=ast.stmt | ast.expr)

_ALL = 2**32 - 1
"""Not a key of a statement: returning to it ends all open statements."""
_NO_WORK = (ast.Pass, ast.Break, ast.Global, ast.Nonlocal)
_LEAVES_BODY = (ast.Return, ast.Raise, ast.Break, ast.Continue)


def instrument(body: list[ast.stmt], cell: Cell, *, first_line: int = 0) -> list[ast.stmt]:
    """Insert markers between the statements of a cell.

    Parameters
    ----------
    body
        The statements, which are changed in place.
    cell
        The cell that contains them; its source provides their text.
    first_line
        Number of lines of the cell above the parsed source.

    Returns
    -------
    list of ast.stmt
        The statements with markers.
    """
    instrumenter = _Instrumenter(cell, first_line, compiled_names(body))
    marked = instrumenter.block(body, parent=NO_PARENT)
    instrumenter.assign_keys()
    return marked


def end_of_code(at: ast.stmt) -> ast.Expr:
    """Build the statement that ends the last one of instrumented code that runs again.

    Without it, the last statement would last until the next repeat begins.
    """
    call = ast.Call(ast.Name(BACK, ast.Load()), [ast.Constant(_ALL)], [])
    return ast.fix_missing_locations(at_position(ast.Expr(call), at))


class _Instrumenter:
    """One pass over a cell that collects its statements and inserts the markers."""

    def __init__(self, cell: Cell, first_line: int, compiled: frozenset[str]) -> None:
        self.cell = cell
        self.lines = cell.source.splitlines()
        self.first_line = first_line
        self.compiled = compiled
        self.statements: list[Statement] = []
        self.parents: list[int] = []
        self.keys: list[ast.Constant] = []

    def assign_keys(self) -> None:
        """Register the statements and write their keys into the markers."""
        first = register(self.statements, self.parents)
        for key in self.keys:
            key.value = first + int(str(key.value))

    def statement(self, node: ast.stmt, parent: int) -> int:
        """Add a statement and return its index."""
        line = self.first_line + node.lineno
        end_line = self.first_line + (node.end_lineno or node.lineno)
        compound = hasattr(node, "body") or hasattr(node, "cases")
        text = statement_text(
            self.lines,
            line=line,
            column=node.col_offset,
            end_line=line if compound else end_line,
            end_column=None if compound else node.end_col_offset,
        )
        self.statements.append(Statement(self.cell, line, end_line, text))
        self.parents.append(parent)
        return len(self.statements) - 1

    def marker(self, name: str, index: int, node: ast.stmt) -> ast.Call:
        """Build a marker call at the position of `node`."""
        key = at_position(ast.Constant(index), node)
        self.keys.append(key)
        marker = at_position(ast.Name(name, ast.Load()), node)
        return at_position(ast.Call(marker, [key], []), node)

    def mark(self, name: str, index: int, node: ast.stmt) -> ast.Expr:
        """Build a statement that calls a marker."""
        return at_position(ast.Expr(self.marker(name, index, node)), node)

    def block(self, body: Sequence[ast.stmt], *, parent: int, loop: int = -1) -> list[ast.stmt]:
        """Mark the statements of a block; `loop` is the loop that ``continue`` refers to."""
        marked: list[ast.stmt] = []
        for node in body:
            if isinstance(node, ast.Continue):
                if loop >= 0:
                    marked.append(self.mark(BACK, loop, node))
            elif not isinstance(node, _NO_WORK):
                index = self.statement(node, parent)
                marked.append(self.mark(LINE, index, node))
                self.inside(node, index, loop)
            marked.append(node)
        return marked

    def inside(self, node: ast.stmt, index: int, loop: int) -> None:
        """Mark the bodies of a compound statement."""
        match node:
            case ast.For() | ast.AsyncFor() | ast.While():
                if _merely_counts(node):
                    node.body = self.block(node.body, parent=index, loop=index)
                else:
                    node.body = self.body_returning_to(node, node.body, index, loop=index)
                node.orelse = self.block(node.orelse, parent=index, loop=loop)
            case ast.With() | ast.AsyncWith():
                node.body = self.body_returning_to(node, node.body, index, loop=loop)
            case ast.If():
                node.body = self.block(node.body, parent=index, loop=loop)
                node.orelse = self.block(node.orelse, parent=index, loop=loop)
            case ast.Try() | ast.TryStar():
                node.body = self.block(node.body, parent=index, loop=loop)
                for handler in node.handlers:
                    handler.body = self.block(handler.body, parent=index, loop=loop)
                node.orelse = self.block(node.orelse, parent=index, loop=loop)
                node.finalbody = self.block(node.finalbody, parent=index, loop=loop)
            case ast.Match():
                for case in node.cases:
                    case.body = self.block(case.body, parent=index, loop=loop)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self.function(node, index)
            case ast.ClassDef():
                self.definitions(node)

    def body_returning_to(
        self, node: ast.stmt, body: Sequence[ast.stmt], index: int, *, loop: int
    ) -> list[ast.stmt]:
        """Mark a body after which control returns to the enclosing statement."""
        marked = self.block(body, parent=index, loop=loop)
        if not isinstance(marked[-1], _LEAVES_BODY):
            marked.append(self.mark(BACK, index, node))
        return marked

    def function(self, node: Function, index: int) -> None:
        """Mark the body of a function, unless a compiler may process it."""
        if not is_plain_function(node) or node.name in self.compiled:
            return
        documented = ast.get_docstring(node, clean=False) is not None
        docstring, body = node.body[:documented], node.body[documented:]
        if all(isinstance(s, ast.Pass) or _is_ellipsis(s) for s in body):
            return
        scope, parent = BODY, IN_FUNCTION
        if isinstance(node, ast.AsyncFunctionDef) or has_own_yield(body):
            scope, parent = FRAME_BODY, IN_GENERATOR
        if scope == FRAME_BODY and can_mark_yields(node):
            scope, parent = YIELD_BODY, IN_FUNCTION
        marked = self.block(body, parent=parent)
        if scope == YIELD_BODY:
            mark_yields(marked)
        item = ast.withitem(self.marker(scope, index, node))
        node.body = [*docstring, at_position(ast.With([item], marked), node)]

    def definitions(self, node: ast.AST) -> None:
        """Mark the methods of a class.

        The statements of the class body are not marked, because a metaclass may provide their
        namespace and resolve the name of a marker differently.
        """
        if isinstance(node, ast.ClassDef) and node.name in self.compiled:
            return
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                self.function(child, self.statement(child, NO_PARENT))
            elif isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
                self.definitions(child)


def _merely_counts(node: ast.For | ast.AsyncFor | ast.While) -> bool:
    """Whether the header does nothing: over ``range(...)`` or a literal, or ``while True``."""
    match node:
        case ast.While(test=ast.Constant()):
            return True
        case ast.For(target=ast.Name(), iter=ast.Call(func=ast.Name(id="range"))):
            return True
        case ast.For(target=ast.Name(), iter=ast.List() | ast.Tuple() | ast.Constant()):
            return True
    return False


def _is_ellipsis(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and node.value.value is ...
    )


def at_position(node: _Node, at: ast.stmt | ast.expr) -> _Node:
    """Set the position of `node` to the start of `at`."""
    node.lineno = node.end_lineno = at.lineno
    node.col_offset = node.end_col_offset = at.col_offset
    return node
