"""Generated code of TorchInductor with calls that announce the next kernel."""

from __future__ import annotations

import ast
from bisect import bisect_left
from dataclasses import dataclass
from types import CodeType
from typing import TYPE_CHECKING, Any, TypeGuard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import FunctionType

BEGIN = "_epprof_nb_begin"
"""Global name of the function that a marked function calls first; it returns `_MARK`."""
_MARK = "_epprof_nb_mark"
"""Local name of the function to call with a line before kernels, and with 0 at the end."""
_BENCHMARK = "benchmark_compiled_module"
_HOST_ONLY = ("clear", "reinterpret_tensor", "alloc_from_pool", "len", "range", "_DeviceGuard")
_HOST_ONLY_BEGINNINGS = ("empty_strided", "assert_", "get_raw_", "get_cuda_")
"""Calls in generated code that launch nothing."""
_UNKNOWN = object()
"""The modules of the last kernel if they depend on a condition."""
_PREPARING = ("zero_", "fill_")
"""Calls that set up the workspace of the kernel that follows."""


@dataclass(frozen=True)
class MarkedFunction:
    """A function and its code with marks.

    Attributes
    ----------
    function
        The function, whose code is replaced while recording.
    original, marked
        Its code without and with marks.
    """

    function: FunctionType
    original: CodeType
    marked: CodeType


def marked_functions(
    module: Any,  # noqa: ANN401 - generated code
    source: str,
    modules: Mapping[int, object],
) -> list[MarkedFunction]:
    """Return the functions of a module of generated code that call kernels, with marks.

    Parameters
    ----------
    module
        The module.
    source
        Its source.
    modules
        The modules of the kernels, by the lines that call a kernel and by the comments above. A
        mark has such a line, or -1 for a kernel with unknown modules. Kernels with the same value
        as the previous kernel have no mark.
    """
    tree = ast.parse(source)
    found = []
    for owner, node in _functions(tree, module):
        function: Any = vars(owner).get(node.name)
        original = getattr(function, "__code__", None)
        if original is None or original.co_freevars:
            continue
        marker = _Marker(modules)
        node.body = marker.body_of(node)
        code = compile(ast.Module([node], []), original.co_filename, "exec")
        marked = next(
            value for value in code.co_consts
            if isinstance(value, CodeType) and value.co_name == node.name
        )  # fmt: skip
        marked = marked.replace(co_qualname=original.co_qualname)
        found.append(MarkedFunction(function, original, marked))
    return found


def _functions(tree: ast.Module, module: Any) -> Iterator[tuple[Any, ast.FunctionDef]]:  # noqa: ANN401
    """Yield the functions that take the inputs of a graph, with their owners."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and hasattr(module, node.name):
            for method in node.body:
                if _takes_inputs(method):
                    yield getattr(module, node.name), method
        elif _takes_inputs(node):
            yield module, node


def _takes_inputs(node: ast.stmt) -> TypeGuard[ast.FunctionDef]:
    return (
        isinstance(node, ast.FunctionDef)
        and node.name != _BENCHMARK
        and any(argument.arg == "args" for argument in node.args.args)
    )


class _Marker:
    """One pass over the statements of a function, in the order in which they run."""

    def __init__(self, modules: Mapping[int, object]) -> None:
        self._modules = modules
        self._lines = sorted(modules)
        self._last: object = None
        """The modules of the last kernel; None at the beginning."""
        self._position = 0
        self._announced = -1
        """The line of the next kernel; -1 if it is not announced."""

    def body_of(self, function: ast.FunctionDef) -> list[ast.stmt]:
        """Return the body of a function with marks."""
        body, first = function.body, function.body[0]
        self._position = bisect_left(self._lines, function.lineno)
        begin = ast.Assign(
            [ast.Name(_MARK, ast.Store())],
            ast.Call(ast.Name(BEGIN, ast.Load()), [], []),
        )
        end = ast.Expr(_call(0))
        whole = ast.Try(self._block(body), [], [], [end])
        return [_at(begin, first), _at(whole, first)]

    def _block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        marked: list[ast.stmt] = []
        for node in body:
            inner = [block for block in (getattr(node, "body", None),) if isinstance(block, list)]
            if inner and not isinstance(node, ast.FunctionDef | ast.ClassDef):
                is_straight = isinstance(node, ast.With)
                for field in ("body", "orelse", "finalbody"):
                    block = getattr(node, field, None)
                    if block:
                        self._last = self._last if is_straight else _UNKNOWN
                        setattr(node, field, self._block(block))
                self._last = self._last if is_straight else _UNKNOWN
            elif (call := _launch(node)) is not None:
                marked += self._mark(node, call)
            marked.append(node)
        return marked

    def _mark(self, node: ast.stmt, call: str) -> list[ast.stmt]:
        """Return the mark before a statement that launches; empty if it equals the last mark."""
        last = node.end_lineno or node.lineno
        while self._position < len(self._lines) and self._lines[self._position] <= last:
            self._announced = self._lines[self._position]
            self._position += 1
        line = self._announced
        if call not in _PREPARING:
            self._announced = -1
        owner = self._modules.get(line) or None
        if owner == self._last:
            return []
        self._last = owner
        return [_at(ast.Expr(_call(line if owner is not None else -1)), node)]


def _launch(node: ast.stmt) -> str | None:
    """Return the name of the function with which a statement may launch work."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Call):
            called = inner.func
            name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            if name not in _HOST_ONLY and not name.startswith(_HOST_ONLY_BEGINNINGS):
                return name
    return None


def _call(line: int) -> ast.Call:
    value: ast.expr = ast.Constant(abs(line))
    if line < 0:
        value = ast.UnaryOp(ast.USub(), value)
    return ast.Call(ast.Name(_MARK, ast.Load()), [value], [])


def _at(node: ast.stmt, place: ast.stmt) -> ast.stmt:
    """Give a new statement the place of another statement, for tracebacks."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.expr | ast.stmt) and not hasattr(inner, "lineno"):
            ast.copy_location(inner, place)
    return node


def switch(functions: list[MarkedFunction], module: Any, begin: Callable[[], object]) -> None:  # noqa: ANN401
    """Let the functions of a module mark their kernels."""
    setattr(module, BEGIN, begin)
    for known in functions:
        known.function.__code__ = known.marked


def restore(functions: list[MarkedFunction]) -> None:
    """Restore the code of functions.

    The function of `switch` stays in the module, because a call may be running.
    """
    for known in functions:
        known.function.__code__ = known.original
