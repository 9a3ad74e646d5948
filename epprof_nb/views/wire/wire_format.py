"""Binary messages to the viewer: a JSON header followed by integer columns.

Layout of a message::

    uint32 length of the header | header (ASCII JSON) | columns, back to back

Texts in the header, such as names, have controls of direction escaped. Its ``columns`` maps each
column to its dtype, its offset from the end of the header, its number of values and a base value or
null. There are two encodings.

*Compact* columns are meant for zlib. If differences between neighbours are narrower than the
values, they are stored instead, and the base value is the first value. The bytes of wide values
are stored in planes (all first bytes, then all second bytes, ...), because neighbours resemble each
other; that halves the compressed size.

*Plain* columns, used without compression and marked by ``plain`` in the header, are faster to
encode and decode. If that is narrower, values are stored relative to their minimum, the base value.
"""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from epprof_nb.util.text_controls import json_with_visible_controls

if TYPE_CHECKING:
    from collections.abc import Mapping

_SMALL = ("uint8", "int8", "uint16", "int16", "uint32", "int32")
_LIMITS = [(np.dtype(name), int(np.iinfo(name).min), int(np.iinfo(name).max)) for name in _SMALL]
_MAX_SAFE_INTEGER = 2**53
_TAGS = {
    "uint8": "u8", "int8": "i8", "uint16": "u16", "int16": "i16", "uint32": "u32",
    "int32": "i32", "float64": "f64", "int64": "i64",
}  # fmt: skip


def smallest_dtype(values: npt.NDArray[Any]) -> np.dtype[Any]:
    """Return the smallest dtype that represents `values` exactly in JavaScript.

    float64 is exact up to 2**53; larger values stay int64, which JavaScript reads as BigInt.
    """
    if not len(values):
        return np.dtype(np.uint8)
    return _dtype_of_range(int(values.min()), int(values.max()))


def _dtype_of_range(low: int, high: int) -> np.dtype[Any]:
    for dtype, least, most in _LIMITS:
        if least <= low and high <= most:
            return dtype
    return np.dtype(np.float64 if max(-low, high) <= _MAX_SAFE_INTEGER else np.int64)


def _compact(values: npt.NDArray[Any]) -> tuple[bytes, str, int | None]:
    """Return a column's bytes, its dtype tag and, if differences are stored, its first value."""
    integers = values.astype(np.int64)
    as_is = smallest_dtype(integers)
    data, first = integers, None
    if as_is.itemsize > 1 and as_is != np.int64:
        differences = np.diff(integers, prepend=integers[:1])
        if smallest_dtype(differences).itemsize < as_is.itemsize:
            data, first = differences, int(integers[0])
    dtype = smallest_dtype(data)
    raw = np.ascontiguousarray(data, dtype.newbyteorder("<"))
    planes = raw.view(np.uint8).reshape(len(raw), dtype.itemsize).T
    return planes.tobytes(), _TAGS[dtype.name], first


def _plain(values: npt.NDArray[Any]) -> tuple[bytes, str, int | None]:
    """Return a column's bytes, its dtype tag and, if values are relative to it, its minimum."""
    if not len(values):
        return b"", "u8", None
    low, high = int(values.min()), int(values.max())
    dtype, base = _dtype_of_range(low, high), None
    relative = _dtype_of_range(0, high - low)
    if relative.itemsize < dtype.itemsize and dtype != np.int64:
        dtype, base, values = relative, low, values - low
    return values.astype(dtype.newbyteorder("<")).tobytes(), _TAGS[dtype.name], base


def encode_message(
    header: Mapping[str, Any], columns: Mapping[str, npt.NDArray[Any]], *, compact: bool = True
) -> bytes:
    """Encode a header and integer columns; see the module docstring for the layout.

    Parameters
    ----------
    header
        JSON-serialisable. The keys ``columns`` and, unless compact, ``plain`` are added.
    columns
        Integers of any dtype by column name.
    compact
        Encode for compression. Pass False if the message is sent uncompressed.
    """
    index: dict[str, list[Any]] = {}
    parts: list[bytes] = []
    size = 0
    for name, values in columns.items():
        data, tag, base = (_compact if compact else _plain)(values)
        index[name] = [tag, size, len(values), base]
        parts.append(data)
        size += len(data)
    added = {"columns": index} if compact else {"columns": index, "plain": True}
    # ASCII with escapes, so that names with lone surrogates can be encoded.
    text = json.dumps({**header, **added}, separators=(",", ":"), allow_nan=False)
    encoded = json_with_visible_controls(text).encode("ascii")
    return b"".join([struct.pack("<I", len(encoded)), encoded, *parts])
