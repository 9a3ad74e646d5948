"""Attribution of activities to ops, and the delay of each launch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from epprof_nb.arrays.chunks import chunks

if TYPE_CHECKING:
    from epprof_nb.analysis.base.op_tree import OpTree
    from epprof_nb.arrays.ids import IdIndex
    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.data.table import Table

Attribution: TypeAlias = Literal["launch", "capture"]


def check_attribution(attribution: str) -> None:
    """Raise ValueError if `attribution` is neither of its values."""
    if attribution not in ("launch", "capture"):
        raise ValueError(f"attribution must be 'launch' or 'capture', not {attribution!r}")


def attributed_op_rows(activities: Table, tree: OpTree, attribution: Attribution) -> IntArray:
    """Return the row of the op that each activity is attributed to.

    Parameters
    ----------
    activities
        A table of schema `epprof_nb.data.schema.ACTIVITIES`.
    tree
        The tree of the profile's ops.
    attribution
        ``"launch"`` attributes an activity to the op that launched it. For an activity of a CUDA
        graph, this is the op that replayed the graph. ``"capture"`` attributes an activity of a
        graph to the op that captured it, if that is known.

    Returns
    -------
    rows
        int64 array, one value per activity; `MISSING` for an unattributed activity.

    Raises
    ------
    ValueError
        If `attribution` is unknown.
    """
    check_attribution(attribution)
    rows = tree.rows(activities["op_id"])
    if attribution == "capture":
        captured = tree.rows(activities["capture_op_id"])
        rows = np.where(captured >= 0, captured, rows)
    return rows


def launch_delays(
    activities: Table, api_calls: Table, calls: IdIndex
) -> tuple[IntArray, BoolArray]:
    """Return the time from the start of each activity's API call to its own start.

    Parameters
    ----------
    activities, api_calls
        Tables of schemas `epprof_nb.data.schema.ACTIVITIES` and `epprof_nb.data.schema.API_CALLS`.
    calls
        Index of the API calls by correlation id.

    Returns
    -------
    delays
        int64 array, nanoseconds, one value per activity; never negative.
    is_known
        bool array: whether the API call was recorded.
    """
    correlation, starts = activities["correlation_id"], activities["start_ns"]
    delays = np.zeros(len(activities), np.int64)
    is_known = np.zeros(len(activities), np.bool_)
    for chunk in chunks(len(activities)):
        call = calls.rows(correlation[chunk])
        rows = np.flatnonzero(call >= 0)
        is_known[chunk][rows] = True
        # Device times are interpolated: a kernel can seem to start slightly before its launch.
        delay = starts[chunk][rows] - api_calls["start_ns"][call[rows]]
        delays[chunk][rows] = np.maximum(delay, 0)
    return delays, is_known
