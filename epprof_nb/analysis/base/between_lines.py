"""Lines of a function that run between two of its lines, from its source."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from epprof_nb.analysis.base.source_text import syntax_tree

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_CHEAP = frozenset(["range", "len", "enumerate", "zip", "isinstance", "getattr"])
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_WORK = (ast.Call, *_COMPREHENSIONS, ast.Await)


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
        The first and the last of these statements; `after` if there are none, or if the source does
        not parse. None if no loop leads from `before` to `after`: the function returned between
        them, and was called again.

    Examples
    --------
    >>> source = "for b in batches:\n    h = sort(b)\n    z = h.cuda()\n    model(z)\n"
    >>> lines_between(source, 4, 3)
    Lines(first=2, last=2)
    >>> lines_between(source, 3, 4)
    Lines(first=4, last=4)
    >>> print(lines_between("def f(x):\n    y = x.cuda()\n    return y.cpu()\n", 3, 2))
    None
    """
    tree = syntax_tree(text)
    if tree is None or (before == after and not next_turn):
        return Lines(after, after)
    if before < after:
        found = sorted(line for line in _calling(tree) if before < line < after)
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
        inside = sorted(line for node in innermost.body for line in _calling(node))
        found = [line for line in inside if line > before]
        found += [line for line in inside if line < after]
    return Lines(found[0], found[-1]) if found else Lines(after, after)


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


def _leads_back(node: ast.AST, before: int, after: int) -> bool:
    """Return whether a statement that is no loop runs the line `after` after the line `before`.

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


def _calling(tree: ast.AST) -> Iterator[int]:
    """Yield the lines of the statements that call something; of compound ones, in their header."""
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            parts = [
                part
                for part in ast.iter_child_nodes(node)
                if not isinstance(part, (ast.stmt, ast.excepthandler, ast.match_case))
            ]
            if any(_is_work(below) for part in parts for below in ast.walk(part)):
                yield node.lineno


def _is_work(node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id not in _CHEAP
    return isinstance(node, _WORK)
