"""Turns of loops that allocate: the `iterations`, else the allocations of one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.between_lines import Loop, loop_around
from epprof_nb.analysis.base.lines_of_work import Places
from epprof_nb.analysis.base.stack_lines import StackLines
from epprof_nb.analysis.memory.block_places import block_stacks
from epprof_nb.analysis.memory.memory_peak import ALWAYS, ALWAYS_BEFORE, InUse
from epprof_nb.analysis.steps.iterations import MIN_ITERATIONS, Iterations, iterations
from epprof_nb.arrays.groups import group_codes, sum_by_group
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray


def allocation_turns(index: ProfileIndex) -> Iterations:
    """Return the turns of the loop in which memory can grow.

    Comprehensions and loops in files have no statements, and a turn may launch from one line only.
    If no other loop was found, the turns are of the loop that leads to the line that allocated most
    of what is in use at the end. Such a line, or a function that it calls, may allocate several
    times in a turn.
    """
    found = index.cached(iterations)
    blocks, in_use = index.profile.tables["memory_blocks"], index.cached(InUse)
    rows = np.flatnonzero(in_use.begin != ALWAYS_BEFORE)
    # Blocks without a byte leave nothing.
    stays = (in_use.end[rows] == ALWAYS) & (blocks["bytes"][rows] > 0)
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
    loop = _loop_frame(index, int(stack[mine[0]]))
    if loop is None and not _is_in_loop(index, int(statement[0])):
        return found
    ends = _turn_ends(index, *loop) if loop is not None else None
    if ends is None:  # the line allocates once a turn; what ends the last turn is not known
        ends = np.sort(in_use.begin[rows[mine]])
    number = np.arange(len(ends) - 1)
    return Iterations(number, ends[:-1], ends[1:], "iteration", int(statement[0]))


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


def _is_in_loop(index: ProfileIndex, statement: int) -> bool:
    """Return whether a statement is in a loop or a comprehension."""
    if statement == MISSING:
        return False
    ops = index.profile.tables["ops"]
    (cell,) = ops.names("cell").take(np.array([statement])).to_list()
    text = index.profile.sources.get(cell or "", "")
    return loop_around(text, int(ops["line"][statement])) is not None


def _loop_frame(index: ProfileIndex, stack: int) -> tuple[int, Loop] | None:
    """Return the innermost frame of the user in a loop or a comprehension, and that loop."""
    lines, sources = index.cached(StackLines), index.profile.sources
    while stack != MISSING:
        if lines.is_own[stack]:
            (file,) = lines.file.take(np.array([stack])).to_list()
            loop = loop_around(sources.get(file or "", ""), int(lines.line[stack]))
            if loop is not None:
                return stack, loop
        stack = int(lines.parent[stack])
    return None


def _turn_ends(index: ProfileIndex, frame: int, loop: Loop) -> IntArray | None:
    """Return the begin of a loop and the end of each turn, in order; None if no calls show it.

    A turn makes calls of several kinds, such as allocations and launches, each from its own lines.
    As many turns are taken as most kinds have calls; of those, the last call in a turn ends it.
    """
    tables, lines = index.profile.tables, index.cached(StackLines)
    calls, memory, stack = tables["api_calls"], tables["memory"], lines.of_calls()
    path = np.append(_paths_in_loop(index, frame, loop), MISSING)[stack]
    inside = np.flatnonzero(path != MISSING)
    released = memory.names("operation").equals("release")
    release = index.calls.rows(memory["correlation_id"][released])
    inside = inside[~np.isin(inside, release)]
    if not len(inside):
        return None
    threads, counts = np.unique(calls["thread_id"][inside], return_counts=True)
    thread = threads[int(counts.argmax())]
    inside = inside[calls["thread_id"][inside] == thread]
    inside = inside[np.argsort(calls["start_ns"][inside], kind="stable")]
    kind, first = group_codes(calls.names("name").codes[inside], path[inside])
    count = np.bincount(kind)
    number, kinds = np.unique(count[count >= MIN_ITERATIONS], return_counts=True)
    if not len(number):
        return None
    turns = int(number[int(kinds.argmax())])  # of as many kinds, the fewest
    of_turn = np.flatnonzero(count == turns)
    last = inside[kind == of_turn[int(first[of_turn].argmax())]]
    ends = calls["end_ns"][last].copy()
    mine = calls["thread_id"] == thread
    after = calls["start_ns"][mine & ~np.isin(np.arange(len(calls)), inside)]
    after = after[after > calls["end_ns"][inside[-1]]]
    ends[-1] = (
        after.min()
        if len(after)
        else max(calls["end_ns"].max(), tables["ops"]["end_ns"].max(initial=0))
    )
    return np.concatenate([calls["start_ns"][inside[:1]], ends])


def _paths_in_loop(index: ProfileIndex, frame: int, loop: Loop) -> IntArray:
    """Return the number of the path from a loop of the function of a frame to each stack.

    Whoever called the function, the path is the same. It is `MISSING` for stacks outside the loop.
    """
    lines, sources = index.cached(StackLines), index.profile.sources
    same = (lines.file.codes == lines.file.codes[frame]) & lines.is_own
    same &= lines.function.codes == lines.function.codes[frame]
    (file,) = lines.file.take(np.array([frame])).to_list()
    at = np.unique(lines.line[same])
    loops = [line for line in at.tolist() if loop_around(sources.get(file or "", ""), line) == loop]
    begins = (same & np.isin(lines.line, loops)).tolist()
    # A statement of several lines can call from each of them.
    line = index.profile.tables["stacks"]["line"].tolist()
    keys = zip(lines.file.codes.tolist(), lines.function.codes.tolist(), line, strict=True)
    numbers: dict[tuple[int, ...], int] = {}
    found: list[int] = []
    for begin, parent, key in zip(begins, lines.parent.tolist(), keys, strict=True):
        above = MISSING if begin or parent < 0 else found[parent]
        is_inside = begin or above != MISSING
        found.append(numbers.setdefault((above, *key), len(numbers)) if is_inside else MISSING)
    return np.array(found, np.int64)
