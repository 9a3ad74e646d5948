"""Idle time of devices before the API call of their next work: host work, by its line."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epprof_nb.analysis.base.between_lines import (
    does_one_thing,
    lines_between,
    loop_header,
    profile_begin,
)
from epprof_nb.analysis.base.devices import device_word
from epprof_nb.analysis.base.first_calls import preparation_within
from epprof_nb.analysis.base.lines_of_work import lines_at
from epprof_nb.analysis.base.stack_lines import StackLines
from epprof_nb.analysis.base.tasks_of_ops import time_in_tasks
from epprof_nb.analysis.utilisation.blocking_calls import host_wait
from epprof_nb.analysis.utilisation.host_ops import host_ops
from epprof_nb.analysis.utilisation.idle_causes import (
    LEAST_HELD_NS,
    LONGEST_LAUNCH_NS,
    launch_latency,
    launching_thread,
    split_by_cause,
)
from epprof_nb.analysis.utilisation.idle_intervals import AFTER, IdleIntervals, idle_intervals
from epprof_nb.arrays.groups import group_codes
from epprof_nb.arrays.ids import unique_values, values_at
from epprof_nb.arrays.positions import positions
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.names import CategoryColumn

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import BoolArray, IntArray

_NEXT_TURN, _ONE_CALL = 1, 2


class HostIdle(NamedTuple):
    """Idle intervals in which the host had not called yet: columns, one value per interval.

    ``idle`` has the intervals, ``start`` and ``end`` when the host worked (ns), and ``time`` for
    how long, without its waits, the time between tasks, and the profiler's first calls. ``begun``
    is the end of its API call before, while the device may have been busy. ``thread`` is the thread
    that launched the next work, ``op`` the row of the op that it ran (`MISSING`: none). ``file``,
    ``function``, ``line`` and ``last_line`` say where in a function that no statement marks.
    ``is_held`` says that the work was launched, and waited while the host ran its code.
    """

    idle: IdleIntervals
    start: IntArray
    end: IntArray
    time: IntArray
    begun: IntArray
    thread: IntArray
    op: IntArray
    file: CategoryColumn
    function: CategoryColumn
    line: IntArray
    last_line: IntArray
    is_held: BoolArray

    def take(self, rows: IntArray) -> HostIdle:
        """Return some of the intervals."""
        times = (column[rows] for column in (self.start, self.end, self.time, self.begun))
        start, end, time, begun = times
        return HostIdle(
            self.idle.take(rows), start, end, time, begun, self.thread[rows], self.op[rows],
            self.file.take(rows), self.function.take(rows), self.line[rows], self.last_line[rows],
            self.is_held[rows],
        )  # fmt: skip


def host_idle(index: ProfileIndex) -> HostIdle:
    """Return the idle intervals of the devices in which the host worked before its API call.

    Intervals of `held_time_of_host` come after these.
    """
    idle = idle_intervals(index)
    parts = split_by_cause(index, idle)
    launching = parts["launching"]
    launching = np.where(launching <= LONGEST_LAUNCH_NS, launching, 0)
    waiting = parts["waiting"] + launching + parts["held"]
    time = idle.end - idle.start - waiting
    # The launch comes last in an interval, unless it ends with the profile.
    end = idle.end - np.where(idle.position == AFTER, 0, launching + parts["held"])
    start = np.maximum(end - time, idle.start)
    in_tasks = time_in_tasks(index, launching_thread(index, idle.next_row), start, end)
    time = np.maximum(np.minimum(time, in_tasks) - preparation_within(index, start, end), 0)
    at = np.flatnonzero(time > 0)
    held = index.cached(held_time_of_host)
    also = np.flatnonzero(held > 0)
    is_held = np.repeat([False, True], [len(at), len(also)])
    start = np.append(start[at], (idle.end - held)[also])
    end = np.append(end[at], idle.end[also])
    time = np.append(time[at], held[also])
    idle = idle.take(np.append(at, also))
    calls, activities = (index.profile.tables[name] for name in ("api_calls", "activities"))
    call = index.calls.rows(activities["correlation_id"][idle.next_row])
    middle = start + (end - start) // 2
    op = host_ops(index, idle.next_row, middle)
    thread = values_at(calls["thread_id"], call)
    for other in (activities["thread_id"][idle.next_row],
                  values_at(index.profile.tables["ops"]["thread_id"], op)):  # fmt: skip
        thread = np.where(thread == MISSING, other, thread)
    around = _calls_around(index, thread, middle)
    ended = np.where(around[0] >= 0, values_at(calls["end_ns"], around[0]), 0)
    begun = np.minimum(start, np.where(around[0] == around[1], start, ended))
    places = _lines(index, *around, op)
    return HostIdle(idle, start, end, time, begun, thread, op, *places, is_held)


def held_time_of_host(index: ProfileIndex) -> IntArray:
    """Return for how long each idle interval's work was held while the host ran its code, ns.

    Kernels of the host device are Python functions, which need the GIL. It is 0 on GPUs, and where
    the thread that launched the work waited for more than half of the time.
    """
    idle = idle_intervals(index)
    if device_word(index.profile.info) == "GPU":
        return np.zeros(len(idle.start), np.int64)
    held = split_by_cause(index, idle)["held"]
    waited = host_wait(index, launching_thread(index, idle.next_row), idle.end - held, idle.end)
    found = np.where(held > max(launch_latency(index), LEAST_HELD_NS), held, 0)
    return np.where(2 * waited < held, found, 0)


def loops_at(
    index: ProfileIndex, thread: IntArray, times: IntArray, op: IntArray
) -> list[tuple[str, str, int] | None]:
    """Return file, function and line of the loops that threads were in at some times.

    None where a statement of the cell says so. The loops are those around the line in which a
    thread's next API call leaves the stack of the call before.
    """
    lines = index.cached(StackLines)
    of_calls = np.append(lines.of_calls(), MISSING)
    before, after = (of_calls[rows] for rows in _calls_around(index, thread, times))
    pairs, first = group_codes(before, after, _marked(index, op))
    found: list[tuple[str, str, int] | None] = []
    for row in first.tolist():
        place = _between(index, lines, int(before[row]), int(after[row]), next_turn=False)
        frame = slice(place[0], place[0] + 1) if place else slice(0)
        names = [column.take(frame).to_list() for column in (lines.file, lines.function)]
        if not place or not names[0][0] or _is_marked(index, names[0][0], int(op[row])):
            found.append(None)
            continue
        source = index.profile.sources.get(names[0][0], "")
        line = loop_header(source, int(lines.line[place[0]]))
        found.append((names[0][0], str(names[1][0]), line))
    return [found[pair] for pair in pairs.tolist()]


def _calls_around(
    index: ProfileIndex, thread: IntArray, times: IntArray
) -> tuple[IntArray, IntArray]:
    """Return the rows of a thread's API calls before and after a time; `MISSING` for none.

    Both are the call that the thread is in, if there is one.
    """
    calls = index.profile.tables["api_calls"]
    found = np.full((2, len(times)), MISSING, np.int64)
    for number in unique_values(thread):
        rows = index.calls_of_thread(number)
        of_thread = np.flatnonzero(thread == number)
        if not len(rows):
            continue
        at = positions(calls["start_ns"][rows], times[of_thread], "right")
        before = np.where(at > 0, rows[at - 1], MISSING)
        after = np.where(at < len(rows), rows[np.minimum(at, len(rows) - 1)], MISSING)
        is_inside = calls["end_ns"][before] > times[of_thread]
        found[:, of_thread] = before, np.where((before >= 0) & is_inside, before, after)
    return found[0], found[1]


def _lines(
    index: ProfileIndex, before: IntArray, after: IntArray, op: IntArray
) -> tuple[CategoryColumn, CategoryColumn, IntArray, IntArray]:
    """Return file, function, and the lines that the host ran between two calls.

    Only of functions that no statement marks: statements say exactly what ran.
    """
    lines = index.cached(StackLines)
    of_calls = lines.of_calls()
    left, ops = _has_left(index, before, op), index.profile.tables["ops"]
    turn = _turns(index, before, after)
    statement = values_at(index.statement, op)
    pairs, first = group_codes(
        values_at(of_calls, before), values_at(of_calls, after), _marked(index, op),
        values_at(ops["line"], statement), left.astype(np.int64), turn,
    )  # fmt: skip
    n = len(first)  # few: pairs of places
    file, function = np.full((2, n), None, object)
    span = np.full((2, n), MISSING, np.int64)
    for number, row in enumerate(first.tolist()):
        stacks = (
            int(values_at(of_calls, before[[row]])[0]),
            int(values_at(of_calls, after[[row]])[0]),
        )
        is_next = bool(left[row]) or turn[row] == _NEXT_TURN
        if turn[row] == _ONE_CALL:
            is_next |= _does_one_thing(index, lines, stacks[1])
        place = _between(index, lines, *stacks, next_turn=is_next)
        if place is None:
            continue
        frame, span_of = place
        (name,) = lines.file.take(slice(frame, frame + 1)).to_list()
        if _is_marked(index, name, int(op[row])) or _is_outside(index, stacks[1], int(op[row])):
            continue
        file[number] = name
        (function[number],) = lines.function.take(slice(frame, frame + 1)).to_list()
        span[:, number] = span_of
    return (
        CategoryColumn.of(file.tolist()).take(pairs),
        CategoryColumn.of(function.tolist()).take(pairs),
        span[0][pairs],
        span[1][pairs],
    )


def _has_left(index: ProfileIndex, before: IntArray, op: IntArray) -> BoolArray:
    """Return where the call before was in an op, such as a module's, that is not open any more.

    The statement around it is, and no other op in it.
    """
    of_call = values_at(index.call_op, before)
    statement = np.append(index.statement, MISSING)[of_call]
    left: BoolArray = (of_call != statement) & (op == statement) & (op >= 0)
    return left


def _turns(index: ProfileIndex, before: IntArray, after: IntArray) -> IntArray:
    """Return whether the host had left the line of two calls that are both in it.

    `_NEXT_TURN` if the second one is the kind of call that the line makes first, and the first one
    is another; `_ONE_CALL` if the line makes calls of one kind only; else 0. Calls of one kind have
    the same name and the same stack, frames of libraries included.
    """
    calls, own = index.profile.tables["api_calls"], index.cached(StackLines).own
    stack = index.cached(StackLines).of_calls()
    one, other = (own[values_at(stack, rows)].astype(np.int64) for rows in (before, after))
    same = (one == other) & (other >= 0) & (before != after)
    if not same.any():
        return np.zeros(len(before), np.int64)
    kind, at = group_codes(calls.names("name").codes, stack)
    if (calls["start_ns"][1:] < calls["start_ns"][:-1]).any():
        by_time = np.argsort(calls["start_ns"], kind="stable")
        at = by_time[group_codes(kind[by_time])[1]]
    line = own[stack[at]]
    first = np.full(len(own), MISSING, np.int64)
    first[line[::-1]] = kind[at[::-1]]  # the earliest kind of a line comes last and remains
    kinds = np.bincount(line + 1, minlength=len(own) + 1)[1:]
    old, new = values_at(kind, before), values_at(kind, after)
    is_next = (new == first[other]) & (old != new)
    found = np.where(kinds[other] > 1, np.where(is_next, _NEXT_TURN, 0), _ONE_CALL)
    return np.where(same, found, 0)


def _does_one_thing(index: ProfileIndex, lines: StackLines, stack: int) -> bool:
    """Return whether the user's line of a stack has only one call that may launch work."""
    own = int(lines.own[stack])
    (file,) = lines.file.take(slice(own, own + 1)).to_list()
    return does_one_thing(index.profile.sources.get(file or "", ""), int(lines.line[own]))


