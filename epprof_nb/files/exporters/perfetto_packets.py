"""Packets of a trace in Perfetto's format: tracks, slices, counters, and interned names."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import count
from typing import IO, TYPE_CHECKING, Any, Self

import numpy as np

from epprof_nb.arrays.types import MISSING
from epprof_nb.files.exporters.protobuf import Messages

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from epprof_nb.arrays.types import BoolArray, IntArray

BATCH = 16_384
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


def trace_builder() -> Any:  # noqa: ANN401 - a class of a module that may be absent
    """Return the class of the package ``perfetto`` that builds traces, or raise `ImportError`."""
    try:
        from perfetto.trace_builder.proto_builder import TraceProtoBuilder
    except ImportError as error:
        raise ImportError(
            "prof.to_perfetto() needs the package perfetto, which is not installed. Install it "
            "with: pip install epprof-nb[perfetto]. prof.to_chrome() writes a trace that Perfetto "
            "can open, without further packages."
        ) from error
    return TraceProtoBuilder


@dataclass(frozen=True, slots=True)
class Events:
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


class Trace:
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
        """End the slice that began last."""
        event = self._packet(time).track_event
        event.type = _END
        event.track_uuid = track

    def slices(self, track: int, events: Events) -> None:
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
        """Set the value of a counter from a time on."""
        event = self._packet(time).track_event
        event.type = _COUNTER
        event.track_uuid = track
        event.double_counter_value = value

    def _packet(self, time: int | None = None) -> Any:  # noqa: ANN401
        if self._pending == BATCH:
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


def _valid(text: str) -> str:
    """Return the text without lone surrogates, which protobuf does not accept."""
    return text.encode("utf-8", "replace").decode("utf-8")
