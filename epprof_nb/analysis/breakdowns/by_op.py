"""by_op: device and host time by op."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.breakdown_columns import HIGH_PERCENTILE, MeasureColumns
from epprof_nb.analysis.base.executions import executions
from epprof_nb.analysis.base.op_arguments import argument_at, given_arguments
from epprof_nb.analysis.base.op_totals import Totals, totals
from epprof_nb.analysis.base.op_tree import NO_OP
from epprof_nb.analysis.base.result_table import (
    ResultTable,
    argument_column,
    categorical,
    optional,
)
from epprof_nb.analysis.base.unknown_device_times import missing_if_unknown
from epprof_nb.arrays.groups import group_codes
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from epprof_nb.analysis.base.attribution import Attribution
    from epprof_nb.analysis.base.executions import Executions
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import BoolArray


@missing_if_unknown
def op_table(
    index: ProfileIndex, *, args: Iterable[str] = (), attribution: Attribution = "launch"
) -> ResultTable:
    """Return the columns of `Profile.by_op`."""
    profile = index.profile
    ops = profile.tables["ops"]
    names, types, cells = ops.names("name"), ops.names("op_type"), ops.names("cell")
    given = given_arguments(ops, args)
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
            **{f"arg_{a.name}": argument_column(argument_at(a, rows, last)) for a in given},
            "count": columns.count(executed),
            **columns.device_and_self(),
            **columns.device_per_execution(executed),
            "host_ns": columns.host(sums.host_ns),
            "self_host_ns": columns.host(sums.own_host_ns),
            **columns.host_per_execution(HIGH_PERCENTILE),
        }
    )


def _executions(
    index: ProfileIndex, counted: BoolArray, sums: Totals, attribution: Attribution
) -> Executions | None:
    """Return the executions of ops with their replays; None if replays do not count."""
    if attribution == "launch":
        return None
    return executions(index, counted, sums.device_ns_of_op, attribution=attribution)
