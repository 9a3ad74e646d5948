"""by_op, by_line and by_module of memory: bytes by what allocated and released them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from epprof_nb.analysis.base.result_table import ResultTable, categorical, optional
from epprof_nb.analysis.frameworks.phases import modules
from epprof_nb.analysis.memory.block_places import block_stacks, code_lines, release_stacks
from epprof_nb.analysis.memory.memory_at import UNKNOWN_OP
from epprof_nb.analysis.memory.peak import InUse
from epprof_nb.arrays.groups import group_codes, sum_by_group
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.base.result_table import Column
    from epprof_nb.arrays.types import IntArray

By = Literal["op", "module"]


def memory_by_line(index: ProfileIndex) -> ResultTable:
    """Return the columns of `Profile.by_line` with ``memory=True``."""
    blocks = index.profile.tables["memory_blocks"]
    n = len(blocks)
    op = np.concatenate([index.tree.rows(blocks[name]) for name in ("op_id", "freed_op_id")])
    stack = np.concatenate([index.cached(block_stacks), release_stacks(index)])
    lines = code_lines(index, stack, op)
    groups, first = group_codes(*lines.keys())
    # Of several blocks of a line, some can be without a stack.
    in_stack = np.flatnonzero(lines.frame != MISSING)[::-1]
    first[groups[in_stack]] = in_stack
    sums = _sums(index, groups[:n], groups[n:], len(first))
    order = _shown(sums)
    rows = first[order]
    shown = lines.take(rows)
    names = [name or "(outside of statements)" for name in shown.texts(index, op[rows])]
    return ResultTable(
        {
            "cell": shown.cell,
            "line": optional(shown.line),
            "name": categorical(names),
            "function": categorical(shown.functions(index)),
            "caller_cell": shown.caller_cell,
            "caller_line": optional(shown.caller_line),
            **{name: values[order] for name, values in sums.items()},
        }
    )


def memory_by_table(index: ProfileIndex, by: By) -> ResultTable:
    """Return the columns of `Profile.by_op` or `by_module` with ``memory=True``."""
    ops, blocks = index.profile.tables["ops"], index.profile.tables["memory_blocks"]
    owner = np.arange(len(ops)) if by == "op" else index.cached(modules)
    names = ops.names("name").codes
    keys = [names, ops.names("op_type").codes, ops.names("cell").codes, ops["line"]]
    if by == "module":
        keys = [names]
    has_owner = np.flatnonzero(owner != MISSING)
    codes, first = group_codes(*(key[owner[has_owner]] for key in keys))
    n = len(first)
    groups = np.full(len(ops) + 1, n, np.int64)  # the last group has no owner
    groups[has_owner] = codes
    sums = _sums(index, groups[index.tree.rows(blocks["op_id"])],
                 groups[index.tree.rows(blocks["freed_op_id"])], n + 1)  # fmt: skip
    order = _shown(sums)
    row = np.append(owner[has_owner[first]], MISSING)[order]
    return ResultTable(
        {**_labels(index, by, row), **{name: values[order] for name, values in sums.items()}}
    )


def _sums(index: ProfileIndex, made: IntArray, freed: IntArray, n: int) -> dict[str, IntArray]:
    blocks, in_use = index.profile.tables["memory_blocks"], index.cached(InUse)
    size = blocks["bytes"]
    is_made, is_freed = blocks.has_value("allocated_ns"), blocks.has_value("freed_ns")
    at_peak, at_end = in_use.at(in_use.peak_ns) & is_made, is_made & ~is_freed
    allocated = sum_by_group(made[is_made], size[is_made], n)[:n]
    released = sum_by_group(freed[is_freed], size[is_freed], n)[:n]
    return {
        "allocated_bytes": allocated,
        "freed_bytes": released,
        "net_bytes": allocated - released,
        "peak_bytes": sum_by_group(made[at_peak], size[at_peak], n)[:n],
        "end_bytes": sum_by_group(made[at_end], size[at_end], n)[:n],
        "blocks": np.bincount(made[is_made], minlength=n)[:n],
    }


def _shown(sums: Mapping[str, IntArray]) -> IntArray:
    """Return what allocated or released memory, the greatest first."""
    is_seen = (sums["allocated_bytes"] > 0) | (sums["freed_bytes"] > 0)
    order: IntArray = np.argsort(-sums["peak_bytes"], kind="stable")
    return order[is_seen[order]]


def _labels(index: ProfileIndex, by: By, row: IntArray) -> Mapping[str, Column]:
    ops = index.profile.tables["ops"]

    def texts(column: str, other: str | None = None) -> list[str | None]:
        codes = np.append(ops.names(column).codes, MISSING)[row].tolist()
        categories = ops.names(column).categories
        return [other if code < 0 else categories[code] for code in codes]

    line = optional(np.append(ops["line"], MISSING)[row])
    if by == "module":
        return {"path": categorical(texts("name", "(outside of modules)"))}
    return {
        "name": categorical(texts("name", UNKNOWN_OP)),
        "op_type": categorical(texts("op_type")),
        "cell": categorical(texts("cell")),
        "line": line,
    }
