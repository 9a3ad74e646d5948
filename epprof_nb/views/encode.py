"""Columns as few bytes: small integers, differences, byte planes, then zlib.

A bundle is a JSON header and raw little-endian columns in one buffer::

    uint32 length of the header | header (ASCII JSON) | columns, one after the other

The header's ``columns`` gives each column's dtype, offset from the end of the header, number of
values and, where differences are stored, the first value (else null). Bytes of wide values are
stored in planes (all first bytes, then all second bytes, ...): neighbours resemble each other, so
zlib halves them again.
"""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Mapping

_SMALL = ("uint8", "int8", "uint16", "int16", "uint32", "int32")
_EXACT_FLOAT = 2**53
_TAGS = {
    "uint8": "u8", "int8": "i8", "uint16": "u16", "int16": "i16", "uint32": "u32",
    "int32": "i32", "float64": "f64", "int64": "i64",
}  # fmt: skip


def smallest(values: npt.NDArray[Any]) -> np.dtype[Any]:
    """Return the smallest dtype that holds `values` exactly in JavaScript.

    float64 is exact to 2**53; what is beyond stays int64, a BigInt on the other side.
    """
    if not len(values):
        return np.dtype(np.uint8)
    low, high = int(values.min()), int(values.max())
    for name in _SMALL:
        limits = np.iinfo(name)
        if limits.min <= low and high <= limits.max:
            return np.dtype(name)
    return np.dtype(np.float64 if max(-low, high) <= _EXACT_FLOAT else np.int64)


def _column(values: npt.NDArray[Any]) -> tuple[bytes, str, int | None]:
    """One column's bytes, dtype tag and, if the bytes are differences, its first value."""
    integers = values.astype(np.int64)
    plain = smallest(integers)
    data, first = integers, None
    if plain.itemsize > 1 and plain != np.int64:
        differences = np.diff(integers, prepend=integers[:1])
        if smallest(differences).itemsize < plain.itemsize:
            data, first = differences, int(integers[0])
    dtype = smallest(data)
    raw = np.ascontiguousarray(data, dtype.newbyteorder("<"))
    planes = raw.view(np.uint8).reshape(len(raw), dtype.itemsize).T
    return planes.tobytes(), _TAGS[dtype.name], first


def bundle(header: Mapping[str, Any], columns: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """Put `header` and integer `columns` into one buffer; see the module's text for the layout.

    Parameters
    ----------
    header
        JSON-serialisable; its key ``columns`` is added.
    columns
        Column name to integers of any dtype.
    """
    index: dict[str, list[Any]] = {}
    body = bytearray()
    for name, values in columns.items():
        data, tag, first = _column(values)
        index[name] = [tag, len(body), len(values), first]
        body += data
    # ASCII with escapes, so that a name with a lone surrogate passes too.
    text = json.dumps({**header, "columns": index}, separators=(",", ":"), allow_nan=False)
    encoded = text.encode("ascii")
    return struct.pack("<I", len(encoded)) + encoded + bytes(body)
