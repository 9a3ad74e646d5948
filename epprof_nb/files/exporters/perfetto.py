"""Perfetto's own trace format, by the protobuf messages of the package ``perfetto``.

Unlike a Chrome trace, it has times in nanoseconds, typed arguments, counters with units, and groups
of tracks. https://ui.perfetto.dev opens the file without uploading it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from itertools import count
from typing import IO, TYPE_CHECKING, Any, Self

import numpy as np

from epprof_nb.analysis.base.devices import device_names
from epprof_nb.arrays.groups import group_codes
from epprof_nb.arrays.ids import IdIndex
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.repeats import repeat_bounds, repeat_names
from epprof_nb.files.exporters.activity_tracks import DEVICES, ActivityTracks
from epprof_nb.files.exporters.device_counters import device_counters
from epprof_nb.files.exporters.protobuf import Messages
from epprof_nb.files.exporters.python_stacks import StackLabels
from epprof_nb.files.exporters.thread_tracks import is_shown, thread_tracks
from epprof_nb.files.exporters.trace_file import trace_file
from epprof_nb.files.exporters.trace_processes import placed_profiles

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.data.names import CategoryColumn
    from epprof_nb.data.profile_data import ProfileData
    from epprof_nb.files.exporters.device_counters import Counter
    from epprof_nb.files.exporters.thread_tracks import ThreadTrack
    from epprof_nb.files.exporters.trace_processes import TraceProcess

_BATCH = 16_384
"""Number of events that are encoded before they are written."""
_SEQUENCE = 1
"""Id of the sequence of all packets; names are interned within a sequence."""
_STATE_CLEARED, _NEEDS_STATE = 1, 2
"""Flags of a packet: the interned names start empty, or are needed."""
_BEGIN, _END, _COUNTER = 1, 2, 4
"""Types of track events."""
_PACKET = 1
"""Number of the field of a trace with its packets."""
_EXPLICIT = 3
"""Children of a track are in the order of their rank."""
_ACTIVITY_ARGS = ("correlation_id", "op_id")
_COPY_ARGS = ("bytes",)
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
        Class ``TraceProtoBuilder``; a trace may be written in parts. It makes the few packets, and
        has the numbers of the fields.
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
        self._names: Any = None
        self._of_packet, self._of_event, self._of_arg = (
            self._fields(*path)
            for path in ((), ("track_event",), ("track_event", "debug_annotations"))
        )

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

    def begin(self, track: int, time: int, name: str, category: str) -> None:
        """Begin a slice without arguments."""
        number = self.interned("event_names", name)
        of_category = self.interned("event_categories", category)
        event = self._packet(time).track_event
        event.type = _BEGIN
        event.track_uuid = track
        event.name_iid = number
        event.category_iids.append(of_category)

    def end(self, track: int, time: int) -> None:
        event = self._packet(time).track_event
        event.type = _END
        event.track_uuid = track

    def slices(self, track: int, events: _Events) -> None:
        """Write begins and ends of slices, all at once."""
        rows, begins = len(events.times), events.begins
        event = Messages(rows, events.tails)
        numbers = self._of_event
        event.integer(numbers["type"], np.where(begins, _BEGIN, _END))
        event.integer(numbers["track_uuid"], track)
        event.integer(numbers["name_iid"], events.names, begins)
        event.integer(numbers["category_iids"], events.categories, begins)
        for name, values in events.args.items():
            is_known = begins & (values != MISSING)
            if not is_known.any():
                continue
            arg = Messages(rows)
            arg.integer(self._of_arg["name_iid"], self.interned("debug_annotation_names", name))
            arg.integer(self._of_arg["int_value"], values)
            event.message(numbers["debug_annotations"], arg, is_known)
        self._flush()  # the names that are numbered here
        packet, numbers = Messages(rows), self._of_packet
        packet.integer(numbers["timestamp"], events.times - self._origin)
        packet.integer(numbers["trusted_packet_sequence_id"], _SEQUENCE)
        packet.integer(numbers["sequence_flags"], _NEEDS_STATE)
        packet.message(numbers["track_event"], event)
        trace = Messages(rows)
        trace.message(_PACKET, packet)
        self._stream.write(trace.encoded())

    def arguments(self, values: Mapping[str, str | float]) -> bytes:
        """Return the encoded field of an event with these arguments."""
        event = self._new_builder().add_packet().track_event
        for arg, value in values.items():
            annotation = event.debug_annotations.add(
                name_iid=self.interned("debug_annotation_names", arg)
            )
            if isinstance(value, bool):
                annotation.bool_value = value
            elif isinstance(value, int):
                annotation.int_value = value
            elif isinstance(value, float):
                annotation.double_value = value
            else:
                annotation.string_value = _valid(value)
        encoded: bytes = event.SerializeToString()
        return encoded

    def arrows(self, field: str, ids: IntArray) -> tuple[bytes, int]:
        """Return the encoded field of an event for each id of an arrow, and its length."""
        event = self._new_builder().add_packet().track_event
        getattr(event, field).append(0)
        tag = np.frombuffer(event.SerializeToString()[:-8], np.uint8)
        width = len(tag) + 8
        table = np.empty((len(ids), width), np.uint8)
        table[:, : len(tag)] = tag
        table[:, len(tag) :] = ids.astype("<u8")[:, None].view(np.uint8)
        return table.tobytes(), width

    def interned(self, field: str, text: str) -> int:
        """Return the number of a text, which an earlier packet than the next one defines."""
        numbers = self._interned[field]
        number = numbers.get(text)
        if number is None:
            number = numbers[text] = len(numbers) + 1
            if self._names is None:
                self._names = self._packet().interned_data
            getattr(self._names, field).add(iid=number, name=_valid(text))
        return number

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

    def _fields(self, *path: str) -> dict[str, int]:
        """Return the numbers of the fields of a packet, or of a message in it, by name."""
        message = self._new_builder().add_packet().DESCRIPTOR
        for name in path:
            message = message.fields_by_name[name].message_type
        return {name: field.number for name, field in message.fields_by_name.items()}

    def _flush(self) -> None:
        self._stream.write(self._builder.serialize())
        self._builder = self._new_builder()
        self._pending, self._names = 0, None


def _write(
    profile: ProfileData, trace: _Trace, parent: int = 0, first_flow: int = 1
) -> Iterator[int]:
    """Write everything, and yield the numbers of events that were written."""
    host = trace.track("host", parent)
    _write_repeats(profile, trace, host)
    flows = _Flows(profile, trace, first_flow)
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

    def __init__(self, profile: ProfileData, trace: _Trace, first: int) -> None:
        self.first = first
        activities, calls = profile.tables["activities"], profile.tables["api_calls"]
        call = IdIndex(calls["correlation_id"]).rows(activities["correlation_id"])
        self.has_call = (call >= 0) & ~activities.names("kind").equals("synchronization")
        rows = np.flatnonzero(self.has_call)
        rows = rows[np.argsort(call[rows], kind="stable")]
        self._bounds = np.searchsorted(call[rows], np.arange(len(calls) + 1))
        self._encoded, self._width = trace.arrows("flow_ids", rows + first)

    def of_call(self, row: int) -> bytes:
        """Return the encoded arrows that start at a call."""
        begin, end = self._bounds[row : row + 2].tolist()
        return self._encoded[begin * self._width : end * self._width]


@dataclass(frozen=True, slots=True)
class _Events:
    """Begins and ends of slices, in their order. The ends need only times.

    Attributes
    ----------
    begins
        bool array: whether the slice begins.
    times
        int64 array, ns.
    names, categories
        int64 arrays: numbers of interned texts.
    args
        Name to int64 array, `MISSING` for none.
    tails
        Further arguments and arrows, encoded.
    """

    begins: BoolArray
    times: IntArray
    names: IntArray
    categories: IntArray
    args: Mapping[str, IntArray]
    tails: Sequence[bytes]


class _HostEvents:
    """Ops and API calls of a profile; the columns are read once for all tracks."""

    def __init__(self, profile: ProfileData, trace: _Trace, flows: _Flows) -> None:
        ops, calls = profile.tables["ops"], profile.tables["api_calls"]
        self._trace, self._ops = trace, len(ops)
        self._op_args = {name: ops[name] for name in ("op_id", "line", "count")}
        self._call_args = {name: calls[name] for name in ("correlation_id", "return_value")}
        self._names = _Texts(ops.names("name"), trace, "event_names")
        self._types = _Texts(ops.names("op_type"), trace, "event_categories")
        self._called = _Texts(calls.names("name"), trace, "event_names")
        args, stacks = ops.names("args"), StackLabels(profile)
        self._arg_codes, self._call_stack = args.codes, calls["stack_id"]
        self._own_args = _Encoded(
            trace, lambda code: {} if code == MISSING else _arguments(args.categories[code])
        )
        self._stacks, self._flows = _Encoded(trace, stacks.args), flows

    def write(self, track: ThreadTrack, uuid: int) -> Iterator[int]:
        """Write the events of a track, and yield the numbers of those that were written."""
        for begin in range(0, len(track.slices), _BATCH):
            at = slice(begin, begin + _BATCH)
            events = self._events(track.slices[at], track.begins[at], track.times[at])
            self._trace.slices(uuid, events)
            yield len(events.times)

    def _events(self, rows: IntArray, begins: BoolArray, times: IntArray) -> _Events:
        is_op = rows < self._ops
        ops, calls = rows[is_op], rows[~is_op] - self._ops

        def both(of_ops: NDArray[Any] | int, of_calls: NDArray[Any] | int) -> IntArray:
            values = np.empty(len(rows), np.int64)
            values[is_op], values[~is_op] = of_ops, of_calls
            return values

        args = {name: both(column[ops], MISSING) for name, column in self._op_args.items()}
        args |= {name: both(MISSING, column[calls]) for name, column in self._call_args.items()}
        keys = both(self._arg_codes[ops], self._call_stack[calls])
        columns = (column.tolist() for column in (rows, keys, begins))
        return _Events(
            begins,
            times,
            both(self._names.numbers(ops), self._called.numbers(calls)),
            both(self._types.numbers(ops), self._trace.interned("event_categories", "api")),
            args,
            [
                self._tail(row, key) if starts else b""
                for row, key, starts in zip(*columns, strict=True)
            ],
        )

    def _tail(self, row: int, key: int) -> bytes:
        if row < self._ops:
            return self._own_args[key]
        return self._stacks[key] + self._flows.of_call(row - self._ops)


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
        self._names = _Texts(activities.names("name"), trace, "event_names")
        self._kinds = _Texts(activities.names("kind"), trace, "event_categories")
        self._is_kernel = activities.names("kind").equals("kernel")
        columns = (*_ACTIVITY_ARGS, *_SHAPE_ARGS, *_COPY_ARGS)
        self._args = {name: activities[name] for name in columns}
        self._stacks = _Encoded(trace, StackLabels(profile).args)
        self._stack = activities["stack_id"]

    def write(self, process: int, thread: int, uuid: int) -> Iterator[int]:
        """Write the events of a track, and yield the numbers of those that were written."""
        rows = self._rows[process, thread]
        for begin in range(0, len(rows), _BATCH):
            events = self._events(rows[begin : begin + _BATCH])
            self._trace.slices(uuid, events)
            yield len(events.times)

    def _events(self, rows: IntArray) -> _Events:
        tails = [b""] * (2 * len(rows))
        arrows, width = self._trace.arrows("terminating_flow_ids", rows + self._flows.first)
        has_arrow = self._flows.has_call[rows].tolist()
        for i, stack in enumerate(self._stack[rows].tolist()):
            arrow = arrows[i * width : (i + 1) * width] if has_arrow[i] else b""
            tails[2 * i] = self._stacks[stack] + arrow
        times = np.stack([self._start[rows], self._end[rows]], axis=1).ravel()
        rows = np.repeat(rows, 2)
        is_kernel = self._is_kernel[rows]
        args = {name: column[rows] for name, column in self._args.items()}
        args |= {name: np.where(is_kernel, args[name], MISSING) for name in _SHAPE_ARGS}
        args |= {name: np.where(is_kernel, MISSING, args[name]) for name in _COPY_ARGS}
        begins = np.tile([True, False], len(rows) // 2)
        numbers = self._names.numbers(rows), self._kinds.numbers(rows)
        return _Events(begins, times, *numbers, args, tails)


class _Texts:
    """Numbers of the interned names of a column by row."""

    def __init__(self, column: CategoryColumn, trace: _Trace, field: str) -> None:
        self._codes, self._texts = column.codes, (*column.categories, "(unnamed)")
        self._numbers = np.zeros(len(self._texts), np.int64)
        self._trace, self._field = trace, field

    def numbers(self, rows: IntArray) -> IntArray:
        codes = self._codes[rows]
        for code in np.unique(codes[self._numbers[codes] == 0]).tolist():
            self._numbers[code] = self._trace.interned(self._field, self._texts[code])
        return self._numbers[codes]


class _Encoded(dict[int, bytes]):
    """Encoded arguments of events by a number, such as that of their stack."""

    def __init__(self, trace: _Trace, args: Callable[[int], Mapping[str, str | float]]) -> None:
        self._trace, self._args = trace, args

    def __missing__(self, key: int) -> bytes:
        encoded = self[key] = self._trace.arguments(self._args(key))
        return encoded


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
