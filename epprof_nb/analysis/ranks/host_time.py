"""HostTime: how a rank's threads spend the time between two moments, by op and line of code."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epprof_nb.analysis.base.stack_lines import StackLines
from epprof_nb.analysis.utilisation.blocking_calls import is_wait
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray

SYNCHRONIZATION = "synchronization"
_NO_OP = -1


class Place(NamedTuple):
    """Place of a thread: the type and name of the innermost op, and the line of the user's code.

    ``op_type`` and ``name`` are None outside of all ops. ``file`` and ``line`` are those of a
    statement; samples give the others (`HostTime.lines`).
    """

    op_type: str | None
    name: str | None
    file: str | None = None
    line: int = MISSING


NOWHERE = Place(None, None)


class Sampled(NamedTuple):
    """Time for which samples stand, nanoseconds, and their number."""

    ns: float = 0.0
    samples: int = 0

    def plus(self, other: Sampled) -> Sampled:
        """Return the sum of both."""
        return Sampled(self.ns + other.ns, self.samples + other.samples)


class HostTime:
    """The innermost op of each thread over time, for `ProfileIndex.cached`.

    Waits for a device are places of their own. Ops that stand for several executions, or that were
    suspended, do not say when they ran, and count for the op around them.

    Parameters
    ----------
    index
        Index of the profile.
    """

    def __init__(self, index: ProfileIndex) -> None:
        self._index = index
        ops = index.profile.tables["ops"]
        is_sure = (ops["count"] == 1) & (ops["suspended_ns"] <= 0)
        is_sure &= ops["end_ns"] > ops["start_ns"]
        waits = np.flatnonzero(index.cached(is_wait))
        calls = index.profile.tables["api_calls"]
        n = len(ops)
        self._ops = n
        self._calls = waits
        # Rows: the ops, then the waits, each inside of its op.
        self._start = np.append(ops["start_ns"], calls["start_ns"][waits])
        self._end = np.append(ops["end_ns"], calls["end_ns"][waits])
        self._thread = np.append(ops["thread_id"], calls["thread_id"][waits])
        self._depth = np.append(index.tree.depth, np.full(len(waits), 1 << 30))
        self._is_sure = np.append(is_sure, np.ones(len(waits), np.bool_))
        self._of_thread: dict[int, tuple[IntArray, IntArray]] = {}
        self._places: dict[int, Place] = {}

    def main_thread(self) -> int:
        """Return the thread with most samples, else the thread of the first op, else `MISSING`."""
        samples = self._index.profile.tables["host_samples"]
        if len(samples):
            threads, counts = np.unique(samples["thread_id"], return_counts=True)
            return int(threads[np.argmax(counts)])
        return int(self._thread[0]) if len(self._thread) else MISSING

    def _timeline(self, thread: int) -> tuple[IntArray, IntArray]:
        """Return the times at which the innermost op of a thread changes, and the op from then."""
        if thread not in self._of_thread:
            rows = np.flatnonzero(self._is_sure & (self._thread == thread))
            time = np.concatenate([self._start[rows], self._end[rows]])
            is_start = np.repeat([1, 0], len(rows))
            depth = np.tile(self._depth[rows], 2)
            # At the same time, inner ops end first, then outer ones begin.
            order = np.lexsort((np.where(is_start, depth, -depth), is_start, time))
            both, top, stack = np.tile(rows, 2), [], list[int]()
            for event in order.tolist():
                row = int(both[event])
                if is_start[event]:
                    stack.append(row)
                elif stack and stack[-1] == row:
                    stack.pop()
                elif row in stack:
                    stack.remove(row)
                top.append(stack[-1] if stack else _NO_OP)
            self._of_thread[thread] = time[order], np.array(top, np.int64)
        return self._of_thread[thread]

    def pieces(self, thread: int, begin: int, end: int) -> Iterable[tuple[int, int, int]]:
        """Yield the pieces of an interval: the row that was innermost, begin and end."""
        time, top = self._timeline(thread)
        first, last = np.searchsorted(time, [begin, end], side="right").tolist()
        at, row = begin, int(top[first - 1]) if first else _NO_OP
        for event in range(first, last):
            if time[event] > at:
                yield row, at, int(time[event])
            at, row = int(time[event]), int(top[event])
        if end > at:
            yield row, at, end

    def place(self, row: int) -> Place:
        """Return the place of a row of `pieces`."""
        if row not in self._places:
            self._places[row] = self._compute_place(row)
        return self._places[row]

    def _compute_place(self, row: int) -> Place:
        tables = self._index.profile.tables
        if row == _NO_OP:
            return NOWHERE
        if row >= self._ops:
            names = tables["api_calls"].names("name")
            return Place(SYNCHRONIZATION, names.take(self._calls[[row - self._ops]]).to_list()[0])
        ops = tables["ops"]
        one = np.array([row])
        op_type, name, cell = (
            ops.names(column).take(one).to_list()[0] for column in ("op_type", "name", "cell")
        )
        return Place(op_type, name, cell, int(ops["line"][row]))

    def times(self, threads: Sequence[int], begin: int, end: int) -> dict[Place, int]:
        """Return the time at each place in an interval, nanoseconds.

        The first of the threads counts while it runs an op, and the next one otherwise.
        """
        found: defaultdict[Place, int] = defaultdict(int)
        for row, start, stop in self._merged(threads, begin, end):
            found[self.place(row)] += stop - start
        return dict(found)

    def _merged(
        self, threads: Sequence[int], begin: int, end: int
    ) -> Iterable[tuple[int, int, int]]:
        for row, start, stop in self.pieces(threads[0], begin, end):
            if row == _NO_OP and len(threads) > 1:
                yield from self._merged(threads[1:], start, stop)
            else:
                yield row, start, stop

    def lines(
        self, threads: Sequence[int], intervals: Iterable[tuple[int, int]]
    ) -> dict[Place, dict[tuple[str, str, int], Sampled]]:
        """Return the time that samples of the threads found on each line, by place.

        Returns
        -------
        dict
            Place to a dict of the innermost line of the user's code (file, function, line) to the
            time for which its samples stand. A sample stands for the interval before it, also where
            that began before the given one: of many, as much is too much as is missing.
        """
        samples = self._index.profile.tables["host_samples"]
        lines = self._index.cached(StackLines)
        found: defaultdict[Place, defaultdict[tuple[str, str, int], Sampled]] = defaultdict(
            lambda: defaultdict(Sampled)
        )
        known = np.flatnonzero(np.isin(samples["thread_id"], list(threads)))
        time = samples["start_ns"][known]
        # A long interval is one without samples, in which something else may have run.
        most = 2 * int(np.median(samples["interval_ns"][known])) if len(known) else 0
        for begin, end in intervals:
            for row in known[slice(*np.searchsorted(time, [begin, end]).tolist())].tolist():
                own = int(lines.own[samples["stack_id"][row]])
                if own < 0:
                    continue
                at = int(samples["start_ns"][row])
                innermost = next((p[0] for p in self._merged(threads, at, at + 1)), _NO_OP)
                file = lines.file.take(np.array([own])).to_list()[0] or ""
                function = lines.function.take(np.array([own])).to_list()[0] or ""
                weight = min(int(samples["interval_ns"][row]), most)
                at_place, key = found[self.place(innermost)], (file, function, int(lines.line[own]))
                at_place[key] = at_place[key].plus(Sampled(weight, 1))
        return {place: dict(times) for place, times in found.items()}
