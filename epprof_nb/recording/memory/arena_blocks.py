"""Blocks of the arenas from which kernels in Python, and their sessions, get device memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb import _native
from epprof_nb.arrays.ids import contains
from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.schema import MEMORY_BLOCKS, MEMORY_SEGMENTS, MISSING, MISSING_DELTA
from epprof_nb.data.table import Table
from epprof_nb.host.device import HOST_DEVICE_ID
from epprof_nb.recording.memory.address_lives import UNSEEN, address_lives
from epprof_nb.recording.memory.pool_totals import OWN_POOL
from epprof_nb.recording.native_columns import numbers

if TYPE_CHECKING:
    import numpy.typing as npt

    from epprof_nb.arrays.types import BoolArray, IntArray

_ALLOCATED, _FREED, _REGION_ADDED, _REGION_RELEASED = range(4)
_HOST = -1
_BEFORE = -(2**63)
"""Time of memory that the arena held when the log began."""


@dataclass(frozen=True, slots=True)
class ArenaMemory:
    """Events of the arenas of all devices since the log began, in order on each device.

    ``columns`` come from `_native.ep_memory_log_read`, which left out ``dropped`` events.
    """

    columns: dict[str, Any]
    dropped: int


class ArenaLog:
    """Logs the memory of the arenas between `start` and `stop`."""

    def __init__(self) -> None:
        self._is_on = False
        self._dropped = 0

    def start(self, most: int) -> None:
        """Log at most `most` events of each device."""
        if not self._is_on:
            self._is_on, self._dropped = True, 0
            _native.ep_memory_log_start(most)

    def stop(self) -> None:
        """Stop, and forget the events."""
        if self._is_on:
            self._is_on, self._dropped = False, 0
            _native.ep_memory_log_stop()

    def take(self) -> ArenaMemory | None:
        """Return the events since `start`; None if there are none, or no log."""
        if not self._is_on:
            return None
        raw = _native.ep_memory_log_read()
        self._dropped = raw.pop("dropped")
        return ArenaMemory(raw, self._dropped) if raw["action"] else None

    def notes(self) -> list[str]:
        """Return how many events `take` found to be dropped."""
        if not self._dropped:
            return []
        note = (
            f"{self._dropped:,} allocations and releases of kernels in Python were dropped: the "
            "profile has max_records of them. Later blocks are missing, and some that were "
            "released seem to be in use. Profile fewer runs."
        )
        return [note]


def arena_tables(memory: ArenaMemory, ops: Table, opened_ns: int) -> tuple[Table, Table]:
    """Return the blocks and the segments of the arenas.

    Parameters
    ----------
    memory
        Their events.
    ops
        The ops of the recording; events in others have none.
    opened_ns
        The begin of the profile on the clock of the events.
    """
    action = numbers(memory.columns, "action", np.uint8)
    columns = {
        name: numbers(memory.columns, name, np.int64) for name in memory.columns if name != "action"
    }
    device, op = columns["device_id"], columns["op_id"]
    columns["device_id"] = np.where(device == _HOST, HOST_DEVICE_ID, device)
    columns["op_id"] = np.where(contains(ops["op_id"], op), op, MISSING)
    time = columns["time_ns"]
    was_before = time == _BEFORE
    columns["time_ns"] = np.where(was_before, MISSING_DELTA, time - opened_ns * ~was_before)
    blocks, begin, end = _lives(columns, action == _ALLOCATED, action == _FREED)
    taken = {
        **blocks,
        "stream_id": columns["stream_id"][_either(begin, end)],
        "requested_bytes": columns["requested_bytes"][_either(begin, end)],
        "op_id": np.append(columns["op_id"], MISSING)[begin],
        "freed_op_id": np.append(columns["op_id"], MISSING)[end],
    }
    held, _, _ = _lives(columns, action == _REGION_ADDED, action == _REGION_RELEASED)
    return Table(MEMORY_BLOCKS, taken), Table(MEMORY_SEGMENTS, held)


def _lives(
    columns: dict[str, IntArray], is_begin: BoolArray, is_end: BoolArray
) -> tuple[dict[str, npt.NDArray[Any] | CategoryColumn], IntArray, IntArray]:
    """Return the columns that blocks and segments share, and the rows of begin and end."""
    chosen = np.flatnonzero(is_begin | is_end)
    found = address_lives(columns["address"][chosen], is_begin[chosen])
    begin, end = (np.append(chosen, UNSEEN)[rows] for rows in found)
    row = _either(begin, end)
    time = np.append(columns["time_ns"], MISSING_DELTA)
    shared: dict[str, npt.NDArray[Any] | CategoryColumn] = {
        "pool": CategoryColumn(np.zeros(len(row), np.int32), (OWN_POOL,)),
        "device_id": columns["device_id"][row],
        "address": columns["address"][row],
        "bytes": columns["bytes"][row],
        "allocated_ns": time[begin],
        "freed_ns": time[end],
    }
    return shared, begin, end


def _either(begin: IntArray, end: IntArray) -> IntArray:
    return np.where(begin == UNSEEN, end, begin)
