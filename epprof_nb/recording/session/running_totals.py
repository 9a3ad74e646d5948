"""Running totals of a recording in progress, shown while a long cell runs.

They are computed from the batches of the recording service. Unlike the profile, they are
approximate: time per op is sampled from large batches, and activities launched more than
`_RECENT_BATCHES` batches ago stay unattributed.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from epprof_nb.arrays.ids import IdIndex
from epprof_nb.arrays.intervals import union
from epprof_nb.data.schema import DEVICE_KINDS, MISSING
from epprof_nb.host.device import HOST_DEVICE_ID
from epprof_nb.recording.native_columns import ids, name_of, numbers
from epprof_nb.recording.session.launch_log import CELL_WAITED, NO_OP, from_external_correlation
from epprof_nb.recording.session.ops_table import CELL
from epprof_nb.recording.statements.statement_registry import STATEMENT

if TYPE_CHECKING:
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.table import Table
    from epprof_nb.recording.session.recording import Batch


_SAMPLE = 4_000
"""Maximum number of activities per batch whose op is looked up."""
_RECENT_BATCHES = 6
"""Batches whose launches and ops are kept to attribute activities of later batches."""
_RATE_NS = 2_000_000_000
"""Interval over which the kernel rate is measured."""
_MAX_OPS = 5
"""Maximum number of ops in a progress."""
_MAX_DEPTH = 12
"""Maximum number of enclosing statements searched for a named op."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Totals of a recording so far.

    Attributes
    ----------
    elapsed_ns
        Time since the start of the recording.
    device_word
        ``GPU``, or ``device`` if only the host device was used.
    busy
        Share of the elapsed time in which a device was busy, from 0 to 1, averaged over the
        devices that were used; None before the first activity.
    kernels, copies, copy_bytes
        Numbers of kernels and copies, and bytes copied.
    kernels_per_s
        Kernels per second over the last two seconds.
    top
        Ops with the most device time, and their share of it from 0 to 1. Device time counts for
        the innermost named op around the launch, or for the statement if there is none.
    dropped
        Number of dropped records.
    """

    elapsed_ns: int
    device_word: str
    busy: float | None
    kernels: int
    copies: int
    copy_bytes: int
    kernels_per_s: float
    top: tuple[tuple[str, float], ...]
    dropped: int


class RunningTotals:
    """Accumulates batches.

    Parameters
    ----------
    opened_ns
        Start of the recording, CLOCK_MONOTONIC nanoseconds.
    """

    def __init__(self, opened_ns: int) -> None:
        self._opened_ns = opened_ns
        self._counts = dict.fromkeys(DEVICE_KINDS, 0)
        self._copy_bytes = 0
        self._dropped = 0
        self._busy_ns: dict[int, int] = {}
        self._busy_until: dict[int, int] = {}
        self._op_ns: dict[int, float] = {}
        self._sampled_ns = 0.0
        self._rates = deque([(opened_ns, 0)])
        self._launches: deque[tuple[IntArray, IntArray]] = deque(maxlen=_RECENT_BATCHES)
        self._ops: deque[tuple[IntArray, IntArray]] = deque(maxlen=_RECENT_BATCHES)
        self._op_names: list[str] = []

    def add(self, batch: Batch) -> None:
        """Add a batch."""
        self._dropped += batch.ops["lost"] + batch.launches["lost"]
        self._op_names = batch.ops["op_names"]
        columns = (
            ids(batch.ops, name, dtype)
            for name, dtype in (
                ("op_id", np.uint64),
                ("name_id", np.uint32),
                ("parent_op_id", np.uint64),
                ("category", np.uint16),
            )
        )
        op_id, *rest = columns
        self._ops.appendleft((op_id, np.stack(rest)))
        raw = batch.launches
        self._launches.appendleft(
            _ops_of_launches(
                ids(raw, "correlation_id", np.uint64),
                numbers(raw, "op_id", np.uint64),
                numbers(raw, "flags", np.uint16),
            )
        )
        external = from_external_correlation(batch.outputs)
        if external is not None:
            self._launches.appendleft(
                _ops_of_launches(external.correlation, external.op, external.flags)
            )
        for output in batch.outputs:
            self._dropped += output.dropped
            if len(output.activities):
                self._add_activities(output.activities)

    def _add_activities(self, activities: Table) -> None:
        kinds = activities.names("kind")
        is_work = np.zeros(len(activities), np.bool_)
        for kind in DEVICE_KINDS:
            of_kind = kinds.equals(kind)
            self._counts[kind] += int(np.count_nonzero(of_kind))
            is_work |= of_kind
        copied = activities["bytes"][kinds.equals("memcpy")]
        self._copy_bytes += int(np.maximum(copied, 0).sum())
        rows = np.flatnonzero(is_work)
        start, end = activities["start_ns"][rows], activities["end_ns"][rows]
        device = activities["device_id"][rows]
        for device_id in np.unique(device).tolist():
            on_device = device == device_id
            self._add_busy(device_id, start[on_device], end[on_device])
        duration = end - start
        step = -(-len(rows) // _SAMPLE) or 1
        self._add_ops(activities["correlation_id"][rows[::step]], duration[::step] * step)

    def _add_busy(self, device: int, start: IntArray, end: IntArray) -> None:
        """Add the busy time of a device, except for time covered by earlier batches."""
        busy_until = self._busy_until.get(device, self._opened_ns)
        starts, ends = union(np.maximum(start, busy_until), end)
        self._busy_ns[device] = self._busy_ns.get(device, 0) + int((ends - starts).sum())
        self._busy_until[device] = max(busy_until, int(end.max()))

    def _add_ops(self, correlation: IntArray, duration: IntArray) -> None:
        """Add the duration of activities to the totals of their ops, by name."""
        self._sampled_ns += float(duration.sum())
        op, inverse = np.unique(_look_up(self._launches, correlation)[0], return_inverse=True)
        device_ns = np.bincount(inverse, duration, len(op))
        for name_id, ns in zip(self._labels(op).tolist(), device_ns.tolist(), strict=True):
            if name_id != MISSING:
                self._op_ns[name_id] = self._op_ns.get(name_id, 0) + ns

    def _labels(self, op: IntArray) -> IntArray:
        """Return the name id of each op's innermost named op, or of the op itself."""
        label = np.full(len(op), MISSING, np.int64)
        rows, ancestor = np.arange(len(op)), op
        for _ in range(_MAX_DEPTH):
            name, parent, category = _look_up(self._ops, ancestor, 3)
            label[rows] = np.where(label[rows] == MISSING, name, label[rows])
            unnamed = (category == STATEMENT) | (category == CELL)
            named = (category != MISSING) & ~unnamed
            label[rows[named]] = name[named]
            rows, ancestor = rows[unnamed], parent[unnamed]
            if not len(rows):
                break
        return label

    def progress(self, now_ns: int) -> Progress:
        """Return the totals, with the ops that have the most device time."""
        elapsed = max(now_ns - self._opened_ns, 1)
        kernels = self._counts["kernel"]
        self._rates.append((now_ns, kernels))
        while len(self._rates) > 2 and now_ns - self._rates[1][0] >= _RATE_NS:
            self._rates.popleft()
        since, before = self._rates[0]
        busy = [min(ns / elapsed, 1.0) for ns in self._busy_ns.values()]
        largest = sorted(self._op_ns.items(), key=lambda item: -item[1])[:_MAX_OPS]
        gpu = any(device != HOST_DEVICE_ID for device in self._busy_ns)
        return Progress(
            elapsed_ns=elapsed,
            device_word="GPU" if gpu else "device",
            busy=sum(busy) / len(busy) if busy else None,
            kernels=kernels,
            copies=self._counts["memcpy"],
            copy_bytes=self._copy_bytes,
            kernels_per_s=(kernels - before) * 1e9 / max(now_ns - since, 1),
            top=tuple(
                (name_of(number, self._op_names), ns / self._sampled_ns) for number, ns in largest
            ),
            dropped=self._dropped,
        )


def _ops_of_launches(
    correlation: IntArray, tagged: npt.NDArray[np.uint64], flags: npt.NDArray[np.uint16]
) -> tuple[IntArray, IntArray]:
    """Return the correlation ids of a batch's API calls, and the op of each or `MISSING`."""
    waited = (flags & CELL_WAITED) != 0
    op = (tagged & ~NO_OP).astype(np.int64)
    has_op = ((tagged & NO_OP) == 0) | waited
    of_call = np.where(has_op & (op != 0), op, MISSING)
    return correlation, of_call[np.newaxis]


def _look_up(recent: deque[tuple[IntArray, IntArray]], keys: IntArray, width: int = 1) -> IntArray:
    """Return `width` values per key from the newest batch that has it, or `MISSING`."""
    result = np.full((width, len(keys)), MISSING, np.int64)
    for known_keys, values in recent:
        missing = np.flatnonzero((result[0] == MISSING) & (keys > 0))
        if not len(missing):
            break
        row = IdIndex(known_keys).rows(keys[missing])
        result[:, missing[row >= 0]] = values[:, row[row >= 0]]
    return result
