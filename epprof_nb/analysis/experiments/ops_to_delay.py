"""Ops that an experiment can delay, on the host and on the device: named ranges, ONNX nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

import numpy as np

from epprof_nb.analysis.critical_path.chain import CriticalPath, ops_below
from epprof_nb.arrays.intervals import union
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.data.profile_data import ProfileData
    from epprof_nb.data.table import Table

Side = Literal["device", "host"]
SIDES: tuple[Side, Side] = ("device", "host")

MIN_SHARE = 0.02
"""Least time of a factor, as a share of the wall time: less cannot win more."""


class DelayedOp(NamedTuple):
    """An op of the profile that a repeat executes, per repeat.

    Attributes
    ----------
    name
        Name of the range or node.
    executions
        Number of executions, rounded down.
    device_ns, host_ns
        Time of its device work, and of its code and API calls without their waits for a device;
        with all ops below it. Executions that are open at once on several threads add up.
    open_ns
        For how long it was open on at least one thread.
    streams
        Numbers of the streams that it launches to.
    launching
        Numbers of the executions in a repeat that launch work, in the order of their ends, from 0.
    uncovered
        Why its device work cannot be delayed; empty if it can, or if it has none.
    """

    name: str
    executions: int
    device_ns: float
    host_ns: float
    open_ns: float
    streams: tuple[int, ...]
    launching: IntArray
    uncovered: str

    def time_ns(self, side: Side) -> float:
        """Return its time on a side."""
        return self.device_ns if side == "device" else self.host_ns


class Streams(Protocol):
    """The streams of a device whose work can be delayed."""

    def streams(self, profile: ProfileData) -> IntArray:
        """Return a number of the stream that each activity was launched to."""

    def uncovered(self, stream: int) -> str:
        """Return why a stream cannot be delayed; empty if it can."""


class Factor(NamedTuple):
    """The side of an op that an experiment delays: its code, or its device work."""

    op: str
    side: Side


def delays_nodes(profile: ProfileData) -> bool:
    """Return whether the ONNX nodes of a profile can be delayed: all runs were recorded by node."""
    return bool((profile.info.get("recording") or {}).get("ort_nodes") == "every")


def rows_to_delay(index: ProfileIndex) -> BoolArray:
    """Return which ops that ran in the profile can be delayed: named ranges, and ONNX nodes."""
    ops = index.profile.tables["ops"]
    found = ops.names("op_type").equals("range")
    if delays_nodes(index.profile):
        found |= ops.names("category").equals("node")
    return found & ~ops.names("status").equals("earlier")


def delayed_ops(
    index: ProfileIndex, repeats: int, device: Streams | None = None
) -> list[DelayedOp]:
    """Return the named ranges of a profile and its ONNX nodes, by descending time.

    Parameters
    ----------
    index
        Index of a profile of unperturbed repeats.
    repeats
        Number of repeats of the profile.
    device
        The device whose work can be delayed; None: nothing has to be delayed.
    """
    tables = index.profile.tables
    ops, activities = tables["ops"], tables["activities"]
    names = ops.names("name")
    is_delayed = rows_to_delay(index)
    path = index.cached(CriticalPath, "launch").input
    calls = tables["api_calls"]
    waits = np.where(path.waiting_calls, calls["end_ns"] - calls["start_ns"], 0)
    work_ns = np.where(index.is_device_work, activities["end_ns"] - activities["start_ns"], 0)
    stream_of = None if device is None else device.streams(index.profile)
    work = index.activity_op[index.is_device_work]
    launches = index.tree.subtree_sum(np.bincount(work[work >= 0], minlength=len(ops)))
    found = []
    for code in np.unique(names.codes[is_delayed]).tolist():
        own = is_delayed & (names.codes == code)
        below = np.append(ops_below(index, own), False)
        outer = own & index.tree.is_outermost(np.where(own, 0, -1))
        of_op = below[index.activity_op] & index.is_device_work
        streams = () if stream_of is None else tuple(np.unique(stream_of[of_op]).tolist())
        host_ns = ops["duration_ns"][outer].sum() - waits[below[index.call_op]].sum()
        opened, closed = union(ops["start_ns"][outer], ops["end_ns"][outer])
        executions = int(ops["count"][own].sum()) // repeats
        found.append(
            DelayedOp(
                names.categories[code],
                executions,
                float(work_ns[of_op].sum() / repeats),
                max(float(host_ns / repeats), 0.0),
                float((closed - opened).sum() / repeats),
                streams,
                _launching(ops, own, launches, executions),
                "" if device is None else _uncovered(streams, device) or _waits(index, own),
            )
        )
    return sorted(found, key=lambda op: -max(op.device_ns, op.host_ns))


def _launching(ops: Table, own: BoolArray, launches: IntArray, executions: int) -> IntArray:
    rows = np.flatnonzero(own)
    rows = rows[np.argsort(ops["end_ns"][rows], kind="stable")]
    numbers: IntArray = np.flatnonzero(launches[rows[:executions]] > 0)
    return numbers


def _waits(index: ProfileIndex, own: BoolArray) -> str:
    """Return that most executions wait for their device work, if they do; else an empty text.

    A delay at the end of such an op is behind the wait, which longer device work would prolong.
    """
    tables, within = index.profile.tables, np.append(index.tree.nearest_ancestor(own), MISSING)
    is_wait, is_work = (
        index.cached(CriticalPath, "launch").input.waiting_calls,
        index.is_device_work,
    )
    last = np.zeros((2, len(own) + 1), np.int64)  # the last wait and the last work of each op
    ends = tables["api_calls"]["end_ns"][is_wait], tables["activities"]["end_ns"][is_work]
    for latest, op, end in zip(
        last, (index.call_op[is_wait], index.activity_op[is_work]), ends, strict=True
    ):
        np.maximum.at(latest, within[op], end)
    wait, work = last[:, :-1]
    launches = own & (work > 0)
    waits = (wait >= work)[launches]
    return "its code waits for it" if len(waits) and waits.mean() > 0.5 else ""


def _uncovered(streams: tuple[int, ...], device: Streams) -> str:
    reasons = [reason for stream in streams if (reason := device.uncovered(stream))]
    if not reasons and len(streams) > 1:
        return f"it launches to {len(streams)} streams"
    return reasons[0] if reasons else ""


def factors_of(found: list[DelayedOp], wall_ns: float) -> list[Factor]:
    """Return the factors worth measuring, by descending time: enclosing ops come first."""
    rated = [
        (op.time_ns(side), Factor(op.name, side))
        for op in found
        for side in SIDES
        if op.executions and not (side == "device" and op.uncovered)
    ]
    least = MIN_SHARE * wall_ns
    return [factor for ns, factor in sorted(rated, key=lambda pair: -pair[0]) if ns >= least]
