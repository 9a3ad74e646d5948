"""Columns as few bytes: small integers, differences, byte planes, then zlib.

A bundle is a JSON header and raw little-endian columns in one buffer::

    uint32 length of the header | header (ASCII JSON) | columns, one after the other

The header's ``columns`` gives each column's dtype, offset from the end of the header, number of
values and, where differences are stored, the first value (else null). Bytes of wide values are
stored in planes (all first bytes, then all second bytes, ...): neighbours resemble each other, so
zlib halves them again.

What is not compressed is made and read faster *plain*, as the header then says: values as they are,
or, where that is shorter, what they exceed the entry's fourth number by.
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


_LIMITS = [(np.dtype(name), int(np.iinfo(name).min), int(np.iinfo(name).max)) for name in _SMALL]


def smallest(values: npt.NDArray[Any]) -> np.dtype[Any]:
    """Return the smallest dtype that holds `values` exactly in JavaScript.

    float64 is exact to 2**53; what is beyond stays int64, a BigInt on the other side.
    """
    if not len(values):
        return np.dtype(np.uint8)
    return _holding(int(values.min()), int(values.max()))


def _holding(low: int, high: int) -> np.dtype[Any]:
    for dtype, least, most in _LIMITS:
        if least <= low and high <= most:
            return dtype
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


def _plain(values: npt.NDArray[Any]) -> tuple[bytes, str, int | None]:
    """One column's bytes, dtype tag and, if the bytes count from it, its least value."""
    if not len(values):
        return b"", "u8", None
    low, high = int(values.min()), int(values.max())
    dtype, base = _holding(low, high), None
    near = _holding(0, high - low)
    if near.itemsize < dtype.itemsize and dtype != np.int64:
        dtype, base, values = near, low, values - low
    return values.astype(dtype.newbyteorder("<")).tobytes(), _TAGS[dtype.name], base


def bundle(
    header: Mapping[str, Any], columns: Mapping[str, npt.NDArray[Any]], *, plain: bool = False
) -> bytes:
    """Put `header` and integer `columns` into one buffer; see the module's text for the layout.

    Parameters
    ----------
    header
        JSON-serialisable; its keys ``columns`` and, if it is so, ``plain`` are added.
    columns
        Column name to integers of any dtype.
    plain
        For what is not compressed afterwards.
    """
    index: dict[str, list[Any]] = {}
    parts: list[bytes] = []
    size = 0
    for name, values in columns.items():
        data, tag, first = (_plain if plain else _column)(values)
        index[name] = [tag, size, len(values), first]
        parts.append(data)
        size += len(data)
    # ASCII with escapes, so that a name with a lone surrogate passes too.
    added = {"columns": index, "plain": True} if plain else {"columns": index}
    text = json.dumps({**header, **added}, separators=(",", ":"), allow_nan=False)
    encoded = text.encode("ascii")
    return b"".join([struct.pack("<I", len(encoded)), encoded, *parts])
