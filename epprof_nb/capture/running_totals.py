"""Running totals of a recording that goes on: what is shown while a long cell runs.

They are made from the batches of the capture service as they are cut. The profile is exact; these
numbers need not be: time by op is taken from a sample where a batch is large, and work whose
launch lies far back is nobody's.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from epprof_nb.arrays.ids import find
from epprof_nb.arrays.intervals import union
from epprof_nb.core.native_columns import ids, name_of, numbers
from epprof_nb.data.schema import MISSING
from epprof_nb.host.device import HOST_DEVICE_ID

if TYPE_CHECKING:
    from epprof_nb.capture.service import Batch
    from epprof_nb.data.table import Table

I64 = npt.NDArray[np.int64]

_SAMPLE = 4_000
"""Activities of a batch whose op is looked up at most."""
_KEPT = 6
"""Batches whose launches and ops are remembered for activities that come late."""
_RATE_NS = 2_000_000_000
_BUSY = ("kernel", "memcpy", "memset")
# Native/core/records.h.
_NO_OP, _CELL_WAITED = np.uint64(1 << 63), 8
_STATEMENT, _CELL = 1, 2
_DEEPEST = 12
"""Statements above one another that are searched for a named op."""


@dataclass(frozen=True, slots=True)
class Progress:
    """What was recorded until now.

    Attributes
    ----------
    elapsed_ns
        Time since the recording began.
    device_word
        ``GPU``, or ``device`` where only the host device worked.
    busy
        Share of that time in which a device was busy, 0 to 1, the mean over the devices that
        worked; None before the first activity.
    kernels, copies, copy_bytes
        How many of each, and the bytes copied.
    kernels_per_s
        Kernels a second over about the last two seconds.
    top
        Ops that launched most, with their share of the device time, 0 to 1: the innermost named
        op around the launch, or else the statement.
    lost
        Records that found no room.
    """

    elapsed_ns: int
    device_word: str
    busy: float | None
    kernels: int
    copies: int
    copy_bytes: int
    kernels_per_s: float
    top: tuple[tuple[str, float], ...]
    lost: int


class Tally:
    """Adds up batches.

    Parameters
    ----------
    opened_ns
        When the recording began, CLOCK_MONOTONIC nanoseconds.
    """

    def __init__(self, opened_ns: int) -> None:
        self._opened_ns = opened_ns
        self._counts = dict.fromkeys(_BUSY, 0)
        self._copy_bytes = 0
        self._lost = 0
        self._busy_ns: dict[int, int] = {}
        self._reach: dict[int, int] = {}
        self._op_ns: dict[int, float] = {}
        self._sampled_ns = 0.0
        self._rates = deque([(opened_ns, 0)])
        self._launches: deque[tuple[I64, I64]] = deque(maxlen=_KEPT)
        self._ops: deque[tuple[I64, I64]] = deque(maxlen=_KEPT)
        self._op_names: list[str] = []

    def add(self, batch: Batch) -> None:
        """Add what a batch recorded."""
        self._lost += batch.ops["lost"] + batch.launches["lost"]
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
        self._launches.appendleft(_ops_of_launches(batch.launches))
        for recorded in batch.recorded:
            self._lost += recorded.dropped
            if recorded.op_of_correlation is not None:
                correlation, op = recorded.op_of_correlation
                self._launches.appendleft((correlation, op[np.newaxis]))
            if len(recorded.activities):
                self._add_activities(recorded.activities)

    def _add_activities(self, activities: Table) -> None:
        kinds = activities.names("kind")
        working = np.zeros(len(activities), np.bool_)
        for kind in _BUSY:
            of_kind = kinds.equals(kind)
            self._counts[kind] += int(np.count_nonzero(of_kind))
            working |= of_kind
        moved = activities["bytes"][kinds.equals("memcpy")]
        self._copy_bytes += int(np.maximum(moved, 0).sum())
        rows = np.flatnonzero(working)
        start, end = activities["start_ns"][rows], activities["end_ns"][rows]
        device = activities["device_id"][rows]
        for number in np.unique(device).tolist():
            mine = device == number
            self._add_busy(number, start[mine], end[mine])
        duration = end - start
        step = -(-len(rows) // _SAMPLE) or 1
        self._add_ops(activities["correlation_id"][rows[::step]], duration[::step] * step)

    def _add_busy(self, device: int, start: I64, end: I64) -> None:
        """Add the time in which a device worked; what earlier batches cover counts once."""
        reach = self._reach.get(device, self._opened_ns)
        starts, ends = union(np.maximum(start, reach), end)
        self._busy_ns[device] = self._busy_ns.get(device, 0) + int((ends - starts).sum())
        self._reach[device] = max(reach, int(end.max()))

    def _add_ops(self, correlation: I64, duration: I64) -> None:
        """Add the time of activities to the names of their ops."""
        self._sampled_ns += float(duration.sum())
        op, place = np.unique(_look_up(self._launches, correlation)[0], return_inverse=True)
        spent = np.bincount(place, duration, len(op))
        for number, ns in zip(self._labels(op).tolist(), spent.tolist(), strict=True):
            if number != MISSING:
                self._op_ns[number] = self._op_ns.get(number, 0) + ns

    def _labels(self, op: I64) -> I64:
        """Name id of the innermost named op at or above each op, or else of the op itself."""
        label = np.full(len(op), MISSING, np.int64)
        rows, at = np.arange(len(op)), op
        for _ in range(_DEEPEST):
            name, parent, category = _look_up(self._ops, at, 3)
            label[rows] = np.where(label[rows] == MISSING, name, label[rows])
            unnamed = (category == _STATEMENT) | (category == _CELL)
            named = (category != MISSING) & ~unnamed
            label[rows[named]] = name[named]
            rows, at = rows[unnamed], parent[unnamed]
            if not len(rows):
                break
        return label

    def progress(self, now_ns: int, *, top: int = 5) -> Progress:
        """Return the totals; `top` is the number of ops named."""
        elapsed = max(now_ns - self._opened_ns, 1)
        kernels = self._counts["kernel"]
        self._rates.append((now_ns, kernels))
        while len(self._rates) > 2 and now_ns - self._rates[1][0] >= _RATE_NS:
            self._rates.popleft()
        since, before = self._rates[0]
        busy = [min(ns / elapsed, 1.0) for ns in self._busy_ns.values()]
        largest = sorted(self._op_ns.items(), key=lambda item: -item[1])[:top]
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
            lost=self._lost,
        )


def _ops_of_launches(raw: dict[str, Any]) -> tuple[I64, I64]:
    """Correlation ids of a batch's API calls, and the op of each; missing where it has none."""
    tagged = numbers(raw, "op_id", np.uint64)
    waited = (numbers(raw, "flags", np.uint16) & _CELL_WAITED) != 0
    op = (tagged & ~_NO_OP).astype(np.int64)
    has_op = ((tagged & _NO_OP) == 0) | waited
    of_call = np.where(has_op & (op != 0), op, MISSING)
    return ids(raw, "correlation_id", np.uint64), of_call[np.newaxis]


def _look_up(recent: deque[tuple[I64, I64]], wanted: I64, rows: int = 1) -> I64:
    """`rows` values of each wanted key, from the newest batch that has it; else missing."""
    result = np.full((rows, len(wanted)), MISSING, np.int64)
    for keys, values in recent:
        open_ = np.flatnonzero((result[0] == MISSING) & (wanted > 0))
        if not len(open_):
            break
        row = find(keys, wanted[open_])
        result[:, open_[row >= 0]] = values[:, row[row >= 0]]
    return result