def _marked(index: ProfileIndex, op: IntArray) -> IntArray:
    """Return a number for each cell whose statement contains an op; `MISSING` for none."""
    statement = values_at(index.statement, op)
    return np.append(index.profile.tables["ops"].names("cell").codes, MISSING)[statement]


def _is_marked(index: ProfileIndex, file: str | None, op: int) -> bool:
    """Return whether an op is in a statement of this file."""
    cells, line = lines_at(index, np.array([MISSING]), np.array([op]))
    return bool(line[0] >= 0) and cells.to_list()[0] == file


def _is_outside(index: ProfileIndex, stack: int, op: int) -> bool:
    """Return whether an op and a stack are in different statements."""
    statement = int(index.statement[op]) if op >= 0 else MISSING
    if statement < 0:
        return False
    ops, lines = index.profile.tables["ops"], index.cached(StackLines)
    (cell,) = ops.names("cell").take(np.array([statement])).to_list()
    frames = np.array(_own_frames(lines, stack), np.int64)
    line = lines.line[frames[lines.file.equals(str(cell))[frames]]]
    first, last = (int(ops[name][statement]) for name in ("line", "end_line"))
    return bool(len(line)) and not ((first <= line) & (line <= max(first, last))).any()


def _between(
    index: ProfileIndex, lines: StackLines, before: int, after: int, *, next_turn: bool
) -> tuple[int, tuple[int, int]] | None:
    """Return a frame of the function in which the host was between two stacks, and its lines.

    `next_turn` says whether the host had left the line, if both are in the same.
    """
    old, new = (_own_frames(lines, stack) for stack in (before, after))
    if not new:
        return None
    common = 0
    while common < min(len(old), len(new)) and old[common] == new[common]:
        common += 1
    if common == len(new):  # the same line, or a function has returned to it
        return _next_turn(index, lines, new, int(lines.line[new[-1]]), next_turn=next_turn)
    first = index.profile.tables["stacks"]["first_line"]
    if common == len(old):  # functions have begun
        for frame in reversed(new[common:]):
            line, begin = int(lines.line[frame]), int(first[frame])
            if not old:  # the profile may have begun within the function
                begin = max(begin, profile_begin(_source(index, lines, frame), line))
            found = _lines_between(index, lines, frame, begin)
            if found and found != (line, line):
                return frame, found
            if lines.file.equals(str(index.profile.info.get("cell")))[frame]:
                break  # what called the cell had ended its work
        return new[-1], (int(lines.line[new[-1]]),) * 2
    one, other = old[common], new[common]
    names = [
        [column.take(slice(row, row + 1)).to_list()[0] for column in (lines.file, lines.function)]
        for row in (one, other)
    ]
    if names[0] != names[1]:
        return new[-1], (int(lines.line[new[-1]]),) * 2
    return _next_turn(index, lines, new[: common + 1], int(lines.line[one]))


