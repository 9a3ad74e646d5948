"""Columns are encoded in few bytes and decoded exactly."""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest

from epprof_nb.views.wire.wire_format import encode_message, smallest_dtype

DTYPES = {"u8": "u1", "i8": "i1", "u16": "<u2", "i16": "<i2", "u32": "<u4", "i32": "<i4",
          "f64": "<f8", "i64": "<i8"}  # fmt: skip


def decode(data: bytes) -> tuple[dict, dict]:
    """The viewer's decoder, in Python."""
    (length,) = struct.unpack_from("<I", data)
    header = json.loads(data[4 : 4 + length])
    columns, plain = {}, header.pop("plain", False)
    for name, (tag, offset, count, first) in header.pop("columns").items():
        dtype = np.dtype(DTYPES[tag])
        start = 4 + length + offset
        if plain:
            values = np.frombuffer(data, dtype, count, start).astype(np.int64)
            columns[name] = values + (first or 0)
            continue
        planes = np.frombuffer(data, np.uint8, count * dtype.itemsize, start)
        raw = np.ascontiguousarray(planes.reshape(dtype.itemsize, count).T)
        values = raw.view(dtype).reshape(-1).astype(np.int64)
        columns[name] = values if first is None else first + np.cumsum(values)
    return header, columns


@pytest.mark.parametrize(
    "values",
    [
        [],
        [0],
        [-1, 255],
        [-(2**63), 2**63 - 1],
        [2**53, 2**53 - 1, -(2**53)],
        list(range(10**12, 10**12 + 3000, 7)),
        [5, -70000, 2**40],
    ],
)
def test_columns_come_back_exactly(values):
    for plain in (False, True):
        data = encode_message({"a": 1}, {"x": np.array(values, np.int64)}, compact=not plain)
        header, columns = decode(data)
        assert header == {"a": 1}
        assert columns["x"].tolist() == values


def test_plain_columns_count_from_their_least_value_where_that_is_shorter():
    data = encode_message(
        {}, {"t": np.array([10**12, 10**12 + 65_535]), "s": np.array([7])}, compact=False
    )
    entries = json.loads(data[4:-5])["columns"]
    assert entries == {"t": ["u16", 0, 2, 10**12], "s": ["u8", 4, 1, None]}


def test_times_take_little_room():
    times = 10**15 + np.cumsum(np.full(10_000, 2000))
    assert len(encode_message({}, {"t": times})) < 10_000 * 3


def test_what_a_double_cannot_hold_stays_an_integer():
    assert smallest_dtype(np.array([2**53 + 1])) == np.int64
    assert smallest_dtype(np.array([2**53])) == np.float64


def test_names_with_lone_surrogates_pass():
    header, _ = decode(encode_message({"names": ["\ud800", "é", "</script>"]}, {}))
    assert header["names"] == ["\ud800", "é", "</script>"]
