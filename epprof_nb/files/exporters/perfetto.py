"""Perfetto's own trace format, by the protobuf messages of the package ``perfetto``.

Unlike a Chrome trace, it has times in nanoseconds, typed arguments, counters with units, and groups
of tracks. https://ui.perfetto.dev opens the file without uploading it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import count
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Any, Self

import numpy as np

from epprof_nb.analysis.base.devices import device_names
from epprof_nb.arrays.groups import group_codes
from epprof_nb.arrays.ids import IdIndex
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.repeats import repeat_bounds, repeat_names
from epprof_nb.files.exporters.activity_tracks import DEVICES, ActivityTracks
from epprof_nb.files.exporters.device_counters import device_counters
from epprof_nb.files.exporters.python_stacks import StackLabels
from epprof_nb.files.exporters.thread_tracks import is_shown, thread_tracks
from epprof_nb.files.exporters.trace_file import trace_file
from epprof_nb.files.exporters.trace_processes import placed_profiles

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping, Sequence

    from epprof_nb.data.names import CategoryColumn
    from epprof_nb.data.profile_data import ProfileData
    from epprof_nb.data.table import Table
    from epprof_nb.files.exporters.device_counters import Counter
    from epprof_nb.files.exporters.thread_tracks import ThreadTrack
    from epprof_nb.files.exporters.trace_processes import TraceProcess

_BATCH = 4_096
"""Number of packets that are built before they are written."""
_SEQUENCE = 1
"""Id of the sequence of all packets; names are interned within a sequence."""
_STATE_CLEARED, _NEEDS_STATE = 1, 2
"""Flags of a packet: the interned names start empty, or are needed."""
_BEGIN, _END, _COUNTER = 1, 2, 4
"""Types of track events."""
_EXPLICIT = 3
"""Children of a track are in the order of their rank."""
_ACTIVITY_ARGS = ("correlation_id", "op_id")
_SHAPE_ARGS = tuple(f"{of}_{axis}" for of in ("grid", "block") for axis in "xyz")


def to_perfetto(profile: ProfileData, path: str | os.PathLike[str]) -> None:
    """Write a profile in Perfetto's trace format, atomically and without building it in memory.

    Parameters
    ----------
    profile
        The profile. Ops with a ``count`` over 1 and suspended ops do not nest as slices must, so
        they have separate tracks.
    path
        The file; an existing file is replaced. It is compressed with gzip, which Perfetto reads, if
        its name ends in ``.gz``. Times are nanoseconds since the profile's start, or since its
        earliest event if that is before.

    Raises
    ------
    ImportError
        If the package ``perfetto`` is not installed.
    OSError
        If the file cannot be written.
    """
    builder = _trace_builder()
    tables = profile.tables
    events = 2 * sum(len(tables[name]) for name in ("ops", "api_calls", "activities"))
    with (
        trace_file(path, events, " events") as (stream, bar),
        _Trace(stream, builder, _origin(profile)) as trace,
    ):
        for written in _write(profile, trace):
            bar.update(written)


def job_to_perfetto(processes: Sequence[TraceProcess], path: str | os.PathLike[str]) -> None:
    """Write a job in Perfetto's trace format, with one process per process of the job.

    Parameters
    ----------
    processes
        The processes; their profiles are loaded one after another, twice.
    path
        The file, as for `to_perfetto`. Times are nanoseconds on the job's clock, or since its
        earliest event if that is before.

    Raises
    ------
    ImportError
        If the package ``perfetto`` is not installed.
    OSError
        If the file cannot be written.
    """
    builder = _trace_builder()
    origin = min((_origin(profile) for *_, profile in placed_profiles(processes)), default=0)
    with (
        trace_file(path, len(processes), " processes") as (stream, bar),
        _Trace(stream, builder, origin) as trace,
    ):
        first_flow = 1
        for rank, (process, pid, profile) in enumerate(placed_profiles(processes)):
            parent = trace.track(process.name, rank=rank, pid=pid)
            for _ in _write(profile, trace, parent, first_flow):
                pass
            first_flow += len(profile.tables["activities"])
            bar.update()


def _trace_builder() -> Any:  # noqa: ANN401 - a class of a module that may be absent
    try:
        from perfetto.trace_builder.proto_builder import TraceProtoBuilder
    except ImportError as error:
        raise ImportError(
            "prof.to_perfetto() needs the package perfetto, which is not installed. Install it "
            "with: pip install epprof-nb[perfetto]. prof.to_chrome() writes a trace that Perfetto "
            "can open, without further packages."
        ) from error
    return TraceProtoBuilder


def _origin(profile: ProfileData) -> int:
    """Return the time that becomes 0 in the trace, because its times cannot be negative."""
    ops = profile.tables["ops"]
    starts = [ops["start_ns"][is_shown(ops)], repeat_bounds(profile.info)[0]]
    starts += [profile.tables[name]["start_ns"] for name in ("activities", "api_calls")]
    return min(int(values.min(initial=0)) for values in starts)


class _Trace:
    """Packets of a trace, written in batches.

    Parameters
    ----------
    stream
        File that receives the bytes.
    builder
        Class ``TraceProtoBuilder``; a trace may be written in parts.
    origin
        The time that becomes 0, ns.
    """

    def __init__(self, stream: IO[bytes], builder: Any, origin: int) -> None:  # noqa: ANN401
        self._stream, self._new_builder, self._origin = stream, builder, origin
        self._builder = builder()
        self._pending = 0
        self._flags = _STATE_CLEARED
        self._uuids = count(1)
        self._interned: dict[str, dict[str, int]] = defaultdict(dict)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: object, *_: object) -> None:
        if error is None:
            self._flush()

    def track(
        self,
        name: str,
        parent: int = 0,
        rank: int = 0,
        unit: str | None = None,
        pid: int | None = None,
    ) -> int:
        """Add a track and return its uuid; with a unit a counter, with a pid a process."""
        descriptor = self._packet().track_descriptor
        descriptor.uuid = next(self._uuids)
        descriptor.name = _valid(name)
        descriptor.sibling_order_rank = rank
        if pid is not None:
            descriptor.process.pid = pid
            descriptor.process.process_name = descriptor.name
        if parent:
            descriptor.parent_uuid = parent
        if unit is None:
            descriptor.child_ordering = _EXPLICIT
        else:
            descriptor.counter.unit_name = unit
        uuid: int = descriptor.uuid
        return uuid

    def begin(
        self,
        track: int,
        time: int,
        name: str,
        category: str,
        args: Mapping[str, str | float] = MappingProxyType({}),
    ) -> Any:  # noqa: ANN401
        """Begin a slice and return its event, to add flows."""
        packet = self._packet(time)
        event = packet.track_event
        event.type = _BEGIN
        event.track_uuid = track
        event.name_iid = self._intern(packet, "event_names", name)
        event.category_iids.append(self._intern(packet, "event_categories", category))
        for arg, value in args.items():
            number = self._intern(packet, "debug_annotation_names", arg)
            annotation = event.debug_annotations.add(name_iid=number)
            if isinstance(value, bool):
                annotation.bool_value = value
            elif isinstance(value, int):
                annotation.int_value = value
            elif isinstance(value, float):
                annotation.double_value = value
            else:
                annotation.string_value = _valid(value)
        return event

    def end(self, track: int, time: int) -> None:
        event = self._packet(time).track_event
        event.type = _END
        event.track_uuid = track

    def counter(self, track: int, time: int, value: float) -> None:
        event = self._packet(time).track_event
        event.type = _COUNTER
        event.track_uuid = track
        event.double_counter_value = value

    def _packet(self, time: int | None = None) -> Any:  # noqa: ANN401
        if self._pending == _BATCH:
            self._flush()
        packet = self._builder.add_packet()
        self._pending += 1
        packet.trusted_packet_sequence_id = _SEQUENCE
        packet.sequence_flags = self._flags
        self._flags = _NEEDS_STATE
        if time is not None:
            packet.timestamp = time - self._origin
        return packet

    def _intern(self, packet: Any, field: str, text: str) -> int:  # noqa: ANN401
        """Return the number of a text, which the first packet with it defines."""
        numbers = self._interned[field]
        number = numbers.get(text)
        if number is None:
            number = numbers[text] = len(numbers) + 1
            getattr(packet.interned_data, field).add(iid=number, name=_valid(text))
        return number

    def _flush(self) -> None:
        self._stream.write(self._builder.serialize())
        self._builder = self._new_builder()
        self._pending = 0


def _write(
    profile: ProfileData, trace: _Trace, parent: int = 0, first_flow: int = 1
) -> Iterator[int]:
    """Write everything, and yield the numbers of events that were written."""
    host = trace.track("host", parent)
    _write_repeats(profile, trace, host)
    flows = _Flows(profile, first_flow)
    of_host = _HostEvents(profile, trace, flows)
    for rank, track in enumerate(thread_tracks(profile), 1):
        yield from of_host.write(track, trace.track(track.name, host, rank))
    tracks = ActivityTracks(profile)
    names = device_names(profile.info)
    counters: dict[int, list[Counter]] = defaultdict(list)
    for counter in device_counters(profile):
        counters[counter.device_id].append(counter)
    activities = _Activities(profile, tracks, trace, flows)
    of_process: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for (process, thread), label in tracks.labels.items():
        of_process[process].append((thread, label))
    # A device number may be too large for a rank in Perfetto's format.
    for rank, process in enumerate(sorted(of_process), 1):
        device_id = process - DEVICES
        name = f"device {device_id}: {names.get(device_id, 'unknown')}"
        device = trace.track(name, parent, rank=rank)
        for counter in counters[device_id]:
            uuid = trace.track(counter.name, device, unit=counter.unit)
            for time, value in zip(counter.times.tolist(), counter.values.tolist(), strict=True):
                trace.counter(uuid, time, value)
        for thread, label in of_process[process]:
            yield from activities.write(process, thread, trace.track(label, device, thread))


def _write_repeats(profile: ProfileData, trace: _Trace, host: int) -> None:
    starts, ends = repeat_bounds(profile.info)
    if not len(starts):
        return
    word, first = repeat_names(profile.info)
    track = trace.track(f"{word}s", host)
    bounds = zip(starts.tolist(), ends.tolist(), strict=True)
    for number, (start, end) in enumerate(bounds, first):
        trace.begin(track, start, f"{word} {number}", word)
        trace.end(track, end)


class _Flows:
    """The arrows from API calls to their activities: one for each activity.

    Attributes
    ----------
    has_call
        bool array: whether an arrow leads to the activity; its id is its row plus `first`.
    """

    def __init__(self, profile: ProfileData, first: int) -> None:
        self.first = first
        activities, calls = profile.tables["activities"], profile.tables["api_calls"]
        call = IdIndex(calls["correlation_id"]).rows(activities["correlation_id"])
        self.has_call = (call >= 0) & ~activities.names("kind").equals("synchronization")
        rows = np.flatnonzero(self.has_call)
        self._rows = rows[np.argsort(call[rows], kind="stable")]
        self._bounds = np.searchsorted(call[self._rows], np.arange(len(calls) + 1))

    def of_call(self, row: int) -> list[int]:
        """Return the ids of the arrows that start at a call."""
        flows: list[int] = (
            self._rows[self._bounds[row] : self._bounds[row + 1]] + self.first
        ).tolist()
        return flows


class _HostEvents:
    """Ops and API calls of a profile; the columns are read once for all tracks."""

    def __init__(self, profile: ProfileData, trace: _Trace, flows: _Flows) -> None:
        ops, calls = profile.tables["ops"], profile.tables["api_calls"]
        self._trace, self._flows, self._ops = trace, flows, len(ops)
        self._op_args = _Values(ops, ("op_id", "line", "count"))
        self._call_args = _Values(calls, ("correlation_id", "return_value"))
        self._names, self._types, self._args = (
            _Texts(ops.names(name)) for name in ("name", "op_type", "args")
        )
        self._called = _Texts(calls.names("name"))
        self._stacks, self._call_stack = StackLabels(profile), calls["stack_id"]

    def write(self, track: ThreadTrack, uuid: int) -> Iterator[int]:
        """Write the events of a track, and yield the numbers of those that were written."""
        for begin in range(0, len(track.slices), _BATCH):
            at = slice(begin, begin + _BATCH)
            columns = (column[at].tolist() for column in (track.slices, track.begins, track.times))
            for row, begins, time in zip(*columns, strict=True):
                if not begins:
                    self._trace.end(uuid, time)
                elif row < self._ops:
                    args, known = self._op_args[row], self._args.is_known(row)
                    own = _arguments(self._args[row]) if known else {}
                    self._trace.begin(uuid, time, self._names[row], self._types[row], args | own)
                else:
                    call = row - self._ops
                    name = self._called[call]
                    args = self._call_args[call] | self._stacks.args(self._call_stack.item(call))
                    event = self._trace.begin(uuid, time, name, "api", args)
                    event.flow_ids.extend(self._flows.of_call(call))
            yield len(track.slices[at])


class _Activities:
    """Activities of a profile by track; the columns are read and sorted once for all tracks."""

    def __init__(
        self, profile: ProfileData, tracks: ActivityTracks, trace: _Trace, flows: _Flows
    ) -> None:
        activities = profile.tables["activities"]
        self._trace, self._flows = trace, flows
        self._start = activities["start_ns"]
        self._end = np.maximum(activities["end_ns"], self._start)
        codes, first = group_codes(tracks.process, tracks.thread)
        order = np.lexsort((self._end, self._start, codes))
        bounds = np.searchsorted(codes[order], np.arange(1, len(first)))
        keys = zip(tracks.process[first].tolist(), tracks.thread[first].tolist(), strict=True)
        self._rows = dict(zip(keys, np.split(order, bounds), strict=False))
        self._names, self._kinds = (_Texts(activities.names(name)) for name in ("name", "kind"))
        self._of_kernel = _Values(activities, (*_ACTIVITY_ARGS, *_SHAPE_ARGS))
        self._of_copy = _Values(activities, (*_ACTIVITY_ARGS, "bytes"))
        self._stacks, self._stack = StackLabels(profile), activities["stack_id"]

    def write(self, process: int, thread: int, uuid: int) -> Iterator[int]:
        """Write the events of a track, and yield the numbers of those that were written."""
        rows = self._rows[process, thread]
        for begin in range(0, len(rows), _BATCH):
            here = rows[begin : begin + _BATCH]
            columns = (column[here].tolist() for column in (self._start, self._end))
            for row, from_ns, to_ns in zip(here.tolist(), *columns, strict=True):
                kind = self._kinds[row]
                args = (self._of_kernel if kind == "kernel" else self._of_copy)[row]
                args |= self._stacks.args(self._stack.item(row))
                event = self._trace.begin(uuid, from_ns, self._names[row], kind, args)
                if self._flows.has_call[row]:
                    event.terminating_flow_ids.append(row + self._flows.first)
                self._trace.end(uuid, to_ns)
            yield 2 * len(here)


class _Texts:
    """Names by row."""

    def __init__(self, column: CategoryColumn) -> None:
        self._codes, self._categories = column.codes, column.categories

    def is_known(self, row: int) -> bool:
        return bool(self._codes[row] != MISSING)

    def __getitem__(self, row: int) -> str:
        code = self._codes[row]
        return "(unnamed)" if code == MISSING else self._categories[code]


class _Values:
    """The known values of columns by row."""

    def __init__(self, table: Table, columns: Sequence[str]) -> None:
        self._columns = {name: table[name] for name in columns}

    def __getitem__(self, row: int) -> dict[str, str | float]:
        values = {name: column.item(row) for name, column in self._columns.items()}
        return {name: value for name, value in values.items() if value != MISSING}


def _arguments(text: str) -> dict[str, str | float]:
    """Return the arguments of an op; other values than scalars become JSON."""
    values = json.loads(text)
    if not isinstance(values, dict):
        return {}
    return {
        f"args.{name}": value if _is_scalar(value) else json.dumps(value)
        for name, value in values.items()
    }


def _is_scalar(value: object) -> bool:
    if isinstance(value, int):
        return -(2**63) <= value < 2**63
    return isinstance(value, str | float)


def _valid(text: str) -> str:
    """Return the text without lone surrogates, which protobuf does not accept."""
    return text.encode("utf-8", "replace").decode("utf-8")
