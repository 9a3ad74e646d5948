"""Selection of the functions of a cell that can be instrumented.

Some decorators and calls compile the bytecode of a function (``numba.njit``, ``torch.compile``)
and would fail or fall back at a marker. A decorated function is therefore instrumented only if
all its decorators are known to be harmless, and a function that is passed to such a compiler in
the same cell is not instrumented. Its work is then attributed to the line that calls it.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    Function = ast.FunctionDef | ast.AsyncFunctionDef

_PLAIN_DECORATORS = {
    "abstractmethod", "asynccontextmanager", "autocast", "cache", "cached_property",
    "classmethod", "contextmanager", "custom_bwd", "custom_fwd", "deleter", "enable_grad",
    "final", "fixture", "getter", "inference_mode", "lru_cache", "no_grad", "op", "override",
    "property", "register", "setter", "singledispatch", "singledispatchmethod", "staticmethod",
    "wraps",
}  # fmt: skip
_COMPILERS = {
    "cfunc", "compile", "fuse", "guvectorize", "jit", "kernel", "njit", "optimize", "overload",
    "script", "stencil", "trace", "vectorize",
}  # fmt: skip
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def is_plain_function(node: Function) -> bool:
    """Whether the decorators show that only Python runs the body of the function."""
    return all(_last_name(decorator) in _PLAIN_DECORATORS for decorator in node.decorator_list)


def compiled_names(body: Iterable[ast.stmt]) -> frozenset[str]:
    """Return the names that the code passes to possible bytecode compilers."""
    calls = (
        node
        for node in ast.walk(ast.Module(list(body), []))
        if isinstance(node, ast.Call) and _last_name(node.func) in _COMPILERS
    )
    return frozenset(
        part.id
        for call in calls
        for argument in [*call.args, *(keyword.value for keyword in call.keywords)]
        for part in ast.walk(argument)
        if isinstance(part, ast.Name)
    )


def has_own_yield(body: Sequence[ast.stmt]) -> bool:
    """Whether statements of a function make it a generator."""
    return any(isinstance(part, ast.Yield | ast.YieldFrom) for part in own_parts(body))


def own_parts(body: Sequence[ast.stmt]) -> Iterator[ast.AST]:
    """Yield the nodes of statements that run in their scope, outer ones before inner ones."""
    todo: list[ast.AST] = list(body)
    while todo:
        part = todo.pop()
        yield part
        if isinstance(part, SCOPES):
            # Decorators, defaults and bases are evaluated in this scope, but the body is not.
            inner = part.body if isinstance(part.body, list) else [part.body]
            todo += [child for child in ast.iter_child_nodes(part) if child not in inner]
        else:
            todo += ast.iter_child_nodes(part)


def _last_name(node: ast.expr) -> str:
    """Return the last name, such as ``c`` in ``a.b.c`` and ``a.b.c(...)``."""
    if isinstance(node, ast.Call):
        return _last_name(node.func)
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
