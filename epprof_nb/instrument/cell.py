"""A cell's statements as ops: marker calls put into its syntax tree.

Before each statement stands ``__epprof_line__(key)``, which ends the statements before it at its
level and begins this one. A loop's header and a context manager's exit run after the last
statement of their body, so ``__epprof_back__(key)`` ends that body. A function's body stands
between ``__epprof_enter__`` and ``__epprof_leave__``: its statements are children of whatever
statement called it.

The markers keep the positions of the statements they stand before, so tracebacks are the same.
Outside a session they do nothing.
"""

from __future__ import annotations

import ast
import builtins
from typing import TYPE_CHECKING, TypeVar

from epprof_nb import _native
from epprof_nb.instrument import torch_dynamo
from epprof_nb.instrument.functions import compiled_names, has_own_yield, is_plain_function
from epprof_nb.instrument.statements import Cell, Statement, add, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Function = ast.FunctionDef | ast.AsyncFunctionDef

_Node = TypeVar("_Node", bound=ast.stmt | ast.expr)

# Names that end in two underscores are not mangled inside classes.
MARKERS: dict[str, Callable[[int], None]] = {
    "__epprof_line__": _native.line,
    "__epprof_back__": _native.back,
    "__epprof_enter__": _native.enter,
    "__epprof_leave__": _native.leave,
    "__epprof_enter_frame__": _native.enter_frame,
    "__epprof_leave_frame__": _native.leave_frame,
}

_NO_WORK = (ast.Pass, ast.Break, ast.Global, ast.Nonlocal)
_LEAVES_BODY = (ast.Return, ast.Raise, ast.Break, ast.Continue)


def install_markers(namespace: dict[str, object]) -> None:
    """Make the markers known to code that runs in `namespace`.

    They go into the namespace, so that a function pickled by value takes them along, and into
    ``builtins``, so that functions outlive a ``%reset`` of the namespace.
    """
    for name, marker in MARKERS.items():
        namespace[name] = marker
        setattr(builtins, name, marker)
    torch_dynamo.tell(MARKERS.values())


def instrument(body: list[ast.stmt], cell: Cell, *, first_line: int = 0) -> list[ast.stmt]:
    """Put markers into the statements of a cell.

    Parameters
    ----------
    body
        The statements; they are changed in place.
    cell
        Where they come from; its source gives their text.
    first_line
        Lines of the cell above the source that was parsed.

    Returns
    -------
    list of ast.stmt
        The statements with the markers between them.
    """
    instrumenter = _Instrumenter(cell, first_line, compiled_names(body))
    marked = instrumenter.block(body, parent=-1)
    instrumenter.number()
    return marked


class _Instrumenter:
    """One pass over one cell: collects its statements and places the markers."""

    def __init__(self, cell: Cell, first_line: int, compiled: frozenset[str]) -> None:
        self.cell = cell
        self.lines = cell.source.splitlines()
        self.first_line = first_line
        self.compiled = compiled
        self.statements: list[Statement] = []
        self.parents: list[int] = []
        self.keys: list[ast.Constant] = []

    def number(self) -> None:
        """Register the statements and write their keys into the markers."""
        first = add(self.statements, self.parents)
        for key in self.keys:
            key.value = first + int(str(key.value))

    def statement(self, node: ast.stmt, parent: int) -> int:
        """Note a statement; its index is returned."""
        line = self.first_line + node.lineno
        end_line = self.first_line + (node.end_lineno or node.lineno)
        compound = hasattr(node, "body") or hasattr(node, "cases")
        text = text_of(
            self.lines,
            line=line,
            column=node.col_offset,
            end_line=line if compound else end_line,
            end_column=None if compound else node.end_col_offset,
        )
        self.statements.append(Statement(self.cell, line, end_line, text))
        self.parents.append(parent)
        return len(self.statements) - 1

    def marker(self, name: str, index: int, node: ast.stmt) -> ast.Expr:
        """Build the call of a marker at the place where `node` begins."""
        key = placed(ast.Constant(index), node)
        self.keys.append(key)
        marker = placed(ast.Name(name, ast.Load()), node)
        return placed(ast.Expr(placed(ast.Call(marker, [key], []), node)), node)

    def block(self, body: Sequence[ast.stmt], *, parent: int, loop: int = -1) -> list[ast.stmt]:
        """Mark the statements of one block; `loop` is the loop that ``continue`` goes back to."""
        marked: list[ast.stmt] = []
        for node in body:
            if isinstance(node, ast.Continue):
                if loop >= 0:
                    marked.append(self.marker("__epprof_back__", loop, node))
            elif not isinstance(node, _NO_WORK):
                index = self.statement(node, parent)
                marked.append(self.marker("__epprof_line__", index, node))
                self.inside(node, index, loop)
            marked.append(node)
        return marked

    def inside(self, node: ast.stmt, index: int, loop: int) -> None:
        """Mark what a compound statement contains."""
        match node:
            case ast.For() | ast.AsyncFor() | ast.While():
                node.body = self.returning(node, node.body, index, loop=index)
                node.orelse = self.block(node.orelse, parent=index, loop=loop)
            case ast.With() | ast.AsyncWith():
                node.body = self.returning(node, node.body, index, loop=loop)
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

    def returning(
        self, node: ast.stmt, body: Sequence[ast.stmt], index: int, *, loop: int
    ) -> list[ast.stmt]:
        """Mark a body after which control is back in the statement that contains it."""
        marked = self.block(body, parent=index, loop=loop)
        if not isinstance(marked[-1], _LEAVES_BODY):
            marked.append(self.marker("__epprof_back__", index, node))
        return marked

    def function(self, node: Function, index: int) -> None:
        """Mark the body of a function, unless something else may want to compile it."""
        if not is_plain_function(node) or node.name in self.compiled:
            return
        documented = ast.get_docstring(node, clean=False) is not None
        docstring, body = node.body[:documented], node.body[documented:]
        if all(isinstance(s, ast.Pass) or _is_ellipsis(s) for s in body):
            return
        frame = isinstance(node, ast.AsyncFunctionDef) or has_own_yield(node)
        suffix = "_frame__" if frame else "__"
        leave = self.marker(f"__epprof_leave{suffix}", index, node)
        guarded = placed(ast.Try(self.block(body, parent=-1), [], [], [leave]), node)
        node.body = [*docstring, self.marker(f"__epprof_enter{suffix}", index, node), guarded]

    def definitions(self, node: ast.AST) -> None:
        """Mark the methods of a class.

        The statements of the class body itself stay as they are: their namespace can be one of
        the metaclass's making, which may take a marker's name for one of its own.
        """
        if isinstance(node, ast.ClassDef) and node.name in self.compiled:
            return
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                self.function(child, self.statement(child, -1))
            elif isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
                self.definitions(child)


def _is_ellipsis(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and node.value.value is ...
    )


def placed(node: _Node, at: ast.stmt | ast.expr) -> _Node:
    """Give `node` the position where `at` begins."""
    node.lineno = node.end_lineno = at.lineno
    node.col_offset = node.end_col_offset = at.col_offset
    return node
