"""DeviceTime: how a rank's device spends the time between two moments, by the op that launched."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.stack_lines import StackLines
from epprof_nb.analysis.ranks.collective_kinds import kind_of_kernel
from epprof_nb.analysis.ranks.host_time import Place
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex


class DeviceTime:
    """The work of a rank's devices over time, without collectives; for `ProfileIndex.cached`.

    Parameters
    ----------
    index
        Index of the profile.
    """

    def __init__(self, index: ProfileIndex) -> None:
        self._index = index
        activities = index.profile.tables["activities"]
        names = activities.names("name")
        talks = [kind_of_kernel(name) is not None for name in names.categories]
        is_work = index.is_device_work & ~np.array([*talks, False])[names.codes]
        rows = np.flatnonzero(is_work)
        self._rows = rows[np.argsort(activities["start_ns"][rows], kind="stable")]
        self._start = activities["start_ns"][self._rows]
        ends = activities["end_ns"][self._rows]
        # The first row that may still run at some time.
        self._latest_end = np.maximum.accumulate(ends) if len(ends) else ends
        self._end = ends
        self._places: dict[tuple[int, int, int], Place] = {}

    def times(self, begin: int, end: int) -> dict[Place, int]:
        """Return the time of work at each place in an interval, nanoseconds.

        Work that runs at the same time as other work counts from the end of that: the sum is the
        time in which the device was busy.
        """
        first = int(np.searchsorted(self._latest_end, begin, side="right"))
        last = int(np.searchsorted(self._start, end))
        found: defaultdict[Place, int] = defaultdict(int)
        until = begin
        for i in range(first, last):
            start, stop = max(int(self._start[i]), until), min(int(self._end[i]), end)
            if stop > start:
                found[self._place(int(self._rows[i]))] += stop - start
                until = stop
        return dict(found)

    def _place(self, row: int) -> Place:
        tables, lines = self._index.profile.tables, self._index.cached(StackLines)
        activities, ops = tables["activities"], tables["ops"]
        op, stack = int(self._index.activity_op[row]), int(lines.of_activities()[row])
        key = op, stack, int(activities.names("name").codes[row])
        if key not in self._places:
            own = int(lines.own[stack])
            name = activities.names("short_name" if op < 0 else "name").take(np.array([row]))
            kind: str | None = "kernel"
            text, file, line = name.to_list()[0], None, MISSING
            if op >= 0:
                one = np.array([op])
                text, kind, file = (
                    ops.names(c).take(one).to_list()[0] for c in ("name", "op_type", "cell")
                )
                line = int(ops["line"][op])
            if own >= 0:
                file = lines.file.take(np.array([own])).to_list()[0]
                line = int(lines.line[own])
            self._places[key] = Place(kind, text, file, line)
        return self._places[key]
