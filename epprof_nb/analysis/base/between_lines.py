"""Lines of a function that run between two of its lines, from its source."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from epprof_nb.analysis.base.source_text import syntax_tree

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_CHEAP = frozenset(["range", "len", "enumerate", "zip", "isinstance", "getattr"])
_STORED = frozenset(["items", "keys", "values", "tolist", "split", "splitlines"])
"""Methods whose values are there before the loop begins."""
_KINDS = {
    ast.ListComp: "list comprehension",
    ast.SetComp: "set comprehension",
    ast.DictComp: "dict comprehension",
    ast.GeneratorExp: "generator expression",
}
_COMPREHENSIONS = tuple(_KINDS)
_WORK = (ast.Call, *_COMPREHENSIONS, ast.Await)


class Loop(NamedTuple):
    """Kind of a loop, as ``generator expression``, and the first line of its statement, from 1."""

    kind: str
    line: int


class Lines(NamedTuple):
    """The first and the last line, from 1, in the order in which they run."""

    first: int
    last: int


@lru_cache(maxsize=1024)
def lines_between(text: str, before: int, after: int, *, next_turn: bool = False) -> Lines | None:
    r"""Return the lines with calls that may run after one line and before another.

    Parameters
    ----------
    text
        Source of the file or cell.
    before, after
        Lines of one function, from 1. If `after` is not below `before`, the next turn of their
        loop leads there.
    next_turn
        Whether the next turn also leads from a line to itself.

    Returns
    -------
    lines
        The first and the last of these statements; if there are none, the loop if it calls
        something for its values, such as a generator, else `after`, as if the source does not
        parse. None if no loop leads from `before` to `after`: the function returned between
        them, and was called again.

    Examples
    --------
    >>> source = "for b in batches:\n    h = sort(b)\n    z = h.cuda()\n    model(z)\n"
    >>> lines_between(source, 4, 3)
    Lines(first=2, last=2)
    >>> lines_between(source, 3, 4)
    Lines(first=4, last=4)
    >>> lines_between("for b in read(9):\n    model(b.cuda())\n", 2, 2, next_turn=True)
    Lines(first=1, last=1)
    >>> lines_between("load()\ndef f(x):\n    sort(x)\nmodel(f(1))\n", 1, 4)
    Lines(first=4, last=4)
    >>> print(lines_between("def f(x):\n    y = x.cuda()\n    return y.cpu()\n", 3, 2))
    None
    """
    tree = syntax_tree(text)
    if tree is None or (before == after and not next_turn):
        return Lines(after, after)
    if before < after:
        found = sorted(line for line in _calling(tree, after) if before < line < after)
    else:
        loops = [
            node
            for node in ast.walk(tree)
            if isinstance(node, _LOOPS) and node.lineno <= after <= before <= (node.end_lineno or 0)
        ]
        if not loops:
            stays = any(_leads_back(node, before, after) for node in ast.walk(tree))
            return Lines(after, after) if stays else None
        innermost = max(loops, key=lambda node: node.lineno)
        inside = sorted(line for node in innermost.body for line in _calling(node, after))
        found = [line for line in inside if line > before]
        found += [line for line in inside if line < after]
        if not found and _makes_values(innermost):
            found = [innermost.lineno]
    return Lines(found[0], found[-1]) if found else Lines(after, after)


@lru_cache(maxsize=1024)
def profile_begin(text: str, line: int) -> int:
    r"""Return the line of the innermost ``with`` around a line that begins a profile; 0 if none.

    Examples
    --------
    >>> source = "load()\nwith epprof_nb.profile() as p:\n    model(x)\nmodel(y)\n"
    >>> [profile_begin(source, line) for line in (1, 3, 4)]
    [0, 2, 0]
    """
    tree = syntax_tree(text)
    return max(
        (
            node.lineno
            for node in (ast.walk(tree) if tree else ())
            if isinstance(node, (ast.With, ast.AsyncWith))
            and node.lineno <= line <= (node.end_lineno or 0)
            and any(_begins_profile(item.context_expr) for item in node.items)
        ),
        default=0,
    )


def _begins_profile(context: ast.expr) -> bool:
    """Return whether a context is ``profile()`` or ``epprof_nb.profile()``, by any module name."""
    function = context.func if isinstance(context, ast.Call) else None
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        # `torch.profiler.profile()` may be within a profile.
        return function.attr == "profile" and function.value.id != "profiler"
    return isinstance(function, ast.Name) and function.id == "profile"


def loop_header(text: str, line: int) -> int:
    r"""Return the first line of the innermost loop around a line; the line itself without a loop.

    Examples
    --------
    >>> loop_header("for b in loader:\n    z = b.cuda()\n", 2)
    1
    """
    tree = syntax_tree(text)
    loops = [
        node.lineno
        for node in (ast.walk(tree) if tree else ())
        if isinstance(node, _LOOPS) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    return max(loops, default=line)


def loop_around(text: str, line: int) -> Loop | None:
    r"""Return the innermost loop around a line; of a loop within an expression, its statement.

    Examples
    --------
    >>> loop_around("with a:\n    for b in loader:\n        z = b.cuda()\n", 3)
    Loop(kind='loop', line=2)
    >>> loop_around("total = sum(\n    f(b) for b in loader)\n", 2)
    Loop(kind='generator expression', line=1)
    """
    tree = syntax_tree(text)
    found = [
        (node.lineno, Loop("loop", node.lineno))
        for node in (ast.walk(tree) if tree else ())
        if isinstance(node, _LOOPS) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    for node in ast.walk(tree) if tree else ():
        if not isinstance(node, ast.stmt) or not node.lineno <= line <= (node.end_lineno or 0):
            continue
        found += [
            (part.lineno, Loop(_KINDS[type(part)], node.lineno))
            for part in _header(node)
            if isinstance(part, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp)
            and (line == node.lineno or part.lineno <= line <= (part.end_lineno or 0))
        ]
    return max(found, key=lambda one: one[0])[1] if found else None


def begins_function(text: str, line: int) -> bool:
    r"""Return whether a line has the ``def`` of a function, which runs before its first statement.

    Examples
    --------
    >>> [begins_function("def f(x):\n    return x\n", line) for line in (1, 2)]
    [True, False]
    """
    tree = syntax_tree(text)
    return any(
        isinstance(node, _FUNCTIONS) and node.lineno <= line < node.body[0].lineno
        for node in (ast.walk(tree) if tree else ())
    )


def function_lines(text: str, line: int) -> range:
    r"""Return the lines of the innermost function around a line; none outside of functions.

    Examples
    --------
    >>> source = "def f(x):\n    y = 2 * x\n    return y\nf(1)\n"
    >>> function_lines(source, 2), function_lines(source, 4)
    (range(1, 4), range(0, 0))
    """
    tree = syntax_tree(text)
    found = [
        range(node.lineno, (node.end_lineno or 0) + 1)
        for node in (ast.walk(tree) if tree else ())
        if isinstance(node, _FUNCTIONS)
    ]
    return min((lines for lines in found if line in lines), key=len, default=range(0))


def awaits(text: str, line: int) -> bool:
    r"""Return whether the statement at a line suspends its coroutine until something is ready.

    Of a compound statement, the header counts.

    Examples
    --------
    >>> source = "for i in range(9):\n    r = await fetch(i)\n    model(r)\n"
    >>> [awaits(source, line) for line in (1, 2, 3)]
    [False, True, False]
    """
    tree = syntax_tree(text)
    return tree is not None and line in {
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt)
        and (
            isinstance(node, (ast.AsyncFor, ast.AsyncWith))
            or any(isinstance(below, ast.Await) for below in _header(node))
        )
    }


def does_one_thing(text: str, line: int) -> bool:
    r"""Return whether the statement at a line has one call or operator, which may launch work.

    Examples
    --------
    >>> [does_one_thing("y = model(x)\nz = y * 2 + 1\n", line) for line in (1, 2)]
    [True, False]
    """
    tree = syntax_tree(text)
    found = [
        sum(isinstance(part, (ast.Call, ast.BinOp, ast.UnaryOp)) for part in _header(node))
        for node in (ast.walk(tree) if tree else ())
        if isinstance(node, ast.stmt) and node.lineno == line
    ]
    return found == [1]


def _makes_values(loop: ast.stmt) -> bool:
    """Return whether a loop calls something that computes its values, as a generator does."""
    if not isinstance(loop, (ast.For, ast.AsyncFor)):
        return False
    return any(
        _is_work(part) and not (isinstance(part, ast.Call) and _name_of(part) in _STORED)
        for part in ast.walk(loop.iter)
    )


def _name_of(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _leads_back(node: ast.AST, before: int, after: int) -> bool:
    """Return whether a statement other than a loop runs the line `after` after the line `before`.

    A comprehension repeats its line, and a context is left in the line of its ``with``.
    """
    if not isinstance(node, ast.stmt) or not node.lineno <= after <= before <= (
        node.end_lineno or 0
    ):
        return False
    if isinstance(node, (ast.With, ast.AsyncWith)):
        return after < min(before, node.body[0].lineno)
    is_simple = not hasattr(node, "body")
    return is_simple and any(isinstance(part, _COMPREHENSIONS) for part in ast.walk(node))


def _calling(tree: ast.AST, line: int) -> Iterator[int]:
    """Yield the lines of the statements that call something; of compound ones, in their header.

    The bodies of functions do not run where these are defined; only that around `line` does.
    """
    todo = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.stmt) and any(_is_work(below) for below in _header(node)):
            yield node.lineno
        if isinstance(node, _FUNCTIONS) and not node.lineno < line <= (node.end_lineno or 0):
            continue
        todo += [
            below
            for below in ast.iter_child_nodes(node)
            if isinstance(below, (ast.stmt, ast.excepthandler, ast.match_case))
        ]


def _header(node: ast.stmt) -> Iterator[ast.AST]:
    """Yield the nodes of a statement, without the statements of its body."""
    for part in ast.iter_child_nodes(node):
        if not isinstance(part, (ast.stmt, ast.excepthandler, ast.match_case)):
            yield from ast.walk(part)


def _is_work(node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id not in _CHEAP
    return isinstance(node, _WORK)
