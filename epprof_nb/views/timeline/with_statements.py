"""``with`` statements that only open an op: views show each as one row with its op."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.arrays.groups import group_codes
from epprof_nb.arrays.ids import IdIndex
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.base.op_tree import OpTree
    from epprof_nb.analysis.base.result_table import ResultTable
    from epprof_nb.arrays.types import BoolArray, IntArray

_PREFIXES = ("with ", "with(", "async with")


def ops_of_with_statements(index: ProfileIndex) -> dict[int, int]:
    """Map the rows of the ``with epprof_nb.op(...)`` statements to the rows of their ops.

    Such a statement has the range as its only child: the statements of its body are below the
    range.

    Parameters
    ----------
    index
        Index of the profile.
    """
    ops, tree = index.profile.tables["ops"], index.tree
    names = ops.names("name")
    is_with = np.array([*(name.startswith(_PREFIXES) for name in names.categories), False])
    if not is_with.any():
        return {}
    is_statement = is_with[names.codes] & ops.names("op_type").equals("line")
    parent, thread = tree.parent, ops["thread_id"]
    children = np.bincount(parent[parent >= 0], minlength=len(parent))
    is_only_range = ops.names("op_type").equals("range") & (parent >= 0)
    rows = np.flatnonzero(is_only_range)
    above = parent[rows]
    found = is_statement[above] & (children[above] == 1) & (thread[above] == thread[rows])
    return dict(zip(above[found].tolist(), rows[found].tolist(), strict=True))


def depth_without(tree: OpTree, hidden: IntArray) -> IntArray:
    """Return the number of ancestors of each op, not counting the ops at the rows `hidden`."""
    if not len(hidden):
        return tree.depth
    edges = np.zeros(len(tree) + 1, np.int64)
    np.add.at(edges, tree.preorder_begin[hidden] + 1, 1)
    np.add.at(edges, tree.preorder_end[hidden], -1)
    depth: IntArray = tree.depth - np.cumsum(edges)[:-1][tree.preorder_begin]
    return depth


def drawn_rows(rows: IntArray, op_of_statement: dict[int, int]) -> IntArray:
    """Return `rows` of ops with each hidden statement replaced by its op, ascending."""
    if not op_of_statement:
        return rows
    statements, ops = _pairs(op_of_statement)
    at = IdIndex(statements).rows(rows)
    return np.unique(np.where(at == MISSING, rows, ops[at]))


def statement_rows(rows: IntArray, op_of_statement: dict[int, int]) -> IntArray:
    """Return the row of the hidden statement of each op at `rows`, `MISSING` for other ops."""
    statements, ops = _pairs(op_of_statement)
    return np.append(statements, MISSING)[IdIndex(ops).rows(rows)]


def _pairs(op_of_statement: dict[int, int]) -> tuple[IntArray, IntArray]:
    """Return the rows of the statements and of their ops."""
    n = len(op_of_statement)
    return np.fromiter(op_of_statement, np.int64, n), np.fromiter(
        op_of_statement.values(), np.int64, n
    )


def without_statements(table: ResultTable, index: ProfileIndex) -> ResultTable:
    """Return ``by_op`` without the rows of ``with`` statements that only open an op.

    A statement keeps its row if it launched work itself, outside the op.
    """
    hidden = np.array(list(index.cached(ops_of_with_statements)), np.int64)
    if not len(hidden):
        return table
    ops = index.profile.tables["ops"]
    # Only ops on the lines of these statements can belong to the same rows.
    rows = np.flatnonzero(np.isin(ops["line"], np.unique(ops["line"][hidden])))
    names, types, cells = (ops.names(name).take(rows) for name in ("name", "op_type", "cell"))
    lines = ops["line"][rows]
    groups, first = group_codes(names.codes, types.codes, cells.codes, lines)
    others = np.bincount(groups[~np.isin(rows, hidden)], minlength=len(first))
    only_hidden = first[others == 0]
    columns = [column.take(only_hidden).to_list() for column in (names, types, cells)]
    statements = set(zip(*columns, lines[only_hidden].tolist(), strict=True))
    keys = zip(*(table.values(name) for name in ("name", "op_type", "cell", "line")), strict=True)
    is_shown_by_op: BoolArray = np.array([key in statements for key in keys], np.bool_)
    is_shown_by_op &= table["self_device_ns"] == 0
    return table.take(~is_shown_by_op)
