"""Loops in functions that no statement marks, found by launches that come from the same lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epprof_nb.analysis.base.missing_records import lacks_records
from epprof_nb.analysis.base.stack_lines import StackLines
from epprof_nb.analysis.base.tasks_of_ops import tasks_begun
from epprof_nb.arrays.groups import group_codes
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray

_LEAST_SHARE = 0.5
"""Minimum share of a thread's calls that a function with a loop makes."""


class LaunchLoop(NamedTuple):
    """Turns of a loop, in order: int64 arrays, ns. ``stack`` is the row of its first line's frame.

    A turn begins with its first API call.
    """

    start: IntArray
    end: IntArray
    stack: int


def launch_loop(index: ProfileIndex, least: int) -> LaunchLoop | None:
    """Return the outermost loop of at least `least` turns in the user's functions, or None.

    Calls of several lines of a function take turns in a loop; the first of these lines begins a
    turn. The last turn is left out, because what ends it is not known. A turn from one task of Dask
    to the next is none of a loop.
    """
    calls, lines = index.profile.tables["api_calls"], index.cached(StackLines)
    stack = lines.of_calls()
    with_own = np.flatnonzero(lines.own[stack] >= 0)
    if not len(with_own) or index.cached(lacks_records):
        return None
    # Other threads work for the one with most of these calls.
    threads, counts = np.unique(calls["thread_id"][with_own], return_counts=True)
    rows = with_own[calls["thread_id"][with_own] == threads[int(counts.argmax())]]
    rows = rows[np.argsort(calls["start_ns"][rows], kind="stable")]
    for frame_of in _frames_by_function(lines, stack[rows]):
        frame = frame_of[stack[rows]]
        inside = np.flatnonzero(frame != MISSING)
        if len(inside) < _LEAST_SHARE * len(rows):
            continue
        begins = _begins(lines.line[frame[inside]], least + 1)
        called = rows[inside[begins]]
        start = calls["start_ns"][called]
        turns = np.flatnonzero(np.diff(tasks_begun(index, calls["thread_id"][called], start)) == 0)
        if len(turns) >= least:
            return LaunchLoop(start[turns], start[turns + 1], int(frame[inside[begins[0]]]))
    return None


def _frames_by_function(lines: StackLines, used: IntArray) -> list[IntArray]:
    """Return the outermost frame of each function of the user by stack, `MISSING` for none.

    The outermost functions come first.
    """
    own = np.flatnonzero(lines.is_own)
    codes, first = group_codes(lines.file.codes[own], lines.function.codes[own])
    function = np.full(len(lines) + 1, MISSING, np.int64)
    function[own] = codes
    depth = np.full(len(first), len(lines), np.int64)
    found = [np.full(len(lines) + 1, MISSING, np.int64) for _ in first]
    for stack in np.flatnonzero(np.bincount(used[used >= 0])).tolist():
        frames, at = [], stack
        while at >= 0:
            frames.append(at)
            at = int(lines.parent[at])
        for number, frame in enumerate(frames[::-1]):
            of_frame = int(function[frame])
            if of_frame >= 0 and found[of_frame][stack] == MISSING:
                found[of_frame][stack] = frame
                depth[of_frame] = min(depth[of_frame], number)
    return [found[number] for number in np.argsort(depth, kind="stable").tolist()]


def _begins(line: IntArray, least: int) -> IntArray:
    """Return the positions in a sequence of lines at which turns of a loop begin.

    The array is empty if there are fewer than `least` turns.
    """
    visits = np.flatnonzero(np.diff(line, prepend=MISSING) != 0)
    distinct, counts = np.unique(line[visits], return_counts=True)
    repeated = distinct[counts >= least]
    if not len(repeated):
        return visits[:0]
    begins: IntArray = visits[line[visits] == repeated[0]]
    return begins
