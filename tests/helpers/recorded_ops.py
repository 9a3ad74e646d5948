"""Ops as rows read directly from the native core, for tests of the op stack."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace

import numpy as np

from epprof_nb import _native
from epprof_nb.recording.native_columns import name_of
from epprof_nb.recording.ranges import (
    ranges,  # noqa: F401 - ops installs what the core calls
    suspension,
)

_KINDS = {"op_id": "u8", "parent_op_id": "u8", "name_id": "u4", "count": "u4", "payload_id": "u4",
          "suspended_ns": "i8", "duration_ns": "i8", "start_ns": "i8", "end_ns": "i8",
          "flags": "u2"}  # fmt: skip

_ended: list[SimpleNamespace] = []


@contextlib.contextmanager
def recording():
    """Record ops inside the block, and remove them afterwards."""
    _ended.clear()
    _native.set_recording(ops=True, launches=False)
    try:
        yield
    finally:
        _native.set_recording(ops=False, launches=False)
        suspension.stop_tracking()
        _native.drain_ops(_native.now_ns(), open_too=False)


def drained() -> list[SimpleNamespace]:
    """The ops of the block so far, by start time, with their names and the names of parents."""
    columns = _native.drain_ops(_native.now_ns(), open_too=True)
    arrays = {name: np.frombuffer(columns[name], kind) for name, kind in _KINDS.items()}
    rows = list(_ended)
    for i in range(len(arrays["op_id"])):
        row = SimpleNamespace(**{name: int(values[i]) for name, values in arrays.items()})
        row.name = name_of(row.name_id, columns["op_names"])
        rows.append(row)
    _ended[:] = [row for row in rows if not row.flags & 1]
    rows.sort(key=lambda row: (row.start_ns, row.op_id))
    by_id = {row.op_id: row.name for row in rows}
    for row in rows:
        row.parent = by_id.get(row.parent_op_id)
    return rows


def stack() -> str | None:
    """The name of the op on top of this thread's stack."""
    top = _native.top()
    return next((row.name for row in drained() if row.op_id == top), None)
