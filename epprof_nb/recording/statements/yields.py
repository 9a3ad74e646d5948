"""Markers around each ``yield`` of a generator: its ops leave the stack while it is suspended.

On Python 3.11, the interpreter reports suspensions to a profile function only, which it also calls
at each call of the thread. So ``yield x`` becomes ``resume((yield suspend(x)))`` there. If the
caller throws an exception into the generator, ``resume`` is not called: the handlers of a ``try``,
what follows a ``with``, and the end of the body of the function resume it, too.
"""

from __future__ import annotations

import ast
import sys

from epprof_nb.recording.statements.instrumentable_functions import (
    SCOPES,
    has_own_yield,
    own_parts,
)
from epprof_nb.recording.statements.markers import RESUME, SUSPEND

_NEEDS_MARKERS = sys.version_info < (3, 12)  # later: `sys.monitoring`, for this code only


def can_mark_yields(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether markers can follow a generator: each ``yield`` is its own, not one of another."""
    return (
        _NEEDS_MARKERS
        and isinstance(node, ast.FunctionDef)
        and not any(isinstance(part, ast.YieldFrom) for part in own_parts(node.body))
    )


def mark_yields(body: list[ast.stmt]) -> None:
    """Mark each ``yield`` of the body of a generator, which is changed in place."""
    parts = list(own_parts(body))
    yields = {id(part) for part in parts if isinstance(part, ast.Yield)}
    for part in [*reversed(parts), ast.Module(body, [])]:  # inner ones first
        for name, value in ast.iter_fields(part):
            if isinstance(part, SCOPES) and name == "body":
                continue  # runs elsewhere
            if isinstance(value, list):
                value[:] = [_resumed(v) if id(v) in yields else v for v in value]
                _resume_after_exceptions(part, name, value)
            elif id(value) in yields:
                setattr(part, name, _resumed(value))


def _resume_after_exceptions(part: ast.AST, name: str, nodes: list[ast.stmt]) -> None:
    """Begin the handlers of a ``try`` with a marker, and put one behind each ``with``."""
    for at in range(len(nodes) - 1, -1, -1):
        if isinstance(nodes[at], ast.With) and has_own_yield([nodes[at]]):
            nodes.insert(at + 1, _resume_statement(nodes[at]))
    if nodes and (name == "finalbody" or (name == "body" and isinstance(part, ast.ExceptHandler))):
        nodes.insert(0, _resume_statement(nodes[0]))


def _call(name: str, value: ast.expr, at: ast.AST) -> ast.Call:
    call = ast.Call(ast.Name(name, ast.Load()), [value], [])
    for node in (call, call.func):
        ast.copy_location(node, at)
    return call


def _resumed(node: ast.Yield) -> ast.Call:
    value = node.value or ast.copy_location(ast.Constant(None), node)
    node.value = _call(SUSPEND, value, node)
    return _call(RESUME, node, node)


def _resume_statement(at: ast.stmt) -> ast.Expr:
    nothing = ast.copy_location(ast.Constant(None), at)
    return ast.copy_location(ast.Expr(_call(RESUME, nothing, at)), at)
