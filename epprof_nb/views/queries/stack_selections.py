"""Selections of the events of a row by line, or of a node by Python stack."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.analysis.base.line_chains import Lines
from epprof_nb.analysis.base.stack_lines import StackLines
from epprof_nb.analysis.utilisation.blocking_calls import is_wait
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.schema import DEVICE_KINDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import BoolArray, IntArray

Selection = dict[str, Any]
"""``prefix`` and ``equals`` of a query; see `epprof_nb.views.queries.selected_events`."""


def used_stacks(index: ProfileIndex) -> tuple[BoolArray, BoolArray]:
    """Return which stacks launched device work, and which waited, for `ProfileIndex.cached`."""
    lines = index.cached(StackLines)
    found = []
    for stacks, rows in (
        (lines.of_activities(), index.is_device_work),
        (lines.of_calls(), index.cached(is_wait)),
    ):
        is_used = np.zeros(len(lines) + 1, np.bool_)
        is_used[stacks[rows]] = True
        found.append(is_used[:-1])
    return found[0], found[1]


def line_selections(
    index: ProfileIndex, cells: Sequence[str | None], lines: Sequence[int | None]
) -> list[Selection | None]:
    """Return the selection of each row by line; None for statements, which are ops.

    A line of Python stacks selects the activities that code below it launched, or, without any, the
    API calls that waited below it.

    Parameters
    ----------
    index
        Index of the profile.
    cells, lines
        Cell or file, and line, of the rows; None in the row of activities without a line.
    """
    of_line = index.cached(_selections_by_line)
    return [of_line.get(place) for place in zip(cells, lines, strict=True)]


def _selections_by_line(index: ProfileIndex) -> dict[tuple[str | None, int | None], Selection]:
    stacks = index.cached(StackLines)
    if not len(stacks):
        return {}
    lines = Lines(index)
    launched, waited = index.cached(used_stacks)
    found: dict[tuple[str | None, int | None], Selection] = {}
    for prefix, is_used in (("api", waited), ("act", launched)):
        line, stack = _stacks_below(stacks, lines.of_stack, np.flatnonzero(is_used))
        of_line, first = np.unique(line, return_index=True)
        for number, ids in zip(of_line.tolist(), np.split(stack, first[1:]), strict=False):
            if lines.statement[number] == MISSING:
                place = lines.file[number], int(lines.number[number])
                found[place] = {"prefix": prefix, "equals": {"stack_id": ids.tolist()}}
    without = np.flatnonzero(stacks.own[:-1] == MISSING)
    equals: dict[str, Any] = {
        "stack_id": [None, *without[launched[without]].tolist()], "kind": list(DEVICE_KINDS),
    }  # fmt: skip
    if (lines.statement != MISSING).any():
        equals["op_id"] = None
    found[None, None] = {"prefix": "act", "equals": equals}
    return found


def _stacks_below(
    stacks: StackLines, of_stack: IntArray, used: IntArray
) -> tuple[IntArray, IntArray]:
    """Return each line of each used stack, once, as two arrays in the order of the lines."""
    at, stack = used, used
    pairs = []
    while len(at):
        line = of_stack[at]
        pairs.append(np.stack([line, stack])[:, line >= 0])
        at = stacks.parent[at]
        at, stack = at[at >= 0], stack[at >= 0]
    line, stack = np.unique(np.concatenate([np.empty((2, 0), np.int64), *pairs], 1), axis=1)
    return line, stack
