"""Ops that an experiment can delay: named ranges, on the host and on the device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from epprof_nb.analysis.critical_path.chain import CriticalPath, ops_below

if TYPE_CHECKING:
    from collections.abc import Collection

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import BoolArray

Side = Literal["device", "host"]
SIDES: tuple[Side, Side] = ("device", "host")

MIN_SHARE = 0.02
"""Least time of a factor, as a share of the wall time: less cannot win more."""


class DelayedOp(NamedTuple):
    """An op of the profile that a repeat executes, per repeat.

    Attributes
    ----------
    name
        Name of the range.
    executions
        Number of executions, rounded down.
    device_ns, host_ns
        Time of its device work, and of its code and API calls without their waits for a device;
        with all ops below it.
    streams
        Number of streams on which it has work.
    uncovered
        Why its device work cannot be delayed; empty if it can, or if it has none.
    """

    name: str
    executions: int
    device_ns: float
    host_ns: float
    streams: int
    uncovered: str

    def time_ns(self, side: Side) -> float:
        """Return its time on a side."""
        return self.device_ns if side == "device" else self.host_ns


class Factor(NamedTuple):
    """The side of an op that an experiment delays: its code, or its device work."""

    op: str
    side: Side


def ranges(index: ProfileIndex) -> BoolArray:
    """Return which ops are named ranges that ran in the profile."""
    ops = index.profile.tables["ops"]
    return ops.names("op_type").equals("range") & ~ops.names("status").equals("earlier")


def delayed_ops(index: ProfileIndex, devices: Collection[int], repeats: int) -> list[DelayedOp]:
    """Return the named ranges of a profile, by descending time.

    Parameters
    ----------
    index
        Index of a profile of unperturbed repeats.
    devices
        Ids of the devices that can be delayed.
    repeats
        Number of repeats of the profile.
    """
    tables = index.profile.tables
    ops, activities = tables["ops"], tables["activities"]
    names = ops.names("name")
    is_range = ranges(index)
    path = index.cached(CriticalPath, "launch").input
    calls = tables["api_calls"]
    waits = np.where(path.waiting_calls, calls["end_ns"] - calls["start_ns"], 0)
    work_ns = np.where(index.is_device_work, activities["end_ns"] - activities["start_ns"], 0)
    found = []
    for code in np.unique(names.codes[is_range]).tolist():
        own = is_range & (names.codes == code)
        below = np.append(ops_below(index, own), False)
        outer = own & index.tree.is_outermost(np.where(own, 0, -1))
        of_op = below[index.activity_op] & index.is_device_work
        streams = np.unique(
            np.stack([activities[column][of_op] for column in ("device_id", "stream_id")]), axis=1
        )
        host_ns = ops["duration_ns"][outer].sum() - waits[below[index.call_op]].sum()
        found.append(
            DelayedOp(
                names.categories[code],
                int(ops["count"][own].sum()) // repeats,
                float(work_ns[of_op].sum() / repeats),
                max(float(host_ns / repeats), 0.0),
                streams.shape[1],
                _uncovered(set(streams[0].tolist()) - set(devices), streams.shape[1]),
            )
        )
    return sorted(found, key=lambda op: -max(op.device_ns, op.host_ns))


def _uncovered(others: set[int], streams: int) -> str:
    if others:
        return "its device cannot be delayed"
    return f"it launches to {streams} streams" if streams > 1 else ""


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
