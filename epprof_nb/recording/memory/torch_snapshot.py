"""Snapshots of PyTorch's allocator of GPU memory, read into arrays."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.arrays.stable_order import stable_order
from epprof_nb.recording.memory.thread_marks import ThreadsByText
from epprof_nb.recording.ops_by_time import UNKNOWN_THREAD

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from epprof_nb.arrays.types import BoolArray, IntArray

ACTIONS = (
    "alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map",
    "segment_unmap", "snapshot", "oom", "other",
)  # fmt: skip
"""Actions of the allocator, in the order of their codes; "other" stands for an unknown one."""

STATES = ("inactive", "active_allocated", "active_awaiting_free")
"""States of a block, in the order of their codes: free, in use, and freed by the program while a
stream still uses it."""

INACTIVE, ALLOCATED, AWAITING_FREE = range(len(STATES))
_OTHER = len(ACTIONS) - 1
_PART = 2048
"""Events whose columns are read together."""
_ACTION_CODES = defaultdict(lambda: _OTHER, {name: code for code, name in enumerate(ACTIONS)})
_STATE_CODES = {
    **{name: code for code, name in enumerate(STATES)},
    "active_pending_free": AWAITING_FREE,  # as most releases call it
}


@dataclass(frozen=True, slots=True)
class Segments:
    """Segments: the pieces of device memory that the allocator took from the driver.

    Attributes
    ----------
    device, address, nbytes, stream : int64 arrays
        One value per segment.
    pool : int64 array of shape (n, 2)
        Identity of the private pool, as of a CUDA graph; zeros for the common pool.
    is_expandable : bool array
        Whether it can grow.
    """

    device: IntArray
    address: IntArray
    nbytes: IntArray
    stream: IntArray
    pool: IntArray
    is_expandable: BoolArray

    def __len__(self) -> int:
        return len(self.address)


@dataclass(frozen=True, slots=True)
class Blocks:
    """Blocks: the parts of segments, in use or free.

    Attributes
    ----------
    segment : int64 array
        Row of the segment of each block.
    address, nbytes : int64 arrays
        Place and size, which is rounded up.
    requested : int64 array
        Bytes that the program requested; for the last use if the block is free.
    state : int8 array
        Codes of `STATES`.
    """

    segment: IntArray
    address: IntArray
    nbytes: IntArray
    requested: IntArray
    state: npt.NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.address)


@dataclass(frozen=True)
class Events:
    """Events of the allocator: the history, in its order on each device.

    Attributes
    ----------
    device : int64 array
    action : int8 array
        Codes of `ACTIONS`.
    address : int64 array
        Address; of ``oom`` the bytes that the driver had free.
    nbytes : int64 array
        Bytes requested; of ``segment_`` actions the size of the segment.
    stream : int64 array
    time_us : int64 array
        Microseconds since the epoch, rounded down.
    thread : int64 array
        Native thread of each event, as of `thread_marks`.
    """

    device: IntArray
    action: npt.NDArray[np.int8]
    address: IntArray
    nbytes: IntArray
    stream: IntArray
    time_us: IntArray
    thread: IntArray

    def __len__(self) -> int:
        return len(self.action)

    @cached_property
    def by_address(self) -> IntArray:
        """Rows in the order of their addresses, and of the events of each address."""
        return stable_order(self.address)

    @cached_property
    def time_ns(self) -> IntArray:
        """Times in nanoseconds that keep the order of the events of each device.

        The history has whole microseconds. Events in the same one are spread evenly over it.
        """
        time = self.time_us * 1000
        follows = np.zeros(len(time) + 1, np.bool_)
        follows[1:-1] = (time[1:] == time[:-1]) & (self.device[1:] == self.device[:-1])
        shared = np.flatnonzero(follows[:-1] | follows[1:])  # most have their own microsecond
        begin = np.flatnonzero(~follows[shared])
        count = np.diff(np.append(begin, len(shared)))
        place = np.arange(len(shared)) - np.repeat(begin, count)
        time[shared] += place * 1000 // np.repeat(count, count)
        return time

    def of(self, *actions: str) -> BoolArray:
        """Return the mask of the events with one of these actions."""
        chosen = np.zeros(len(ACTIONS), np.bool_)
        chosen[[_ACTION_CODES[name] for name in actions]] = True
        found: BoolArray = chosen[self.action]
        return found


@dataclass(frozen=True, slots=True)
class TorchSnapshot:
    """A snapshot of PyTorch's allocator, of all devices.

    Attributes
    ----------
    segments, blocks, events
        Its tables.
    settings : dict
        Settings of the allocator by name; empty in old releases.
    """

    segments: Segments
    blocks: Blocks
    events: Events
    settings: dict[str, Any]

    def in_use(self) -> BoolArray:
        """Return the mask of the blocks in use, which PyTorch counts as allocated."""
        used: BoolArray = self.blocks.state == ALLOCATED
        return used


def read_snapshot(snapshot: Mapping[str, Any]) -> TorchSnapshot:
    """Read what ``torch.cuda.memory._snapshot()`` returned, or a pickle of it.

    Parameters
    ----------
    snapshot
        The snapshot of PyTorch 2.1 or newer. It is not changed and not referred to.

    Returns
    -------
    read
        Its segments, blocks and events as arrays.

    Raises
    ------
    KeyError, TypeError
        If it is not such a snapshot.

    Examples
    --------
    >>> block = {"address": 512, "size": 512, "requested_size": 12, "state": "active_allocated"}
    >>> segment = {
    ...     "device": 0, "address": 512, "total_size": 512, "stream": 0, "segment_type": "small",
    ...     "blocks": [block],
    ... }
    >>> read = read_snapshot({"segments": [segment], "device_traces": []})
    >>> read.blocks.requested[read.in_use()].tolist()
    [12]
    """
    segments = snapshot["segments"]
    traces = snapshot["device_traces"]
    return TorchSnapshot(
        _segments(segments),
        _blocks(segments),
        _events(traces),
        dict(snapshot.get("allocator_settings") or {}),
    )


def _segments(segments: Sequence[Mapping[str, Any]]) -> Segments:
    pools = [segment.get("segment_pool_id", (0, 0)) for segment in segments]
    return Segments(
        _column(segments, "device"),
        _column(segments, "address"),
        _column(segments, "total_size"),
        _column(segments, "stream"),
        np.array(pools, np.int64).reshape(-1, 2),
        np.array([segment.get("is_expandable", False) for segment in segments], np.bool_),
    )


def _blocks(segments: Sequence[Mapping[str, Any]]) -> Blocks:
    lists = [segment["blocks"] for segment in segments]
    counts = np.array([len(blocks) for blocks in lists], np.int64)
    rows = list(chain.from_iterable(lists))
    return Blocks(
        np.repeat(np.arange(len(segments)), counts),
        _column(rows, "address"),
        _column(rows, "size"),
        _column(rows, "requested_size"),
        _codes(rows, "state", _STATE_CODES),
    )


def _events(traces: Sequence[Sequence[Mapping[str, Any]]]) -> Events:
    counts = np.array([len(trace) for trace in traces], np.int64)
    rows = traces[0] if len(traces) == 1 else list(chain.from_iterable(traces))
    threads = ThreadsByText()
    # A part of the rows stays in the processor's cache from column to column.
    parts = [
        (
            _codes(part, "action", _ACTION_CODES),
            _addresses(part),
            _column(part, "size"),
            _column(part, "stream"),
            _column(part, "time_us"),
            _threads(part, threads),
        )
        for part in (rows[i : i + _PART] for i in range(0, max(len(rows), 1), _PART))
    ]
    columns = [np.concatenate(of_parts) for of_parts in zip(*parts, strict=True)]
    return Events(np.repeat(np.arange(len(traces)), counts), *columns)


def _addresses(rows: Sequence[Mapping[str, Any]]) -> IntArray:
    try:
        return _column(rows, "addr")
    except KeyError:  # out of memory
        found = (row["addr"] if "addr" in row else row.get("device_free", 0) for row in rows)
        return np.fromiter(found, np.int64, len(rows))


def _threads(rows: Sequence[Mapping[str, Any]], threads: ThreadsByText) -> IntArray:
    if not rows or "user_metadata" not in rows[0]:
        return np.full(len(rows), UNKNOWN_THREAD, np.int64)
    texts = map(itemgetter("user_metadata"), rows)
    return np.fromiter(map(threads.__getitem__, texts), np.int64, len(rows))


def _codes(
    rows: Sequence[Mapping[str, Any]], name: str, codes: Mapping[str, int]
) -> npt.NDArray[np.int8]:
    return np.fromiter(map(codes.__getitem__, map(itemgetter(name), rows)), np.int8, len(rows))


def _column(rows: Sequence[Mapping[str, Any]], name: str) -> IntArray:
    return np.fromiter(map(itemgetter(name), rows), np.int64, len(rows))
