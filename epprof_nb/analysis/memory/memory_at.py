"""memory_at: what holds the memory at some time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.result_table import ResultTable, categorical, optional
from epprof_nb.analysis.frameworks.training_phases import modules
from epprof_nb.analysis.memory.block_categories import block_categories
from epprof_nb.analysis.memory.block_places import block_stacks, code_lines
from epprof_nb.analysis.memory.memory_peak import ALWAYS_BEFORE, InUse, moment
from epprof_nb.analysis.memory.memory_without_blocks import BEFORE, without_timeline
from epprof_nb.arrays.groups import group_codes, sum_by_group
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.names import CategoryColumn

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray

AT_END = "(as at the end of the profile)"
"""Name of what a pool holds of which only the end is known."""
UNKNOWN_OP = "(op unknown)"


def holder_table(index: ProfileIndex, at: str | int = "peak") -> ResultTable:
    """Return the columns of `Profile.memory_at`."""
    blocks = index.profile.tables["memory_blocks"]
    rows = np.flatnonzero(index.cached(InUse).at(moment(index, at)))
    groups, holders = holders_of(index, rows)
    n = len(holders)
    size = sum_by_group(groups, blocks["bytes"][rows], n)[:n]
    order = np.argsort(-size, kind="stable")
    labels = holders.take(order)
    return ResultTable(
        {
            **{name: labels.column(name) for name in labels.columns},
            "bytes": size[order],
            "requested_bytes": sum_by_group(groups, blocks["requested_bytes"][rows], n)[:n][order],
            "blocks": np.bincount(groups, minlength=n)[order],
        }
    )


def holders_of(index: ProfileIndex, rows: IntArray) -> tuple[IntArray, ResultTable]:
    """Return the number of the holder of each of some blocks, and one row per holder."""
    blocks, ops = index.profile.tables["memory_blocks"], index.profile.tables["ops"]
    op = index.tree.rows(blocks["op_id"][rows])
    code = code_lines(index, index.cached(block_stacks)[rows], op)
    has_line = code.line != MISSING
    module = np.append(index.cached(modules), MISSING)[op]
    names = np.append(ops.names("name").codes, MISSING)
    is_earlier = index.cached(InUse).begin[rows] == ALWAYS_BEFORE
    pools, categories = blocks.names("pool"), index.cached(block_categories)
    # A row is what a reader can tell apart: not each call of a module, statement or op.
    groups, first = group_codes(
        pools.codes[rows], blocks["device_id"][rows], categories.codes[rows], names[module],
        *code.keys(), names[op], (is_earlier & (names[op] == MISSING)).astype(np.int64),
        np.where(has_line, MISSING, blocks.names("earlier_cell").codes[rows]),
        np.where(has_line, MISSING, blocks["earlier_line"][rows]),
    )  # fmt: skip
    code, has_line = code.take(first), has_line[first]
    line = np.where(has_line, code.line, blocks["earlier_line"][rows[first]])
    earlier = blocks.names("earlier_cell").take(rows[first]).to_list()
    cells = zip(code.cell.to_list(), earlier, has_line.tolist(), strict=True)
    return groups, ResultTable(
        {
            "pool": pools.take(rows[first]),
            "device_id": optional(blocks["device_id"][rows[first]]),
            "category": categories.take(rows[first]),
            "module": _taken(ops.names("name"), module[first]),
            "cell": categorical([now if has or not then else then for now, then, has in cells]),
            "line": optional(line),
            "function": categorical(code.functions(index)),
            "caller_cell": code.caller_cell,
            "caller_line": optional(code.caller_line),
            "name": categorical(_labels(index, rows[first], op[first])),
        }
    )


def _labels(index: ProfileIndex, rows: IntArray, op: IntArray) -> list[str | None]:
    names = _taken(index.profile.tables["ops"].names("name"), op).to_list()
    is_at_end = without_timeline(index)[rows].tolist()
    is_earlier = (index.cached(InUse).begin[rows] == ALWAYS_BEFORE).tolist()
    return [
        name if name is not None else AT_END if at_end else BEFORE if earlier else UNKNOWN_OP
        for name, at_end, earlier in zip(names, is_at_end, is_earlier, strict=True)
    ]


def _taken(names: CategoryColumn, rows: IntArray) -> CategoryColumn:
    codes = np.append(names.codes, np.int32(MISSING))[rows].astype(np.int32)
    return CategoryColumn(codes, names.categories)
