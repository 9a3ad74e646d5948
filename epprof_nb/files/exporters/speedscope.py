"""Speedscope's JSON: flame graphs of the device time and of the host's threads.

https://www.speedscope.app opens the file without uploading it. Each stream of a device is a profile
whose stacks are the path of ops down to the kernel, so the sandwich and left-heavy views sum up
device time by op. Each thread of the host is a profile of its ops and API calls.
"""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from epprof_nb.analysis.base.devices import device_labels
from epprof_nb.analysis.base.op_paths import SESSION, OpPaths, op_steps
from epprof_nb.analysis.base.op_tree import OpTree
from epprof_nb.arrays.groups import group_codes
from epprof_nb.arrays.types import MISSING
from epprof_nb.core.version import package_version
from epprof_nb.files.exporters.activity_tracks import DEVICES, ActivityTracks
from epprof_nb.files.exporters.json_rows import batches, integers, join_rows
from epprof_nb.files.exporters.python_stacks import Measure, weighted_paths
from epprof_nb.files.exporters.thread_tracks import is_shown, thread_tracks
from epprof_nb.files.exporters.trace_file import trace_file

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence

    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.profile_data import ProfileData
    from epprof_nb.files.exporters.thread_tracks import ThreadTrack

Piece: TypeAlias = "tuple[int, bytes | memoryview]"
"""A number of events, and text."""
_STACK_MEASURES: tuple[tuple[Measure, str], ...] = (
    ("device_ns", "nanoseconds"), ("launches", "none"), ("wait_ns", "nanoseconds"),
)  # fmt: skip
_SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def to_speedscope(profile: ProfileData, path: str | os.PathLike[str]) -> None:
    """Write a profile for speedscope, atomically.

    Parameters
    ----------
    profile
        The profile. Waits are left out; the awaited work is written.
    path
        The file; an existing file is replaced. It is compressed with gzip, which speedscope reads,
        if its name ends in ``.gz``. Times are nanoseconds since the earliest event.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    pieces = _Pieces(profile)
    with trace_file(path, pieces.events, " events") as (stream, bar):
        for events, text in pieces.of_file(Path(path).name):
            stream.write(text)
            bar.update(events)


class _Frames:
    """The frames of a file, numbered in the order in which they are added."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def number(self, name: str | None, file: str | None = None, line: int = MISSING) -> int:
        frame: dict[str, str | int] = {"name": "(unnamed)" if name is None else name}
        if file is not None:
            frame["file"] = file
        if line != MISSING:
            frame["line"] = line
        return self.numbers.setdefault(json.dumps(frame), len(self.numbers))


