"""Repeats of the profiled code: the repeat to which each op and activity belongs.

A repeat is a time range on the host's clock. An op belongs to the repeat in which it started, and
an activity to the repeat in which it was launched, even if the device executed it later. The
repeats of a script that calls `epprof_nb.step` are its steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from epprof_nb.arrays.ids import IdIndex
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.table import Table


class RepeatNames(NamedTuple):
    """Name of the repeats: what one is, and the number of the first one."""

    unit: Literal["repeat", "step", "decode step"]
    first: int


def repeat_names(info: Mapping[str, Any]) -> RepeatNames:
    """Return the name of the repeats; steps are numbered from ``info["first_step"]`` on."""
    first = info.get("first_step")
    return RepeatNames("repeat", 0) if first is None else RepeatNames("step", first)


def repeat_bounds(info: Mapping[str, Any]) -> tuple[IntArray, IntArray]:
    """Return the start and end of each repeat, as in ``info["repeats"]``.

    Returns
    -------
    starts, ends
        int64 arrays, nanoseconds since the profile's start, ascending; empty for a profile without
        repeats.
    """
    bounds = np.array(info.get("repeats") or np.empty((0, 2)), np.int64).reshape(-1, 2)
    return bounds[:, 0], bounds[:, 1]


def with_repeats(tables: Mapping[str, Table], info: Mapping[str, Any]) -> dict[str, Table]:
    """Return the tables with the column `repeat` of ops and activities filled.

    Parameters
    ----------
    tables
        The tables ``ops``, ``activities`` and ``api_calls``, and any others.
    info
        The profile's info, with ``repeats``.
    """
    starts, ends = repeat_bounds(info)
    ops, activities, calls = (tables[name] for name in ("ops", "activities", "api_calls"))
    of_op = repeat_at(starts, ends, ops["start_ns"])
    # A row with executions in several repeats belongs to none of them.
    several = (ops["count"] > 1) & (repeat_at(starts, ends, ops["end_ns"]) != of_op)
    of_op[several] = MISSING
    call = IdIndex(calls["correlation_id"]).rows(activities["correlation_id"])
    op = IdIndex(ops["op_id"]).rows(activities["op_id"])
    # Without a recorded call, the launch was during the op; without an op, its start is the best
    # known time.
    launch = np.append(calls["start_ns"], 0)[call]
    launched = np.where(call >= 0, repeat_at(starts, ends, launch), np.append(of_op, MISSING)[op])
    unknown = (call < 0) & (op < 0)
    launched[unknown] = repeat_at(starts, ends, activities["start_ns"][unknown])
    return {
        **tables,
        "ops": ops.replace(repeat=of_op),
        "activities": activities.replace(repeat=launched),
    }


def repeat_at(starts: IntArray, ends: IntArray, times: IntArray) -> IntArray:
    """Return the number of the repeat at each time, from 0; `MISSING` outside of all repeats.

    Parameters
    ----------
    starts, ends
        Start and end of each repeat, ascending.
    times
        int64 array, nanoseconds since the profile's start.
    """
    if not len(starts):
        return np.full(len(times), MISSING, np.int64)
    at = np.searchsorted(starts, times, side="right") - 1
    return np.where((at >= 0) & (times <= ends[at]), at, MISSING)
