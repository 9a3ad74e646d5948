"""Copied values that a loop, or a function that is called again, does not assign: by source."""

from __future__ import annotations

import ast

from epprof_nb.analysis.base.source_text import syntax_tree

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_COPYING = frozenset(
    ("cuda", "to", "asarray", "array", "as_tensor", "tensor", "from_numpy", "device_put",
     "to_device", "to_gpu", "contiguous", "float", "half", "double")
)  # fmt: skip
"""Functions and methods that copy an array, or return another view or type of it."""


def unchanged_copy(text: str, line: int) -> str:
    r"""Return the source of a copy that copies the same variables each time its line runs.

    Parameters
    ----------
    text
        Source of the file or cell.
    line
        Line of the copy, from 1. It runs several times.

    Returns
    -------
    source
        Such as ``table.cuda()``; empty if the loop around it assigns the variables, if the function
        around it gets or assigns them, if a loop elsewhere assigns them, or if the source does not
        parse. Elements may still change: in place, or in other files.

    Examples
    --------
    >>> unchanged_copy("for i in range(6):\n    t = table.cuda()\n    f(t)\n", 2)
    'table.cuda()'
    >>> unchanged_copy("for b in batches:\n    f(b.cuda())\n", 2)
    ''
    >>> unchanged_copy("def forward(x):\n    return x @ table.cuda()\n", 2)
    'table.cuda()'
    """
    tree = syntax_tree(text)
    if tree is None:
        return ""
    scopes = [
        node
        for node in ast.walk(tree)
        if isinstance(node, (*_LOOPS, *_FUNCTIONS))
        and node.body[0].lineno <= line <= (node.end_lineno or 0)
    ]
    if not scopes:
        return ""
    scope = max(scopes, key=lambda node: node.lineno)
    changed = _assigned(scope)
    if isinstance(scope, _FUNCTIONS):
        arguments = {node.arg for node in ast.walk(scope.args) if isinstance(node, ast.arg)}
        others = [node for node in ast.walk(tree) if isinstance(node, (*_LOOPS, *_FUNCTIONS))]
        changed |= arguments.union(*map(_assigned, others))
    for node in ast.walk(scope):
        if isinstance(node, ast.Call) and node.lineno <= line <= (node.end_lineno or 0):
            calls = [below for below in ast.walk(node) if isinstance(below, ast.Call)]
            names = {below.id for below in ast.walk(node) if isinstance(below, ast.Name)}
            is_copy = all(_called(call) in _COPYING for call in calls)
            if is_copy and names and not names & changed and not _has_changed_parts(node, scope):
                return ast.unparse(node)
    return ""


def _assigned(scope: ast.AST) -> set[str]:
    """Return the names that a loop or function assigns, also in those within it."""
    return {
        node.id
        for node in ast.walk(scope)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    }


def _called(call: ast.Call) -> str:
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _has_changed_parts(copy: ast.Call, scope: ast.AST) -> bool:
    """Return whether a loop or function stores elements or attributes of what is copied."""
    names = {node.id for node in ast.walk(copy) if isinstance(node, ast.Name)}
    stored = (
        node
        for node in ast.walk(scope)
        if isinstance(node, (ast.Subscript, ast.Attribute)) and not isinstance(node.ctx, ast.Load)
    )
    return any(
        isinstance(below, ast.Name) and below.id in names
        for node in stored
        for below in ast.walk(node.value)
    )
