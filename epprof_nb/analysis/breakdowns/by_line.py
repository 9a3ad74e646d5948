"""by_line: device and host time of each line of code that launched work.

A line is one of a Python stack, or a marked statement of a profiled cell. The work of a launch is
that of every line in its stack and around its op, and the own work of the innermost line.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epprof_nb.analysis.base.activity_sums import activity_sums
from epprof_nb.analysis.base.attribution import attributed_op_rows
from epprof_nb.analysis.base.executions import executions
from epprof_nb.analysis.base.measures import MeasureColumns
from epprof_nb.analysis.base.op_paths import OpPaths, Steps
from epprof_nb.analysis.base.op_totals import totals
from epprof_nb.analysis.base.result_table import (
    OptionalColumn,
    ResultTable,
    categorical,
    objects,
    optional,
    values_at,
)
from epprof_nb.analysis.base.source_text import line_text, split_lines
from epprof_nb.analysis.base.stack_lines import StackLines
from epprof_nb.analysis.breakdowns.first_of_launch import first_of_launch
from epprof_nb.analysis.utilisation.idle_causes import is_wait
from epprof_nb.arrays.ancestors import nearest_ancestor
from epprof_nb.arrays.groups import group_codes, sum_by_group
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from epprof_nb.analysis.base.attribution import Attribution
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.base.op_totals import Totals
    from epprof_nb.analysis.base.result_table import Column
    from epprof_nb.arrays.types import IntArray

NO_LINE = "(no line)"
"""Source of the row of activities without a line."""
_MAX_DEPTH = 2_000
"""Statements nested more deeply count for the one at this depth: a bound for damaged files."""


class Lines:
    """The lines of a profile: of its marked statements, then of its stacks.

    Parameters
    ----------
    index
        Index of the profile.
    library
        Whether to include the lines of libraries.

    Attributes
    ----------
    of_op
        int64 array, shape ``(ops,)``: the line of each statement; `MISSING` for other ops.
    of_stack
        int64 array, shape ``(stacks,)``: the line of each frame; `MISSING` for those not included.
    file, function
        Tuples of names, one per line; the function is None for statements without a stack.
    number
        int64 array, one value per line: its number in the file.
    statement
        int64 array, one value per line: the first op of the statement; `MISSING` for other lines.
    """

    def __init__(self, index: ProfileIndex, *, library: bool = False) -> None:
        ops, stacks = index.profile.tables["ops"], index.cached(StackLines)
        cells, files, functions = ops.names("cell"), stacks.file, stacks.function
        names = dict[str, int]()
        codes = [
            np.array([*(names.setdefault(n, len(names)) for n in column.categories), MISSING])
            for column in (cells, files)
        ]
        is_line = (cells.codes >= 0) & (ops["line"] >= 0) & ~ops.names("op_type").equals("cell")
        statements = np.flatnonzero(is_line)
        shown = np.flatnonzero(stacks.is_own | library)
        groups, first = group_codes(
            np.append(codes[0][cells.codes[statements]], codes[1][files.codes[shown]]),
            np.append(ops["line"][statements], stacks.line[shown]),
        )
        self.count = len(first)
        self.of_op = np.full(len(ops), MISSING, np.int64)
        self.of_op[statements] = groups[: len(statements)]
        self.of_stack = np.full(len(stacks), MISSING, np.int64)
        self.of_stack[shown] = groups[len(statements) :]
        self.statement = np.append(statements, np.full(len(shown), MISSING))[first]
        known = [*names]
        self._file_codes = np.append(
            codes[0][cells.codes[statements]], codes[1][files.codes[shown]]
        )[first]
        self.file = tuple(known[code] if code >= 0 else "" for code in self._file_codes.tolist())
        self.number = np.append(ops["line"][statements], stacks.line[shown])[first]
        frame = np.full(self.count + 1, MISSING, np.int64)
        frame[self.of_stack[shown][::-1]] = shown[::-1]  # of several frames, the first
        texts = functions.take(frame[:-1][frame[:-1] >= 0]).to_list()
        self.function = np.full(self.count, None, object)
        self.function[frame[:-1] >= 0] = texts

    def in_source_order(self) -> IntArray:
        """Return the lines by their files, in the order of these, and by their numbers."""
        by_file = group_codes(self._file_codes)[0] if self.count else self._file_codes
        return np.lexsort((self.number, by_file))

    def sources(self, index: ProfileIndex) -> list[str]:
        """Return the text of each line; the name of the statement or the function if unknown."""
        texts = {name: split_lines(text) for name, text in index.profile.sources.items()}
        names = index.profile.tables["ops"].names("name")
        of_statement = np.append(names.codes, MISSING)[self.statement]
        return [
            line_text(texts.get(file, []), number)
            or (names.categories[code] if code >= 0 else function)
            or ""
            for file, number, code, function in zip(
                self.file,
                self.number.tolist(),
                of_statement.tolist(),
                self.function.tolist(),
                strict=True,
            )
        ]


class Chains(NamedTuple):
    """The lines of pairs of a stack and an op.

    Attributes
    ----------
    pair, line
        int64 arrays: each line of each pair, once.
    innermost
        int64 array, one value per pair: the line of the stack, else of the op; `MISSING` for none.
    """

    pair: IntArray
    line: IntArray
    innermost: IntArray


class _Tree:
    """The lines around each op and stack: stacks, then the distinct nests of statements."""

    def __init__(self, index: ProfileIndex, lines: Lines) -> None:
        stacks, tree = index.cached(StackLines), index.tree
        paths = OpPaths(Steps((lines.of_op,), tree.parent, tree.depth), _MAX_DEPTH)
        self.of_op = np.append(paths.of_op, MISSING)
        n = len(stacks)
        self.of_op[:-1] += n
        of_path = values_at(lines.of_op, paths.row)
        above = np.where(paths.parent >= 0, paths.parent + n, MISSING)
        self.parent = np.concatenate([stacks.parent, above, [MISSING]])
        self.line = np.concatenate([lines.of_stack, of_path, [MISSING]])
        owner = nearest_ancestor(self.parent[:-1], self.line[:-1] >= 0)
        self.innermost = np.append(values_at(self.line[:-1], owner), MISSING)

    def chains(self, stack: IntArray, op: IntArray) -> Chains:
        """Return the lines of pairs of a stack and an op."""
        innermost = self.innermost[stack]
        node = self.of_op[op]
        innermost = np.where(innermost >= 0, innermost, self.innermost[node])
        pairs, lines = [], []
        for start in (stack, node):
            at, pair = start.copy(), np.arange(len(start))
            while len(at):
                known = self.line[at] >= 0
                pairs.append(pair[known])
                lines.append(self.line[at[known]])
                at = self.parent[at]
                pair, at = pair[at >= 0], at[at >= 0]
        none = np.empty(0, np.int64)
        pair, line = np.concatenate([none, *pairs]), np.concatenate([none, *lines])
        first = group_codes(pair, line)[1]
        return Chains(pair[first], line[first], innermost)


def line_table(
    index: ProfileIndex,
    *,
    inclusive: bool = True,
    attribution: Attribution = "launch",
    library: bool = False,
) -> ResultTable:
    """Return the columns of `Profile.by_line`."""
    lines = Lines(index, library=library)
    tree = _Tree(index, lines)
    statements = totals(
        index, lines.of_op, index.tree.nearest_ancestor(lines.of_op >= 0), attribution=attribution
    )
    sums, calls = _with_stacks(index, lines, tree, statements, attribution)
    is_shown = sums.shown | (calls.waits[:-1] > 0)
    order = lines.in_source_order()
    order = order[is_shown[order]]
    last = int(sums.has_unattributed)
    columns = MeasureColumns(index.profile, lines.of_op, sums, order)
    executed = None
    if attribution != "launch":
        executed = executions(
            index, lines.of_op >= 0, sums.device_ns_of_op, attribution=attribution
        )
    unmarked = np.append(lines.statement[order] == MISSING, np.zeros(last, np.bool_))

    def marked(values: Mapping[str, Column]) -> dict[str, Column]:
        """Return columns of statements, which other lines lack."""
        return {
            name: OptionalColumn(np.where(unmarked, MISSING, column), unmarked)
            for name, column in values.items()
            if isinstance(column, np.ndarray)
        }

    def of_lines(values: IntArray) -> IntArray:
        return columns.column(values, int(values[-1]))

    texts = lines.sources(index)
    place: dict[str, Column] = {
        "cell": categorical([*(lines.file[i] or None for i in order.tolist()), *[None] * last]),
        "line": optional([*lines.number[order], *[MISSING] * last]),
        "source": objects([*(texts[i] for i in order.tolist()), *[NO_LINE] * last]),
        "function": categorical([*lines.function[order].tolist(), *[None] * last]),
    }
    if not inclusive:
        return ResultTable(
            {
                **place,
                **marked({"count": columns.count(executed)}),
                **columns.self_device(),
                **marked({"self_host_ns": columns.column(sums.own_host_ns)}),
                "self_launches": of_lines(calls.own_launches),
                "self_waits": of_lines(calls.own_waits),
                "self_wait_ns": of_lines(calls.own_wait_ns),
            }
        )
    return ResultTable(
        {
            **place,
            **marked({"count": columns.count(executed)}),
            **columns.device(),
            **marked(columns.device_per_execution(executed)),
            **marked({"host_ns": columns.column(sums.host_ns)}),
            **marked(columns.host_per_execution(95)),
            "launches": of_lines(calls.launches),
            "waits": of_lines(calls.waits),
            "wait_ns": of_lines(calls.wait_ns),
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
    index: ProfileIndex, lines: Lines, tree: _Tree, statements: Totals, attribution: Attribution
) -> tuple[Totals, _Calls]:
    """Return the sums over the lines, with the host times of the statements."""
    tables, stacks, n = index.profile.tables, index.cached(StackLines), lines.count
    stack = stacks.of_activities(attribution)
    op = attributed_op_rows(tables["activities"], index.tree, attribution)
    work = _Sums(tree, stack, op, n)
    measures = activity_sums(index, work.pair, work.pairs)
    inclusive = {name: work.inclusive(values[:-1]) for name, values in measures.items()}
    own = {name: work.own(values[:-1]) for name, values in measures.items()}
    waits = np.flatnonzero(index.cached(is_wait))
    calls = tables["api_calls"]
    waiting = _Sums(tree, stacks.of_calls()[waits], index.call_op[waits], n)
    wait_ns = np.maximum(calls["end_ns"][waits] - calls["start_ns"][waits], 0)
    launched = work.counts(first_of_launch(index).astype(np.int64))
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
        tree: _Tree,
        stack: np.ndarray,
        op: np.ndarray,
        count: int,
    ) -> None:
        stack, op = stack.astype(np.int64), op.astype(np.int64)
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
