"""Turns of loops among the statements inside of others: which are none, but calls."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epprof_nb.analysis.base.source_text import syntax_tree
from epprof_nb.arrays.groups import group_codes
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import BoolArray, IntArray

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_COMPOUND = (*_LOOPS, ast.If, ast.With, ast.AsyncWith, ast.Try, ast.TryStar)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def are_in_turns(index: ProfileIndex, inner: IntArray, outer: IntArray) -> BoolArray:
    """Return which statements run in a turn of a loop of the statement around them.

    Statements in the body of a ``for`` or ``while`` do; those of a generator that it resumes do
    not. Another statement has a loop in an expression or in a library, which calls a function in
    each turn: but a recursive statement calls itself, and generators and coroutines are resumed.
    Turns of a loop in a turn of its own differ in how deep they recur, so only the outermost count.

    Parameters
    ----------
    index
        Index of the profile.
    inner, outer
        int64 arrays of one length: rows of statements, and those of the statements around them.
    """
    ops = index.profile.tables["ops"]
    cells = ops.names("cell")
    place, is_outermost, is_recursive = index.cached(recursion)
    texts = [index.profile.sources.get(cell, "") for cell in cells.categories] + [""]
    pairs, first_pair = group_codes(place[inner], place[outer])
    found = np.zeros(len(first_pair), np.bool_)
    for number, row in enumerate(first_pair.tolist()):
        within, around = int(inner[row]), int(outer[row])
        line, at = int(ops["line"][within]), int(ops["line"][around])
        body = _bodies(texts[cells.codes[around]]).get(at)
        is_same_cell = cells.codes[within] == cells.codes[around]
        if body is not None and (body.is_loop or (is_same_cell and line in body.lines)):
            found[number] = body.is_loop and is_same_cell and line in body.lines
        elif line not in _resumed_lines(texts[cells.codes[within]]):
            found[number] = not is_recursive[around]
    in_turns: BoolArray = found[pairs] & is_outermost[outer]
    return in_turns


class _Body(NamedTuple):
    """Lines of the statements in a compound statement."""

    lines: range
    is_loop: bool


def are_concurrent(index: ProfileIndex) -> BoolArray:
    """Return which statements were suspended while others of their place had begun, in other tasks.

    Others decide when such a statement goes on.
    """
    ops, place = index.profile.tables["ops"], index.cached(recursion).place
    found = np.zeros(len(ops), np.bool_)
    suspended = np.flatnonzero((ops["suspended_ns"] > 0) & (ops["line"] != MISSING))
    rows = suspended[np.lexsort((ops["start_ns"][suspended], place[suspended]))]
    overlaps = place[rows[1:]] == place[rows[:-1]]
    overlaps &= ops["start_ns"][rows[1:]] < ops["end_ns"][rows[:-1]]
    found[rows[1:][overlaps]] = found[rows[:-1][overlaps]] = True
    return found


class Recursion(NamedTuple):
    """Statements that run in themselves: columns of all ops."""

    place: IntArray
    is_outermost: BoolArray
    is_recursive: BoolArray


def recursion(index: ProfileIndex) -> Recursion:
    """Return the number of each statement's place, and which statements run in themselves."""
    ops = index.profile.tables["ops"]
    is_line = ops["line"] != MISSING
    place, _ = group_codes(ops.names("cell").codes, ops["line"], ops.names("name").codes)
    is_outermost = index.tree.is_outermost(np.where(is_line, place, MISSING))
    is_recursive = is_line & np.isin(place, place[is_line & ~is_outermost])
    return Recursion(place, is_outermost, is_recursive)


@lru_cache(maxsize=64)
def _bodies(text: str) -> dict[int, _Body]:
    """Return the bodies of the compound statements of a source, by the line of their headers."""
    tree = syntax_tree(text)
    return {
        node.lineno: _Body(
            range(node.body[0].lineno, (node.end_lineno or 0) + 1), isinstance(node, _LOOPS)
        )
        for node in (ast.walk(tree) if tree else ())
        if isinstance(node, _COMPOUND)
    }


@lru_cache(maxsize=64)
def _resumed_lines(text: str) -> frozenset[int]:
    """Return the lines of the generators and coroutines of a source."""
    tree = syntax_tree(text)
    return frozenset(
        line
        for node in (ast.walk(tree) if tree else ())
        if isinstance(node, ast.AsyncFunctionDef)
        or (isinstance(node, ast.FunctionDef) and _yields(node))
        for line in range(node.lineno, (node.end_lineno or 0) + 1)
    )


def _yields(function: ast.FunctionDef) -> bool:
    todo: list[ast.AST] = list(function.body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(node, (*_SCOPES, ast.ClassDef)):
            todo += ast.iter_child_nodes(node)
    return False