class _Pieces:
    """The text of a file, in pieces; frames come last, because the other pieces number them.

    Attributes
    ----------
    events
        Number of activities and of begins and ends on the host.
    """

    def __init__(self, profile: ProfileData) -> None:
        self._profile = profile
        self._frames = _Frames()
        ops, activities, calls = (
            profile.tables[name] for name in ("ops", "activities", "api_calls")
        )
        shown = ops.take(np.flatnonzero(is_shown(ops)))
        starts, ends = (
            np.concatenate([table[name] for table in (shown, activities, calls)])
            for name in ("start_ns", "end_ns")
        )
        self._origin = int(starts.min()) if len(starts) else 0
        # In a damaged file, an event may end before it starts: it is written without a duration.
        end = int(np.maximum(starts, ends).max()) if len(starts) else 0
        self._times = {
            "unit": "nanoseconds",
            "startValue": 0,
            "endValue": max(end - self._origin, 0),
        }
        self.events = len(activities) + 2 * (len(ops) + len(calls))

    def of_file(self, name: str) -> Iterator[Piece]:
        streams = _streams(self._profile)
        head = {
            "$schema": _SCHEMA,
            "exporter": f"epprof_nb {package_version()}",
            "name": name,
            "activeProfileIndex": _busiest(streams),
        }
        yield 0, json.dumps(head)[:-1].encode() + b', "profiles": ['
        before = b"\n"
        for stream in streams:
            yield 0, before + self._head("sampled", stream.name)
            yield from self._samples(stream)
            before = b",\n"
        for measure, unit in _STACK_MEASURES if len(self._profile.tables["stacks"]) else ():
            yield 0, before + self._of_stacks(measure, unit)
            before = b",\n"
        for track in thread_tracks(self._profile):
            yield 0, before + self._head("evented", track.name)
            yield from self._host_events(track)
            before = b",\n"
        frames = ",\n".join(self._frames.numbers)
        yield 0, f'\n], "shared": {{"frames": [\n{frames}\n]}}}}\n'.encode()

    def _head(self, kind: str, name: str) -> bytes:
        return json.dumps({"type": kind, "name": name, **self._times})[:-1].encode()

    def _of_stacks(self, measure: Measure, unit: str) -> bytes:
        """Return a profile with a sample for each path of Python frames down to a kernel."""
        paths = weighted_paths(self._profile, measure, library=True)
        weights = [path.weight for path in paths]
        return json.dumps({
            "type": "sampled", "name": f"{measure} by Python stack", "unit": unit,
            "startValue": 0, "endValue": sum(weights),
            "samples": [[self._frames.number(*node) for node in path.nodes] for path in paths],
            "weights": weights,
        }).encode()  # fmt: skip

    def _samples(self, stream: _Stream) -> Iterator[Piece]:
        """Yield the stack of each activity, an empty one before it, and the time of each."""
        idle = stream.start - np.append(self._origin, stream.end[:-1])
        yield 0, b', "samples": [[]'
        stacks = pa.array([f",[],[{stack}]" for stack in self._stacks.texts])
        for at in batches(len(stream.rows), self._stacks.longest):
            codes = self._stacks.codes[stream.rows[at]]
            yield len(at), join_rows(stacks.take(pa.array(codes)), "")
        yield 0, b'], "weights": [0'
        for at in batches(len(stream.rows), 0):
            busy = integers(stream.end[at] - stream.start[at])
            yield 0, join_rows(",", integers(idle[at]), ",", busy)
        yield 0, b"]}"

    def _host_events(self, track: ThreadTrack) -> Iterator[Piece]:
        frames = self._host_frames[track.slices]
        times = track.times - self._origin
        yield 0, b', "events": ['
        separator = b""
        for at in batches(len(frames), 0):
            kinds = pa.array(['O","frame":', 'C","frame":']).take(
                pa.array((~track.begins[at]).astype(np.int8))
            )
            parts = (',{"type":"', kinds, integers(frames[at]), ',"at":', integers(times[at]), "}")
            text = join_rows(*parts)
            yield len(at), text if separator else text[1:]
            separator = b","
        yield 0, b"]}"

    @cached_property
    def _host_frames(self) -> IntArray:
        """Frame of each op and, after them, of each API call."""
        ops, calls = self._profile.tables["ops"], self._profile.tables["api_calls"]
        cells, lines = ops.names("cell"), ops["line"]
        groups, first = group_codes(ops.names("name").codes, cells.codes, lines)
        names = ops.names("name").take(first).to_list()
        places = zip(names, cells.take(first).to_list(), lines[first].tolist(), strict=True)
        of_ops = np.array([self._frames.number(*place) for place in places], np.int64)[groups]
        called, first = group_codes(calls.names("name").codes)
        names = calls.names("name").take(first).to_list()
        of_calls = np.array([self._frames.number(name) for name in names], np.int64)[called]
        return np.append(of_ops, of_calls)

    @cached_property
    def _stacks(self) -> _Stacks:
        """Stack of each activity: the path of its op, the path of its capture, and its name."""
        ops, activities = self._profile.tables["ops"], self._profile.tables["activities"]
        tree = OpTree(ops)
        paths = OpPaths(op_steps(ops, tree))
        owner = np.append(paths.of_op, SESSION)[tree.rows(activities["op_id"])]
        owner = paths.add_captured(ops, owner, tree.rows(activities["capture_op_id"]))
        host = self._host_frames
        of_path: list[str] = [""]
        for parent, row in zip(paths.parent[1:].tolist(), paths.row[1:].tolist(), strict=True):
            above = of_path[parent]
            of_path.append(above if row == MISSING else f"{above}{host[row]},")
        names = activities.names("name")
        codes, first = group_codes(owner, names.codes)
        leaves = [self._frames.number(name) for name in names.take(first).to_list()]
        above = [of_path[path] for path in owner[first].tolist()]
        texts = [f"{path}{leaf}" for path, leaf in zip(above, leaves, strict=True)]
        return _Stacks(codes, texts, max(map(len, texts), default=0))


class _Stacks(NamedTuple):
    """Distinct stacks as text, the code of each activity's stack, and the maximum length."""

    codes: IntArray
    texts: list[str]
    longest: int


class _Stream(NamedTuple):
    """A track of activities: their rows in the order of time, and their times."""

    name: str
    rows: IntArray
    start: IntArray
    end: IntArray


def _streams(profile: ProfileData) -> list[_Stream]:
    """Return the tracks of activities of the devices, without the waits of host threads."""
    activities = profile.tables["activities"]
    tracks = ActivityTracks(profile)
    start = activities["start_ns"]
    end = np.maximum(activities["end_ns"], start)
    work = np.flatnonzero(~activities.names("kind").equals("synchronization"))
    work = work[np.lexsort((end[work], start[work]))]
    if not len(work):
        return []
    codes, first = group_codes(tracks.process[work], tracks.thread[work])
    keys = list(
        zip(tracks.process[work[first]].tolist(), tracks.thread[work[first]].tolist(), strict=True)
    )
    labels = device_labels(profile.info, sorted({process - DEVICES for process, _ in keys}))
    order = np.argsort(codes, kind="stable")
    of_track = np.split(work[order], np.cumsum(np.bincount(codes, minlength=len(keys)))[:-1])
    found = {
        key: _Stream(
            f"{labels[key[0] - DEVICES]}, {tracks.labels[key]}", rows, start[rows], end[rows]
        )
        for key, rows in zip(keys, of_track, strict=True)
    }
    return [found[key] for key in sorted(found)]


def _busiest(streams: Sequence[_Stream]) -> int:
    """Return the number of the stream with the most work, which speedscope shows first."""
    busy = [int((stream.end - stream.start).sum()) for stream in streams]
    return max(range(len(busy)), key=busy.__getitem__, default=0)
