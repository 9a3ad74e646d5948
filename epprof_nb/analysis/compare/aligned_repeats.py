"""Timelines of a typical repeat of each side, aligned on the first common op."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.devices import device_labels
from epprof_nb.analysis.base.thread_labels import thread_names
from epprof_nb.analysis.base.whole_repeats import whole_repeats
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.repeats import repeat_bounds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from epprof_nb.analysis.compare.match_ops import Pair
    from epprof_nb.analysis.compare.recordings import Recordings
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.names import CategoryColumn

_MAX_THREADS, _MAX_DEPTH, _MAX_STREAMS = 3, 4, 6


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a timeline.

    Attributes
    ----------
    label
        Name of the thread or stream; empty for further rows of a thread.
    starts, ends
        int64 arrays: nanoseconds since the start of the common op, ascending.
    names
        Name of each event.
    paths
        int64 array: number of the pair of each op, or of the op of each activity.
    kinds
        int64 array: code of the kind of each activity, see
        `epprof_nb.data.schema.ACTIVITY_KINDS`; None in rows of ops.
    """

    label: str
    starts: IntArray
    ends: IntArray
    names: CategoryColumn
    paths: IntArray
    kinds: IntArray | None = None

    def name(self, event: int) -> str:
        """Return the name of an event."""
        code = int(self.names.codes[event])
        return self.names.categories[code] if code >= 0 else ""


@dataclass(frozen=True, slots=True)
class Timeline:
    """The ops and the device work of one repeat; ``more`` counts rows that are left out."""

    rows: list[Row]
    more: int


@dataclass(frozen=True, slots=True)
class AlignedTimelines:
    """Timelines of both sides whose time 0 is the start of the op `anchor`.

    `anchor` is the number of its pair; None if the sides share no op, and time 0 is the start of
    the repeat. `origins` has time 0 of the old and of the new recording, ns.
    """

    old: Timeline
    new: Timeline
    anchor: int | None
    origins: tuple[int, int]


class _Repeat:
    """A repeat of a recording: the one whose elapsed time is nearest to the median."""

    def __init__(self, side: Recordings, number_of: IntArray) -> None:
        values = side.elapsed[0][0]
        self.index = side.indexes[0]
        info, tables = self.index.profile.info, self.index.profile.tables
        starts, _ = repeat_bounds(info)
        ops, activities = tables["ops"], tables["activities"]
        ran = ~ops.names("status").equals("earlier") & ~ops.names("op_type").equals("cell")
        work = self.index.is_device_work
        self.start = 0
        if len(starts):
            typical = int(np.argmin(np.abs(values - np.median(values))))
            typical += self.index.cached(whole_repeats).start
            ran = ran & (ops["repeat"] == typical)
            work = work & (activities["repeat"] == typical)
            self.start = int(starts[typical])
        rows = np.flatnonzero(ran)
        self.ops = rows[np.argsort(ops["start_ns"][rows], kind="stable")]
        self.work = np.flatnonzero(work)
        self.pairs = number_of[side.paths[0]]
        self.work_pairs = number_of[side.owners[0]]

    def first_starts(self) -> dict[int, int]:
        """Return the start of the first op of each pair, in order of time."""
        times = self.index.profile.tables["ops"]["start_ns"][self.ops]
        found: dict[int, int] = {}
        for pair, time in zip(self.pairs[self.ops].tolist(), times.tolist(), strict=True):
            found.setdefault(pair, time)
        return found

    def timeline(self, origin: int) -> Timeline:
        """Return the rows, with times from `origin` on."""
        ops, more_threads = self._op_rows(origin)
        streams, more_streams = self._stream_rows(origin)
        return Timeline([*ops, *streams], more_threads + more_streams)

    def _op_rows(self, origin: int) -> tuple[list[Row], int]:
        ops = self.index.profile.tables["ops"]
        threads = _by_time(ops["thread_id"][self.ops], ops["duration_ns"][self.ops])
        names = thread_names(self.index.profile.info)
        rows = []
        for thread in threads[:_MAX_THREADS]:
            of_thread = self.ops[ops["thread_id"][self.ops] == thread]
            depth = self.index.tree.depth[of_thread].astype(np.int64)
            depth -= depth.min()
            for level in range(min(int(depth.max()) + 1, _MAX_DEPTH)):
                here = of_thread[depth == level]
                label = names.get(thread, f"thread {thread}") if level == 0 else ""
                rows.append(self._row(here, origin, label, self.pairs[here]))
        return rows, max(len(threads) - _MAX_THREADS, 0)

    def _stream_rows(self, origin: int) -> tuple[list[Row], int]:
        activities = self.index.profile.tables["activities"]
        labels = device_labels(self.index.profile.info, self.index.device_ids)
        device = activities["device_id"][self.work]
        rows: list[Row] = []
        more = 0
        for number in np.unique(device).tolist():
            of_device = self.work[device == number]
            streams = _by_time(
                activities["stream_id"][of_device], activities["duration_ns"][of_device]
            )
            more += max(len(streams) - _MAX_STREAMS, 0)
            for stream in sorted(streams[:_MAX_STREAMS]):
                here = of_device[activities["stream_id"][of_device] == stream]
                here = here[np.argsort(activities["start_ns"][here], kind="stable")]
                name = labels[number] if stream == MISSING else f"{labels[number]} stream {stream}"
                paths = self.work_pairs[here]
                kinds = self.index.kinds[here].astype(np.int64)
                rows.append(self._row(here, origin, name, paths, kinds=kinds))
        return rows, more

    def _row(
        self,
        rows: IntArray,
        origin: int,
        label: str,
        paths: IntArray,
        *,
        kinds: IntArray | None = None,
    ) -> Row:
        events = self.index.profile.tables["ops" if kinds is None else "activities"]
        return Row(
            label,
            events["start_ns"][rows] - origin,
            events["end_ns"][rows] - origin,
            events.names("name").take(rows),
            paths,
            kinds,
        )


def _by_time(groups: IntArray, durations: IntArray) -> list[int]:
    """Return the distinct groups by descending time."""
    values, inverse = np.unique(groups, return_inverse=True)
    total = np.bincount(inverse, durations, len(values))
    ordered: list[int] = values[np.argsort(-total, kind="stable")].tolist()
    return ordered


def align(pairs: Sequence[Pair], old: Recordings, new: Recordings) -> AlignedTimelines:
    """Return the timelines of a typical repeat of the first recording of each side."""
    before = _Repeat(old, _numbers([pair.old for pair in pairs], len(old.side.children)))
    after = _Repeat(new, _numbers([pair.new for pair in pairs], len(new.side.children)))
    starts = before.first_starts(), after.first_starts()
    anchor = next((pair for pair in starts[0] if pair > 0 and pair in starts[1]), None)
    origins = (
        (before.start, after.start) if anchor is None else (starts[0][anchor], starts[1][anchor])
    )
    return AlignedTimelines(
        before.timeline(origins[0]), after.timeline(origins[1]), anchor, origins
    )


def _numbers(paths: Sequence[int | None], count: int) -> IntArray:
    """Return the number of the pair of each path of a side."""
    numbers = np.full(count, MISSING, np.int64)
    for number, path in enumerate(paths):
        if path is not None:
            numbers[path] = number
    return numbers
