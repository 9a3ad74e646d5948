"""by_line: device and host time of each line of code that launched work.

A line is one of a Python stack, or a marked statement of a profiled cell. The work of a launch
counts for every line in its stack and around its op, and as own work for the innermost line.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epprof_nb.analysis.base.activity_sums import activity_sums
from epprof_nb.analysis.base.breakdown_columns import HIGH_PERCENTILE, MeasureColumns
from epprof_nb.analysis.base.executions import executions
from epprof_nb.analysis.base.first_of_launch import first_of_launch
from epprof_nb.analysis.base.line_chains import Lines, LineTree
from epprof_nb.analysis.base.op_totals import totals
from epprof_nb.analysis.base.result_table import OptionalColumn, ResultTable, optional
from epprof_nb.analysis.base.sampled_time import sampled_time, where_sampled
from epprof_nb.analysis.base.stack_lines import StackLines
from epprof_nb.analysis.base.unknown_device_times import missing_if_unknown
from epprof_nb.analysis.utilisation.blocking_calls import is_wait
from epprof_nb.arrays.groups import group_codes, sum_by_group
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from epprof_nb.analysis.base.attribution import Attribution
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.base.op_totals import Totals
    from epprof_nb.analysis.base.result_table import Column
    from epprof_nb.arrays.types import IntArray


@missing_if_unknown
def line_table(
    index: ProfileIndex,
    *,
    inclusive: bool = True,
    attribution: Attribution = "launch",
    library: bool = False,
) -> ResultTable:
    """Return the columns of `Profile.by_line`."""
    lines = Lines(index, library=library)
    tree = LineTree(index, lines)
    owner = index.tree.nearest_ancestor(lines.of_op >= 0)
    statements = totals(
        index, lines.of_op, owner, attribution=attribution, only=("activities", "device_ns")
    )
    sums, calls = _with_stacks(index, lines, tree, statements, attribution)
    is_shown = sums.shown | (calls.waits[:-1] > 0)
    # A line without a row would lose its time, which belongs to the line that called it.
    has_row = np.append(is_shown, np.False_)[lines.of_stack]
    sampled = sampled_time(index, np.where(has_row, lines.of_stack, MISSING), lines.count)
    order = lines.in_source_order()
    order = order[is_shown[order]]
    last = int(sums.has_unattributed)
    columns = MeasureColumns(index.profile, lines.of_op, sums, order)
    executed = None
    if attribution != "launch":
        executed = executions(
            index, lines.of_op >= 0, sums.device_ns_of_op, attribution=attribution
        )
    unmarked = np.append(lines.statement[order] == MISSING, np.ones(last, np.bool_))

    def marked(values: Mapping[str, Column]) -> dict[str, Column]:
        """Return columns of statements, which other lines lack."""
        found: dict[str, Column] = {}
        for name, column in values.items():
            if isinstance(column, OptionalColumn):
                found[name] = OptionalColumn(column.numbers, column.is_missing | unmarked)
            elif isinstance(column, np.ndarray):
                found[name] = OptionalColumn(np.where(unmarked, MISSING, column), unmarked)
        return found

    def of_lines(values: IntArray) -> IntArray:
        return columns.column(values, int(values[-1]))

    place = lines.columns(index, order, none=bool(last))
    if not inclusive:
        return ResultTable(
            {
                **place,
                **marked({"count": columns.count(executed)}),
                **columns.self_device(),
                **marked({"self_host_ns": columns.host(sums.own_host_ns)}),
                "self_sampled_ns": where_sampled(index.profile, of_lines(sampled.own)),
                "self_launches": optional(of_lines(calls.own_launches)),
                "self_waits": optional(of_lines(calls.own_waits)),
                "self_wait_ns": optional(of_lines(calls.own_wait_ns)),
            }
        )
    return ResultTable(
        {
            **place,
            **marked({"count": columns.count(executed)}),
            **columns.device(),
            **marked(columns.device_per_execution(executed)),
            **marked({"host_ns": columns.host(sums.host_ns)}),
            **marked(columns.host_per_execution(HIGH_PERCENTILE)),
            "sampled_ns": where_sampled(index.profile, of_lines(sampled.inclusive)),
            "launches": optional(of_lines(calls.launches)),
            "waits": optional(of_lines(calls.waits)),
            "wait_ns": optional(of_lines(calls.wait_ns)),
        }
    )


class _Calls(NamedTuple):
    """Launches and waits of each line, inclusive and own; the last value has those of no line."""

    launches: IntArray
    waits: IntArray
    wait_ns: IntArray
    own_launches: IntArray
    own_waits: IntArray
    own_wait_ns: IntArray


def _with_stacks(
    index: ProfileIndex, lines: Lines, tree: LineTree, statements: Totals, attribution: Attribution
) -> tuple[Totals, _Calls]:
    """Return the sums over the lines, with the host times of the statements."""
    tables, stacks, n = index.profile.tables, index.cached(StackLines), lines.count
    stack = stacks.of_activities(attribution)
    work = _Sums(tree, stack, index.attributed_op(attribution), n)
    measures = activity_sums(index, work.pair, work.pairs)
    inclusive = {name: work.inclusive(values[:-1]) for name, values in measures.items()}
    own = {name: work.own(values[:-1]) for name, values in measures.items()}
    waits = np.flatnonzero(index.cached(is_wait))
    calls = tables["api_calls"]
    waiting = _Sums(tree, stacks.of_calls()[waits], index.call_op[waits], n)
    wait_ns = np.maximum(calls["end_ns"][waits] - calls["start_ns"][waits], 0)
    launched = work.counts(index.cached(first_of_launch).astype(np.int64))
    waited = waiting.counts(np.ones(len(waits), np.int64))
    wait_sums = waiting.counts(wait_ns)
    found = _Calls(
        work.inclusive(launched), waiting.inclusive(waited), waiting.inclusive(wait_sums),
        work.own(launched), waiting.own(waited), waiting.own(wait_sums),
    )  # fmt: skip

    def padded(values: IntArray) -> IntArray:
        return np.append(values, np.zeros(n - len(values), np.int64))

    sums = replace(
        statements,
        shown=(padded(statements.count) > 0) | (inclusive["activities"][:-1] > 0),
        count=padded(statements.count),
        measures={name: values[:-1] for name, values in inclusive.items()},
        own_measures={name: values[:-1] for name, values in own.items()},
        host_ns=padded(statements.host_ns),
        own_host_ns=padded(statements.own_host_ns),
        unattributed={name: int(values[-1]) for name, values in own.items()},
    )
    return sums, found


class _Sums:
    """Sums over the lines of rows that have a stack and an op each."""

    def __init__(
        self,
        tree: LineTree,
        stack: np.ndarray,
        op: np.ndarray,
        count: int,
    ) -> None:
        self.pair, first = group_codes(stack, tree.of_op[op])
        self.pairs = len(first)
        self._chains = tree.chains(stack[first], op[first])
        self._count = count

    def counts(self, values: IntArray) -> IntArray:
        """Return sums over the rows of each pair."""
        return sum_by_group(self.pair, values, self.pairs)[:-1]

    def inclusive(self, of_pair: IntArray) -> IntArray:
        """Return sums over the pairs that have each line; the last one is of those without any."""
        sums = sum_by_group(self._chains.line, of_pair[self._chains.pair], self._count)
        sums[-1] = of_pair[self._chains.innermost == MISSING].sum()
        return sums

    def own(self, of_pair: IntArray) -> IntArray:
        """Return sums over the pairs whose innermost line is each one, likewise."""
        return sum_by_group(self._chains.innermost, of_pair, self._count)
