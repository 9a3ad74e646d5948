"""The events of a Kineto trace, with the fields that the tables need.

msgspec parses only these fields, in a third of the time of all fields. A list with an event of
other types is parsed as a whole, and values of another type count as missing.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

_RAW = msgspec.Raw()
_INVALID = msgspec.Raw(b"invalid")
_ENCODER = json.JSONEncoder(allow_nan=False)  # as strict as msgspec is with a whole list


class Args(msgspec.Struct, gc=False):
    """Arguments of an event; their types are not checked."""

    correlation: Any = None
    external: Any = msgspec.field(name="External id", default=None)
    device: Any = None
    context: Any = None
    stream: Any = None
    bytes: Any = None
    grid: Any = None
    block: Any = None
    registers: Any = msgspec.field(name="registers per thread", default=None)
    graph: Any = msgspec.field(name="graph id", default=None)
    graph_node: Any = msgspec.field(name="graph node id", default=None)
    # Kept as text, because many operators have the same shapes.
    shapes: msgspec.Raw = msgspec.field(name="Input Dims", default=_RAW)
    types: msgspec.Raw = msgspec.field(name="Input type", default=_RAW)
    older_types: msgspec.Raw = msgspec.field(name="Input Type", default=_RAW)
    sequence: Any = msgspec.field(name="Sequence number", default=None)
    size: Any = msgspec.field(name="Bytes", default=None)
    address: Any = msgspec.field(name="Addr", default=None)
    device_type: Any = msgspec.field(name="Device Type", default=None)
    device_id: Any = msgspec.field(name="Device Id", default=None)
    collective: Any = msgspec.field(name="Collective name", default=None)
    communicator: Any = msgspec.field(name="Process Group Name", default=None)
    ranks: Any = msgspec.field(name="Group size", default=None)
    sent: Any = msgspec.field(name="In msg nelems", default=None)
    received: Any = msgspec.field(name="Out msg nelems", default=None)
    element: Any = msgspec.field(name="dtype", default=None)


NO_ARGS = Args()


class Event(msgspec.Struct, gc=False):
    """An event; times are in microseconds."""

    ph: str | None = None
    cat: str = ""
    name: str | None = None
    pid: int | str | None = None
    tid: int | str | None = None
    ts: float | int | None = None
    dur: float | int | None = None
    args: Args | None = None


_DECODER = msgspec.json.Decoder(list[Event])
_ARGS = {field.encode_name: field.name for field in msgspec.structs.fields(Args)}
_TEXTS = frozenset(
    field.name for field in msgspec.structs.fields(Args) if field.type is msgspec.Raw
)
_TYPES = {
    "ph": (str,), "cat": (str,), "name": (str,), "pid": (int, str), "tid": (int, str),
    "ts": (int, float), "dur": (int, float),
}  # fmt: skip


def parsed(text: bytes) -> list[Event] | None:
    """Parse a JSON array of events; None if it is invalid, or an event has other types."""
    try:
        return _DECODER.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def event_of(fields: object) -> Event | None:
    """Make an event of a parsed object, without values of other types; None for other values."""
    if type(fields) is not dict:
        return None
    known: dict[str, Any] = {
        name: value for name, types in _TYPES.items() if type(value := fields.get(name)) in types
    }
    args = fields.get("args")
    if type(args) is not dict:
        return Event(**known)
    of_args = {name: args[key] for key, name in _ARGS.items() if key in args}
    for name in _TEXTS & of_args.keys():
        of_args[name] = _text(of_args[name])
    return Event(**known, args=Args(**of_args))


def _text(value: object) -> msgspec.Raw:
    try:
        return msgspec.Raw(_ENCODER.encode(value).encode())
    except (ValueError, RecursionError):
        return _INVALID
