"""HostModel: how much sooner a profile would end with less work of the host or of devices.

The host and the devices are two clocks. The host launches, and waits at the recorded calls until
the work launched so far is done; the devices execute the launches in order. Work that overlaps on
the devices counts once, and the threads of the host are one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epprof_nb.analysis.base.wall_time import wall_of
from epprof_nb.analysis.utilisation.idle_causes import is_wait
from epprof_nb.arrays.intervals import clip_times, covered_before, union
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    import numpy.typing as npt

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import BoolArray, IntArray

_SKIPPED = 0.9
"""A wait is skipped if at least this part of it is."""


class HostModel:
    """The launches and waits of a profile, for `ProfileIndex.cached`.

    Parameters
    ----------
    index
        Index of the profile.

    Examples
    --------
    >>> from epprof_nb.analysis.base.index import ProfileIndex
    >>> from epprof_nb.testing import synthetic_profile
    >>> model = ProfileIndex(synthetic_profile(activities=100)).cached(HostModel)
    >>> model.saving(np.array([0]), np.array([1_000]))
    1000
    """

    def __init__(self, index: ProfileIndex) -> None:
        calls = index.profile.tables["api_calls"]
        rows = np.flatnonzero(index.cached(is_wait))
        start, end = _apart(*clip_times(calls["start_ns"][rows], calls["end_ns"][rows]))
        starts, ends = index.busy()
        self._until = _host_end(index, int(ends[-1]) if len(ends) else 0)
        # What remains of a wait after the work that it awaited is the way back to the host.
        done = np.append(np.iinfo(np.int64).min // 2, ends)[np.searchsorted(ends, end, "right")]
        running = np.searchsorted(starts, end) > np.searchsorted(ends, end, "right")
        self._waits = _Waits(start, end, end - np.clip(done, start, end), ~running)
        self._rows, self._arrival, self._device_ns = _launches(index)

    def saving(self, starts: IntArray, ends: IntArray) -> int:
        """Return how much sooner the profile would end without some time of the host, ns.

        Parameters
        ----------
        starts, ends
            int64 arrays, nanoseconds: the time that the host skips, in any order. Waits in it are
            skipped, too.
        """
        if not len(starts):
            return 0
        return max(self._whole() - self._duration(*union(starts, ends), self._device_ns), 0)

    def saving_of_work(self, rows: IntArray, remains: npt.NDArray[np.float64]) -> int:
        """Return how much sooner the profile would end with shorter device work, ns.

        Parameters
        ----------
        rows
            Rows of device work.
        remains
            Part of its time that remains, 0 to 1, one value per row.
        """
        part = np.ones(int(self._rows.max(initial=-1)) + 1)
        known = rows < len(part)
        part[rows[known]] = remains[known]
        device_ns = (self._device_ns * part[self._rows]).astype(np.int64)
        none = np.empty(0, np.int64)
        return max(self._whole() - self._duration(none, none, device_ns), 0)

    def _whole(self) -> int:
        none = np.empty(0, np.int64)
        return self._duration(none, none, self._device_ns)

    def _duration(self, starts: IntArray, ends: IntArray, device_ns: IntArray) -> int:
        """Return the length of the profile without some disjoint intervals of the host, ns."""
        skipped = _within(starts, ends, self._waits.start, self._waits.end)
        waits = self._waits.take(skipped < _SKIPPED * (self._waits.end - self._waits.start))
        # A segment lies between two waits.
        begin, until = np.append(0, waits.end), np.append(waits.start, self._until)
        host = until - begin - _within(starts, ends, begin, until)
        segment = np.searchsorted(waits.end, self._arrival, "right")
        order = np.argsort(segment, kind="stable")
        segment, arrival = segment[order], self._arrival[order]
        offset = arrival - begin[segment] - _within(starts, ends, begin[segment], arrival)
        total, latest = _device_work(segment, np.maximum(offset, 0), device_ns[order], len(begin))
        # The end of the profile waits for all work.
        back, length = np.append(waits.back, 0), np.append(waits.end - waits.start, 0)
        for_all = np.append(waits.for_all, np.True_)
        columns = (host, total, latest, back, length, for_all)
        now = done = 0
        for of_host, of_device, end, return_ns, wait_ns, is_for_all in zip(
            *(column.tolist() for column in columns), strict=True
        ):
            if of_device:
                done = max(done + of_device, now + end)
            now += of_host
            now = max(now, done) + return_ns if is_for_all else now + wait_ns
        return int(now)


def _host_end(index: ProfileIndex, last_work: int) -> int:
    """Return when the host had nothing more to do, ns.

    The devices may still work then, and the profile ends with their work.
    """
    ops, calls = index.profile.tables["ops"], index.profile.tables["api_calls"]
    known = max(int(table["end_ns"].max(initial=0)) for table in (ops, calls))
    wall_ns = wall_of(index.profile)
    return min(known, wall_ns) if last_work > 0 and wall_ns <= last_work else max(wall_ns, known)


class _Waits(NamedTuple):
    """Waits that do not overlap: int64 columns, ns.

    ``back`` is the time from the end of the awaited work to the end of the wait. ``for_all`` tells
    whether all work had ended then: if not, the wait was for a part of it.
    """

    start: IntArray
    end: IntArray
    back: IntArray
    for_all: BoolArray

    def take(self, rows: BoolArray) -> _Waits:
        """Return some of the waits."""
        return _Waits(self.start[rows], self.end[rows], self.back[rows], self.for_all[rows])


def _launches(index: ProfileIndex) -> tuple[IntArray, IntArray, IntArray]:
    """Return rows, arrival and time (ns) of the device work, in the order of execution.

    Work that overlaps earlier work counts from the end of that on.
    """
    activities, calls = (index.profile.tables[name] for name in ("activities", "api_calls"))
    rows = np.flatnonzero(index.is_device_work)
    start, end = clip_times(activities["start_ns"][rows], activities["end_ns"][rows])
    order = np.argsort(start, kind="stable")
    rows, start, end = rows[order], start[order], end[order]
    before = np.maximum.accumulate(np.append(np.iinfo(np.int64).min // 2, end))[:-1]
    call = index.calls.rows(activities["correlation_id"][rows])
    returned = np.append(calls["end_ns"], 0)[call]
    # A short kernel may start before its call returns.
    arrival = np.where(call == MISSING, start, np.minimum(returned, start))
    return rows, arrival, np.maximum(end - np.maximum(start, before), 0)


def _device_work(
    segment: IntArray, offset: IntArray, device_ns: IntArray, n: int
) -> tuple[IntArray, IntArray]:
    """Return the device time of each segment, and its end after the begin of the segment, ns.

    The second holds if the devices are idle at the begin.
    """
    total = np.zeros(n, np.int64)
    np.add.at(total, segment, device_ns)
    # A launch and all later ones of its segment end no earlier than their time after its arrival.
    rest = np.cumsum(total)[segment] - np.cumsum(device_ns) + device_ns
    latest = np.zeros(n, np.int64)
    np.maximum.at(latest, segment, offset + rest)
    return total, latest


def _apart(starts: IntArray, ends: IntArray) -> tuple[IntArray, IntArray]:
    """Return intervals in ascending order, each without its overlap with earlier ones."""
    order = np.lexsort((ends, starts))
    starts, ends = starts[order], ends[order]
    before = np.maximum.accumulate(np.append(np.iinfo(np.int64).min, ends))[:-1]
    starts = np.maximum(starts, before)
    return starts[starts < ends], ends[starts < ends]


def _within(starts: IntArray, ends: IntArray, begin: IntArray, until: IntArray) -> IntArray:
    """Return how much of disjoint intervals lies between each begin and until, ns."""
    before, covered = covered_before(starts, ends, np.stack([begin, until]))
    inside: IntArray = covered - before
    return inside
