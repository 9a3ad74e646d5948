"""Whether device work starts after what launched it, as it must: a check on the clocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.analysis.attribution import device_work
from epprof_nb.arrays.ids import IdIndex
from epprof_nb.data.schema import MISSING

if TYPE_CHECKING:
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.table import Table

EPSILON_NS = 1_000
"""Up to this much early is the device clock's interpolation; more is a fault in some clock.

Measured on an H200 with CUPTI 13.0: of 318,000 kernels in three profiles none began before its op
or its launch.
"""


def check(ops: Table, activities: Table, api_calls: Table) -> dict[str, Any]:
    """Compare the start of device work with the begin of its op and of its launch.

    Parameters
    ----------
    ops, activities, api_calls
        Tables of one profile, their times in one base.

    Returns
    -------
    found
        JSON-serialisable: ``before_op`` and ``before_launch``, each with ``compared`` (kernels,
        copies and sets whose op, or API call, is in the profile), ``early`` (those that seem to
        start before it), ``share`` (of them among those compared), ``worst_ns`` (by how much at
        most) and ``beyond`` (how many by more than `EPSILON_NS`).
    """
    rows = np.flatnonzero(device_work(activities))
    start = activities["start_ns"][rows]
    op_id = activities["op_id"][rows]
    op = np.where(op_id == MISSING, MISSING, IdIndex(ops["op_id"]).rows(op_id))
    if len(ops):
        # Rows that stand for many executions begin with the first; those still count.
        earlier = ops.names("status").equals("earlier")
        op = np.where((op >= 0) & earlier[op], MISSING, op)
    correlation = activities["correlation_id"][rows]
    call = IdIndex(api_calls["correlation_id"]).rows(correlation)
    call[correlation == MISSING] = MISSING
    return {
        "before_op": _early(start, ops["start_ns"], op),
        "before_launch": _early(start, api_calls["start_ns"], call),
    }


def _early(start: IntArray, begun: IntArray, row: IntArray) -> dict[str, Any]:
    known = row >= 0
    by = begun[row[known]] - start[known]
    early = by > 0
    compared = int(known.sum())
    return {
        "compared": compared,
        "early": int(early.sum()),
        "share": float(early.sum()) / max(1, compared),
        "worst_ns": int(by.max(initial=0)),
        "beyond": int((by > EPSILON_NS).sum()),
    }


def note(found: dict[str, Any]) -> list[str]:
    """Return what to say of the result of `check`: nothing below `EPSILON_NS`."""
    told = []
    for key, what in (("before_op", "op"), ("before_launch", "launch")):
        part = found[key]
        if part["beyond"]:
            told.append(
                f"{part['beyond']:,} of {part['compared']:,} kernels, copies and sets seem to "
                f"start before their {what} did, by up to {part['worst_ns'] / 1e3:,.1f} µs: the "
                "device's clock and the host's disagree in this profile. Durations hold; the "
                "delay from launch to start does not. Profile again; if it stays, restart the "
                "kernel."
            )
    return told
