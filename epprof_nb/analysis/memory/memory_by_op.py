"""by_op, by_line and by_module of memory: bytes by what allocated and released them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.op_arguments import argument_at, given_arguments
from epprof_nb.analysis.base.result_table import ResultTable, argument_column, categorical, optional
from epprof_nb.analysis.frameworks.training_phases import modules
from epprof_nb.analysis.memory.block_places import block_stacks, code_lines, release_stacks
from epprof_nb.analysis.memory.memory_at import UNKNOWN_OP
from epprof_nb.analysis.memory.memory_peak import InUse
from epprof_nb.arrays.groups import group_codes, sum_by_group
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray


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


def memory_by_op(index: ProfileIndex, *, args: Iterable[str] = ()) -> ResultTable:
    """Return the columns of `Profile.by_op` with ``memory=True``."""
    ops, blocks, tree = (
        index.profile.tables["ops"],
        index.profile.tables["memory_blocks"],
        index.tree,
    )
    names, types, cells = ops.names("name"), ops.names("op_type"), ops.names("cell")
    given = given_arguments(ops, args)
    codes = (names.codes, types.codes, cells.codes, ops["line"], *(a.codes for a in given))
    groups, first = group_codes(*codes)
    n = len(first)
    every = np.append(np.arange(len(ops)), len(ops))  # the last one stands for none
    made, freed = (every[tree.rows(blocks[name])] for name in ("op_id", "freed_op_id"))
    of_op = _sums(index, made, freed, len(ops) + 1)
    # What an op inside another one of the same row allocates counts once.
    outermost = np.where(tree.is_outermost(groups), groups, MISSING)
    sums = {}
    for name, values in of_op.items():
        inclusive = sum_by_group(outermost, tree.subtree_sum(values[:-1]), n)[:n]
        sums[name] = np.append(inclusive, values[-1])
    own = sum_by_group(groups, of_op["allocated_bytes"][:-1], n)[:n]
    sums["self_allocated_bytes"] = np.append(own, of_op["allocated_bytes"][-1])
    order = _shown(sums)
    is_op = order < n
    rows, last = first[order[is_op]], int((~is_op).sum())
    order = np.append(order[is_op], order[~is_op])  # what has no op comes last
    return ResultTable(
        {
            "name": categorical([*names.take(rows).to_list(), *[UNKNOWN_OP] * last]),
            "op_type": categorical([*types.take(rows).to_list(), *[None] * last]),
            "cell": categorical([*cells.take(rows).to_list(), *[None] * last]),
            "line": optional([*ops["line"][rows], *[MISSING] * last]),
            **{f"arg_{a.name}": argument_column(argument_at(a, rows, last)) for a in given},
            **{name: values[order] for name, values in sums.items()},
        }
    )


def memory_by_module(index: ProfileIndex) -> ResultTable:
    """Return the columns of `Profile.by_module` with ``memory=True``."""
    ops, blocks = index.profile.tables["ops"], index.profile.tables["memory_blocks"]
    owner, names = index.cached(modules), ops.names("name")
    has_owner = np.flatnonzero(owner != MISSING)
    codes, first = group_codes(names.codes[owner[has_owner]])
    n = len(first)
    groups = np.full(len(ops) + 1, n, np.int64)  # the last group has no owner
    groups[has_owner] = codes
    sums = _sums(index, groups[index.tree.rows(blocks["op_id"])],
                 groups[index.tree.rows(blocks["freed_op_id"])], n + 1)  # fmt: skip
    order = _shown(sums)
    paths = [*names.take(owner[has_owner[first]]).to_list(), "(outside of modules)"]
    return ResultTable(
        {
            "path": categorical([paths[row] for row in order.tolist()]),
            **{name: values[order] for name, values in sums.items()},
        }
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
