"""Check of the clocks: device work must start after its op and its launch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.analysis.base.device_work import device_work
from epprof_nb.arrays.ids import IdIndex, mask_as_rows
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.table import Table

EPSILON_NS = 1_000
"""Tolerance for the interpolation of the device clock; a larger difference means a clock is wrong.

Measured on an H200 with CUPTI 13.0: no kernel of 318,000 in three profiles began before its op or
its launch.
"""


def check(ops: Table, activities: Table, api_calls: Table) -> dict[str, Any]:
    """Compare the start of device work with the start of its op and of its launch.

    Parameters
    ----------
    ops, activities, api_calls
        Tables of one profile, with times in one base.

    Returns
    -------
    result
        JSON-serialisable: ``before_op`` and ``before_launch``, each with ``compared`` (device
        work whose op, or API call, is in the profile), ``early`` (work that starts before it),
        ``share`` (of ``early`` in ``compared``), ``worst_ns`` (largest difference) and ``beyond``
        (number of differences over `EPSILON_NS`).
    """
    rows = mask_as_rows(device_work(activities))
    start = activities["start_ns"][rows]
    op = IdIndex(ops["op_id"]).rows(activities["op_id"][rows])
    if len(ops):
        # Ops of an earlier profile have no time on this clock. Rows of several executions begin
        # with the first one, so they still count.
        is_earlier = ops.names("status").equals("earlier")
        if is_earlier.any():
            op[(op >= 0) & is_earlier[op]] = MISSING
    call = IdIndex(api_calls["correlation_id"]).rows(activities["correlation_id"][rows])
    return {
        "before_op": _early(start, ops["start_ns"], op),
        "before_launch": _early(start, api_calls["start_ns"], call),
    }


def _early(start: IntArray, cause_start: IntArray, cause: IntArray) -> dict[str, Any]:
    known = mask_as_rows(cause >= 0)
    difference = cause_start[cause[known]]
    difference -= start[known]
    compared, early = len(difference), int(np.count_nonzero(difference > 0))
    return {
        "compared": compared,
        "early": early,
        "share": early / max(1, compared),
        "worst_ns": int(difference.max(initial=0)),
        "beyond": int(np.count_nonzero(difference > EPSILON_NS)),
    }


def notes(result: dict[str, Any]) -> list[str]:
    """Return notes on the result of `check`; none for differences up to `EPSILON_NS`."""
    found = []
    for key, what in (("before_op", "op"), ("before_launch", "launch")):
        part = result[key]
        if part["beyond"]:
            found.append(
                f"{part['beyond']:,} of {part['compared']:,} kernels, copies and memsets seem to "
                f"start before their {what}, by up to {part['worst_ns'] / 1e3:,.1f} µs: the "
                "clocks of device and host disagree in this profile. Durations are correct; "
                "launch delays are not. Profile again; if this note appears again, restart the "
                "kernel."
            )
    return found
