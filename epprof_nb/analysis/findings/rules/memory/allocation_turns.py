"""Turns of loops that allocate: the `iterations`, else the allocations of one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.between_lines import loop_around
from epprof_nb.analysis.base.places import Places
from epprof_nb.analysis.base.stack_lines import StackLines
from epprof_nb.analysis.memory.block_places import block_stacks
from epprof_nb.analysis.memory.peak import ALWAYS, ALWAYS_BEFORE, InUse
from epprof_nb.analysis.steps.iterations import MIN_ITERATIONS, Iterations, iterations
from epprof_nb.arrays.groups import sum_by_group
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray


def allocation_turns(index: ProfileIndex) -> Iterations:
    """Return the turns of the loop in which memory can grow.

    Comprehensions and loops in files have no statements, and a turn may launch from one line only.
    If no other loop was found, a turn begins with each allocation of the line that allocated most
    of what is in use at the end, if a loop leads there. The last turn is left out: what ends it is
    not known.
    """
    found = index.cached(iterations)
    blocks, in_use = index.profile.tables["memory_blocks"], index.cached(InUse)
    rows = np.flatnonzero(in_use.begin != ALWAYS_BEFORE)
    stays = in_use.end[rows] == ALWAYS
    if len(found.end) >= MIN_ITERATIONS or not stays.any():
        return found
    places, stack = index.cached(Places), index.cached(block_stacks)[rows]
    op = index.tree.rows(blocks["op_id"][rows])
    place, nbytes = places.of(stack, op), blocks["bytes"][rows]
    left = sum_by_group(place[stays], nbytes[stays], places.count + 1)
    of_line = place == int(left.argmax())
    # The line may also have temporary blocks, of other sizes than those that stay.
    mine = np.flatnonzero(of_line & np.isin(nbytes, nbytes[of_line & stays]))
    statement = np.append(index.statement, MISSING)[op[mine]]
    if len(np.unique(statement)) > 1 or _loops_below(index, stack[mine]):
        return found
    if not _is_in_loop(index, int(stack[mine[0]]), int(statement[0])):
        return found
    start = np.sort(in_use.begin[rows[mine]])
    number = np.arange(len(start) - 1)
    return Iterations(number, start[:-1], start[1:], "iteration", int(statement[0]))


def _loops_below(index: ProfileIndex, stack: IntArray) -> bool:
    """Return whether a library that the line of some stacks calls seems to have the loop.

    Then calls of several lines of the library take turns.
    """
    lines = index.cached(StackLines)
    of_calls = lines.of_calls()
    own = lines.own[of_calls]
    is_below = np.isin(own, lines.own[stack]) & (own >= 0) & (own != of_calls)
    _, count = np.unique(of_calls[is_below], return_counts=True)
    return int((count >= MIN_ITERATIONS).sum()) > 1


def _is_in_loop(index: ProfileIndex, stack: int, statement: int) -> bool:
    """Return whether a frame of a stack, or a statement, is in a loop or a comprehension."""
    lines, ops = index.cached(StackLines), index.profile.tables["ops"]
    files, places = lines.file.to_list(), []
    while stack != MISSING:
        if lines.is_own[stack]:
            places.append((files[stack], int(lines.line[stack])))
        stack = int(lines.parent[stack])
    if statement != MISSING:
        (cell,) = ops.names("cell").take(np.array([statement])).to_list()
        places.append((cell, int(ops["line"][statement])))
    sources = index.profile.sources
    return any(loop_around(sources.get(file or "", ""), line) is not None for file, line in places)
