"""Comparison of the lines of the user's code that launched work."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epprof_nb.analysis.base.lines_of_work import Places
from epprof_nb.analysis.base.result_table import (
    ResultTable,
    categorical,
    names_at,
    objects,
    optional,
)
from epprof_nb.analysis.base.source_text import line_text, split_lines
from epprof_nb.analysis.base.stack_lines import StackLines, frame_label
from epprof_nb.analysis.compare.causes_of_changes import LEAST_SHARE, MAX_NAMED, rows_of
from epprof_nb.analysis.compare.comparison_table import (
    Quantity,
    columns_of,
    counts_of,
    in_order,
    tested,
)
from epprof_nb.analysis.compare.significance import CHANGED
from epprof_nb.analysis.compare.times_per_repeat import repeat_numbers, repeats_of
from epprof_nb.analysis.stacks.ownership import CELL
from epprof_nb.arrays.groups import group_codes, sum_by_group
from epprof_nb.arrays.types import MISSING
from epprof_nb.util.format import base_name, in_backticks, signed_duration

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.compare.causes_of_changes import Values
    from epprof_nb.analysis.compare.comparison_table import Test
    from epprof_nb.arrays.types import IntArray

    Key = tuple[str, str, int]
    """File, text, and number among the lines of this text in the file."""


class Line(NamedTuple):
    """A line of a recording that launched work.

    Attributes
    ----------
    file, number
        File or cell, and line from 1.
    text
        Its text, without indentation.
    function
        Function that it is in; None without stacks.
    device_ns, launches
        int64 arrays, one value per repeat: device time, and number of kernels, copies and memsets.
    """

    file: str
    number: int
    text: str
    function: str | None
    device_ns: IntArray
    launches: IntArray


def measure_lines(index: ProfileIndex) -> list[Line]:
    """Return the lines of a recording that launched work, by file and number."""
    activities = index.profile.tables["activities"]
    places, stacks = index.cached(Places), index.cached(StackLines)
    repeats = repeats_of(index)
    repeat = repeat_numbers(index, activities["repeat"])
    rows = np.flatnonzero(index.is_device_work & (repeat >= 0))
    groups, first = group_codes(places.of_activities(rows))
    first = rows[first]
    columns = places.columns(places.of_activities(first))
    cells = groups * repeats + repeat[rows]
    size = len(first) * repeats

    def matrix(values: IntArray) -> IntArray:
        return sum_by_group(cells, values, size)[:-1].reshape(-1, repeats)

    device_ns = matrix(np.maximum(activities["duration_ns"][rows], 0))
    count = matrix(np.ones(len(rows), np.int64))
    shown = ResultTable(columns)
    own = stacks.own[stacks.of_activities()[first]]
    texts = {name: split_lines(text) for name, text in index.profile.sources.items()}
    found = [
        Line(
            str(file or ""),
            number,
            line_text(texts.get(str(file), []), number) or str(name),
            function,
            device_ns[row],
            count[row],
        )
        for row, (file, number, name, function) in enumerate(
            zip(
                shown.values("cell"),
                shown.values("line"),
                shown.values("name"),
                names_at(stacks.function, own).to_list(),
                strict=True,
            )
        )
        if number is not None
    ]
    return sorted(found, key=lambda line: (line.file, line.number))


def compare_lines(
    before: Sequence[ProfileIndex], after: Sequence[ProfileIndex], test: Test
) -> ResultTable:
    """Return the columns of ``compare(old, new).lines``.

    A line is the same on both sides if its file and text are. Cells count as one file, because a
    cell gets another number whenever it runs; other files are known by their path, or by their
    name if only one side has the path. Lines of equal text are matched in their order.
    """
    sides = [[measure_lines(index) for index in side] for side in (before, after)]
    files = [{line.file for lines in side for line in lines} for side in sides]
    common = files[0] & files[1]
    keyed = [[_by_key(lines, common) for lines in side] for side in sides]
    keys = dict.fromkeys(key for side in keyed for lines in side for key in lines)
    quantities, lines = [], []
    for key in keys:
        found = [[lines.get(key) for lines in side] for side in keyed]
        of_sides = tuple(next((line for line in side if line), None) for side in found)
        values = [
            [
                _values(side, indexes, name) if line else []
                for side, indexes, line in zip(found, (before, after), of_sides, strict=True)
            ]
            for name in ("device_ns", "launches")
        ]
        old, new = of_sides
        lines.append(of_sides)
        quantities.append(
            Quantity(
                path="",
                labels={},
                measure="device",
                status="removed" if new is None else "added" if old is None else "matched",
                before=test.pooled(values[0][0]),
                after=test.pooled(values[0][1]),
                counts=(values[1][0], values[1][1]),
                bytes=None,
            )
        )
    results = tested(quantities, test)
    order = in_order(results)
    shown = [lines[i] for i in order]
    either = [new or old for old, new in shown]
    return ResultTable(
        {
            "source": objects([line.text for line in either if line]),
            "function": categorical([line.function for line in either if line]),
            "cell": categorical([line.file for line in either if line]),
            "line_before": optional([old.number if old else MISSING for old, _ in shown]),
            "line_after": optional([new.number if new else MISSING for _, new in shown]),
            "status": categorical([quantities[i].status for i in order]),
            **columns_of(results, order),
            **counts_of([quantities[i] for i in order]),
        }
    )


def largest_line_changes(
    lines: ResultTable, ops: ResultTable, before_ns: float, after_ns: float
) -> str:
    """Return a sentence on the lines whose device time changed most, without lines of these ops.

    Parameters
    ----------
    lines, ops
        Tables ``compare_lines`` and ``compare_ops``.
    before_ns, after_ns
        Elapsed time of a repeat.
    """
    least = LEAST_SHARE * max(before_ns, after_ns)
    changes = [
        f"{in_backticks(row['source'], 60)} "
        f"({frame_label(row['function'], row['cell'], row['line_after'] or row['line_before'])}) "
        f"{signed_duration(change)}"
        for row in lines_inside(lines, ops)
        if abs(change := (row["after_ns"] or 0) - (row["before_ns"] or 0)) >= least
        and row["verdict"] in (*CHANGED, "added", "removed")
    ]
    return f"Device time by line: {', '.join(changes[:MAX_NAMED])}. " if changes else ""


def lines_inside(lines: ResultTable, ops: ResultTable) -> list[Values]:
    """Return the rows of lines that are in functions; other lines are statements, which are ops."""
    statements = {path.rpartition(" / ")[2] for path in ops.values("path") if path}
    return [
        row for row in rows_of(lines)
        if row["function"] not in (None, "<module>") or row["source"] not in statements
    ]  # fmt: skip


def _values(
    lines: Sequence[Line | None], indexes: Sequence[ProfileIndex], name: str
) -> list[IntArray]:
    """Return a measure of each recording; a recording that lacks the line has none."""
    return [
        np.zeros(repeats_of(index), np.int64) if line is None else getattr(line, name)
        for line, index in zip(lines, indexes, strict=True)
    ]


def _by_key(lines: Sequence[Line], common: AbstractSet[str]) -> dict[Key, Line]:
    numbers: dict[tuple[str, str], int] = {}
    found = {}
    for line in lines:
        file = "" if CELL.search(line.file) else line.file
        if file and file not in common:
            file = base_name(file)
        number = numbers[file, line.text] = numbers.get((file, line.text), -1) + 1
        found[file, line.text, number] = line
    return found
