"""by_op and by_line: device and host time by op, and by line of the profiled cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.executions import executions
from epprof_nb.analysis.base.measures import MeasureColumns
from epprof_nb.analysis.base.op_totals import Totals, totals
from epprof_nb.analysis.base.op_tree import NO_OP
from epprof_nb.analysis.base.result_table import (
    ResultTable,
    argument_column,
    categorical,
    objects,
    optional,
)
from epprof_nb.analysis.base.source_lines import line_text, split_lines
from epprof_nb.arrays.groups import group_codes
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.op_args import Argument, argument_names, arguments

if TYPE_CHECKING:
    from collections.abc import Iterable

    from epprof_nb.analysis.base.attribution import Attribution
    from epprof_nb.analysis.base.executions import Executions
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.base.result_table import Column
    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.data.profile_data import ProfileData
    from epprof_nb.data.table import Table

NO_LINE = "(no line)"
"""Source of the row of activities without a statement."""


def op_table(
    index: ProfileIndex, *, args: Iterable[str] = (), attribution: Attribution = "launch"
) -> ResultTable:
    """Return the columns of `Profile.by_op`."""
    profile = index.profile
    ops = profile.tables["ops"]
    names, types, cells = ops.names("name"), ops.names("op_type"), ops.names("cell")
    given = _arguments(ops, args)
    groups, first = group_codes(
        names.codes, types.codes, cells.codes, ops["line"], *(a.codes for a in given)
    )
    sums = totals(index, groups, np.arange(len(ops)), attribution=attribution)
    order = sums.longest_first()
    rows, last = first[order], int(sums.has_unattributed)
    columns = MeasureColumns(profile, groups, sums, order)
    executed = _executions(index, groups >= 0, sums, attribution)
    return ResultTable(
        {
            "name": categorical([*names.take(rows).to_list(), *[NO_OP] * last]),
            "op_type": categorical([*types.take(rows).to_list(), *[None] * last]),
            "cell": categorical([*cells.take(rows).to_list(), *[None] * last]),
            "line": optional([*ops["line"][rows], *[MISSING] * last]),
            **{f"arg_{a.name}": argument_column(_at(a, rows, last)) for a in given},
            "count": columns.count(executed),
            **columns.device_and_self(),
            **columns.device_per_execution(executed),
            "host_ns": columns.column(sums.host_ns),
            "self_host_ns": columns.column(sums.own_host_ns),
            **columns.host_per_execution(95),
        }
    )


def _arguments(ops: Table, names: Iterable[str]) -> list[Argument]:
    """Return single arguments of all ops.

    Raises
    ------
    ValueError
        If no op has an argument of one of the names.
    """
    names = [names] if isinstance(names, str) else list(names)
    texts, every_row = ops.names("args"), np.arange(len(ops))
    found = arguments(texts, every_row, names)
    for argument in found:
        if not len(argument.distinct):
            known = ", ".join(map(repr, argument_names(texts, every_row)[:20])) or "none"
            raise ValueError(
                f"no op of this profile has an argument {argument.name!r}; arguments are: {known}. "
                'Ops get arguments by `with epprof_nb.op("name", argument=value):`.'
            )
    return found


def _at(argument: Argument, rows: IntArray, last: int) -> Argument:
    """Return an argument at `rows`, followed by a missing value for a last row."""
    codes = np.append(argument.codes[rows], np.full(last, MISSING, np.int32))
    return Argument(argument.name, codes, argument.distinct)


def line_table(
    index: ProfileIndex, *, inclusive: bool = True, attribution: Attribution = "launch"
) -> ResultTable:
    """Return the columns of `Profile.by_line`."""
    profile = index.profile
    ops, tree = profile.tables["ops"], index.tree
    cells, lines = ops.names("cell"), ops["line"]
    is_line = (cells.codes >= 0) & (lines >= 0) & ~ops.names("op_type").equals("cell")
    groups, first = group_codes(
        np.where(is_line, cells.codes, MISSING), np.where(is_line, lines, MISSING)
    )
    # Other ops form a group too: drop it and renumber the groups of statements.
    keep = is_line[first]
    first = first[keep]
    groups = np.where(keep, np.cumsum(keep) - 1, MISSING)[groups]
    sums = totals(index, groups, tree.nearest_ancestor(is_line), attribution=attribution)
    by_source = np.lexsort((lines[first], group_codes(cells.codes[first])[0]))
    order = by_source[sums.shown[by_source]]
    rows, last = first[order], int(sums.has_unattributed)
    columns = MeasureColumns(profile, groups, sums, order)
    executed = _executions(index, is_line, sums, attribution)
    return ResultTable(
        {
            "cell": categorical([*cells.take(rows).to_list(), *[None] * last]),
            "line": optional([*lines[rows], *[MISSING] * last]),
            "source": objects([*_sources(profile, rows), *[NO_LINE] * last]),
            "count": columns.count(executed),
            **(_inclusive(columns, sums, executed) if inclusive else _self(columns, sums)),
        }
    )


def _executions(
    index: ProfileIndex, counted: BoolArray, sums: Totals, attribution: Attribution
) -> Executions | None:
    """Return the executions of ops with their replays; None if replays do not count."""
    if attribution == "launch":
        return None
    return executions(index, counted, sums.device_ns_of_op, attribution=attribution)


def _inclusive(
    columns: MeasureColumns, sums: Totals, executed: Executions | None
) -> dict[str, Column]:
    return {
        **columns.device(),
        **columns.device_per_execution(executed),
        "host_ns": columns.column(sums.host_ns),
        **columns.host_per_execution(95),
    }


def _self(columns: MeasureColumns, sums: Totals) -> dict[str, Column]:
    return {**columns.self_device(), "self_host_ns": columns.column(sums.own_host_ns)}


def _sources(profile: ProfileData, rows: IntArray) -> list[str]:
    """Return the source text of the statements at `rows`, or their names if it is unknown."""
    ops = profile.tables["ops"]
    sources = {cell: split_lines(source) for cell, source in profile.sources.items()}
    return [
        line_text(sources.get(cell or "", []), line) or name or ""
        for line, cell, name in zip(
            ops["line"][rows].tolist(),
            ops.names("cell").take(rows).to_list(),
            ops.names("name").take(rows).to_list(),
            strict=True,
        )
    ]
