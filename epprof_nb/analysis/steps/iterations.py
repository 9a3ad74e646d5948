"""Iterations of the profiled code: its repeats or steps, else the turns of its longest loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epprof_nb.analysis.base.whole_repeats import whole_repeats
from epprof_nb.analysis.steps.launch_loops import launch_loop
from epprof_nb.analysis.steps.optimizer_steps import steps
from epprof_nb.analysis.steps.turns import are_concurrent, are_in_turns
from epprof_nb.arrays.groups import group_codes, sum_by_group
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.repeats import repeat_bounds, repeat_names

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray

MIN_ITERATIONS = 10
"""Minimum number of iterations of a loop."""


class Iterations(NamedTuple):
    """Time ranges of the iterations, in order.

    ``number`` has their numbers, ``start`` and ``end`` their times in ns, int64; ``unit`` is
    the word for one. ``loop`` is the row of the op of the loop. For a loop of a function, ``stack``
    is the row of the frame in which it begins. Both are `MISSING` for repeats and steps.
    """

    number: IntArray
    start: IntArray
    end: IntArray
    unit: str
    loop: int
    stack: int = MISSING


def iterations(index: ProfileIndex, least: int = MIN_ITERATIONS) -> Iterations:
    """Return the repeats of a profile, else its steps, else the iterations of its longest loop.

    Steps are the steps of an optimizer, as in the headline. A loop is a statement in whose turns
    another one ran `least` times or more; recursive calls and resumed generators are no turns. An
    iteration begins with the first statement of its body, and ends where the next one begins. The
    one that an error ended, such as Ctrl-C, is none. In a function without statements, the lines of
    launches show the loop.
    """
    start, end = repeat_bounds(index.profile.info)
    names = repeat_names(index.profile.info)
    whole = index.cached(whole_repeats)
    number = names.first + np.arange(len(start))[whole]
    if len(number) > 1:
        return Iterations(number, start[whole], end[whole], names.unit, MISSING)
    starts, ends, first = index.cached(steps)
    if len(starts) > 1:
        return Iterations(first + np.arange(len(starts)), starts, ends, "step", MISSING)
    found = _longest_loop(index, least)
    if not len(found.start) and (loop := launch_loop(index, least)) is not None:
        numbers = np.arange(len(loop.start))
        return Iterations(numbers, loop.start, loop.end, "iteration", MISSING, loop.stack)
    return found


def _longest_loop(index: ProfileIndex, least: int) -> Iterations:
    ops, tree = index.profile.tables["ops"], index.tree
    none = np.empty(0, np.int64)
    statements = np.flatnonzero(ops["line"] != MISSING)
    if not len(statements):
        return Iterations(none, none, none, "iteration", MISSING)
    names = ops.names("name").codes
    outer = np.append(index.statement, MISSING)[tree.parent[statements]]
    inner, outer = statements[outer != MISSING], outer[outer != MISSING]
    # A statement in itself is a recursive call, not the body of a loop.
    in_turns = (names[outer] != names[inner]) & are_in_turns(index, inner, outer)
    in_turns &= ~are_concurrent(index)[outer]
    inner, outer = inner[in_turns], outer[in_turns]
    if not len(inner):
        return Iterations(none, none, none, "iteration", MISSING)
    # The first statement of a body is the first line in its loop that ran.
    first_line = np.full(len(ops), np.iinfo(np.int64).max)
    np.minimum.at(first_line, outer, ops["line"][inner])
    begins = ops["line"][inner] == first_line[outer]
    inner, outer = inner[begins], outer[begins]
    groups, first = group_codes(outer)
    # The line may have several statements, as in `x = load(); work(x)`.
    name = names[inner]
    begins = name == name[first][groups]
    inner, outer = inner[begins], outer[begins]
    groups, first = group_codes(outer)
    count = sum_by_group(groups, np.ones(len(groups), np.int64), len(first))[:-1]
    time = np.where(count >= least, ops["duration_ns"][outer[first]], MISSING)
    longest = int(time.argmax())
    if time[longest] == MISSING:
        return Iterations(none, none, none, "iteration", MISSING)
    loop, body = int(outer[first[longest]]), inner[groups == longest]
    # Times are unknown from the first row of several executions on.
    alone = body[ops["count"][body] == 1]
    start = np.sort(ops["start_ns"][alone])
    end = np.append(start[1:], ops["end_ns"][loop])
    if len(alone) < len(body) or _is_interrupted(index, loop):
        start, end = start[:-1], end[:-1]
    return Iterations(np.arange(len(start)), start, end, "iteration", loop)


def _is_interrupted(index: ProfileIndex, loop: int) -> bool:
    """Return whether the error that ended the profile was raised in a loop: nothing follows it."""
    if not index.profile.info.get("error"):
        return False
    ops = index.profile.tables["ops"]
    follows = ops["start_ns"] >= ops["end_ns"][loop]
    follows &= (ops["line"] != MISSING) & (ops["thread_id"] == ops["thread_id"][loop])
    return not follows.any()