def _next_turn(
    index: ProfileIndex,
    lines: StackLines,
    stack: list[int],
    before: int,
    *,
    next_turn: bool = False,
) -> tuple[int, tuple[int, int]]:
    """Return the frame of a stack whose lines lead from a line to the innermost frame.

    Also return these lines. The frame is a caller's if the function returned and was called again.
    """
    found = _lines_between(index, lines, stack[-1], before, next_turn=next_turn)
    if found:
        return stack[-1], found
    for frame in reversed(stack[:-1]):
        found = _lines_between(index, lines, frame, int(lines.line[frame]), next_turn=True)
        if found:
            return frame, found
    caller = stack[-2:][0]  # it calls the function twice
    return caller, (int(lines.line[caller]),) * 2


def _lines_between(
    index: ProfileIndex, lines: StackLines, frame: int, before: int, *, next_turn: bool = False
) -> tuple[int, int] | None:
    """Return the lines with calls between a line and the line of a frame; see `lines_between`."""
    source = _source(index, lines, frame)
    return lines_between(source, before, int(lines.line[frame]), next_turn=next_turn)


def _source(index: ProfileIndex, lines: StackLines, frame: int) -> str:
    """Return the source of the file of a frame; empty if it is unknown."""
    (file,) = lines.file.take(slice(frame, frame + 1)).to_list()
    return index.profile.sources.get(file or "", "")


def _own_frames(lines: StackLines, stack: int) -> list[int]:
    """Return the frames of a stack in code of the user, the outermost first."""
    found = []
    row = int(lines.own[stack])
    while row >= 0:
        found.append(row)
        parent = int(lines.parent[row])
        row = int(lines.own[parent]) if parent >= 0 else MISSING
    return found[::-1]
