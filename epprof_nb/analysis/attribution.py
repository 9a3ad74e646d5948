"""Which activities are work of the device, and which op each of them counts for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from epprof_nb.arrays.chunks import chunks
from epprof_nb.arrays.ids import IdIndex
from epprof_nb.data.schema import MISSING

if TYPE_CHECKING:
    from epprof_nb.analysis.op_tree import OpTree
    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.data.table import Table

Attribution: TypeAlias = Literal["launch", "capture"]


def device_work(activities: Table) -> BoolArray:
    """Return which activities are work of the device: kernels, copies and sets.

    Synchronizations are waits of the host. A graph launch is work where its nodes were not
    recorded one by one; where they were, they are what counts.

    Parameters
    ----------
    activities
        A table of schema `epprof_nb.data.schema.ACTIVITIES`.

    Returns
    -------
    work
        bool array, one an activity.
    """
    kind = activities.names("kind")
    work = kind.equals("kernel") | kind.equals("memcpy") | kind.equals("memset")
    launches = np.flatnonzero(kind.equals("graph_launch"))
    if len(launches):
        # Nodes carry the correlation id of the call that launched their graph.
        nodes = IdIndex(activities["correlation_id"][work])
        alone = nodes.rows(activities["correlation_id"][launches]) == MISSING
        work[launches[alone]] = True
    return work


def op_rows(activities: Table, tree: OpTree, attribution: Attribution) -> IntArray:
    """Return the row of the op that each activity counts for; `MISSING` where there is none.

    Parameters
    ----------
    activities
        A table of schema `epprof_nb.data.schema.ACTIVITIES`.
    tree
        The tree of the profile's ops.
    attribution
        ``"launch"``: the op that launched it. ``"capture"``: the op that captured it, for an
        activity of a graph whose capture is known, else the op that launched it.

    Returns
    -------
    rows
        int64 array, one an activity.

    Raises
    ------
    ValueError
        For another `attribution`.
    """
    if attribution not in ("launch", "capture"):
        raise ValueError(f"attribution must be 'launch' or 'capture', not {attribution!r}")
    rows = tree.rows(activities["op_id"])
    if attribution == "capture":
        captured = tree.rows(activities["capture_op_id"])
        rows = np.where(captured >= 0, captured, rows)
    return rows


def launch_delays(
    activities: Table, api_calls: Table, calls: IdIndex
) -> tuple[IntArray, BoolArray]:
    """Return the time from the start of an activity's API call to its own start.

    Parameters
    ----------
    activities, api_calls
        Tables of schemas `epprof_nb.data.schema.ACTIVITIES` and `epprof_nb.data.schema.API_CALLS`.
    calls
        The API calls by correlation id.

    Returns
    -------
    delays
        int64 array, nanoseconds, one an activity; never negative.
    known
        bool array: where the call was recorded.
    """
    correlation, starts = activities["correlation_id"], activities["start_ns"]
    delays = np.zeros(len(activities), np.int64)
    known = np.zeros(len(activities), np.bool_)
    for piece in chunks(len(activities)):
        call = calls.rows(correlation[piece])
        found = np.flatnonzero(call >= 0)
        known[piece][found] = True
        # Device times are interpolated: a kernel can seem to start slightly before its launch.
        delay = starts[piece][found] - api_calls["start_ns"][call[found]]
        delays[piece][found] = np.maximum(delay, 0)
    return delays, known
