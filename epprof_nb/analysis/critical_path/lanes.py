"""Lanes of the critical path: streams, each with its activities in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.arrays.groups import group_codes
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.critical_path.columns import Rows
    from epprof_nb.arrays.types import IntArray


def lanes_of(
    index: ProfileIndex, call: Rows, start: IntArray
) -> tuple[Rows, Rows, tuple[IntArray, IntArray]]:
    """Return the lane of each activity: its stream.

    Returns
    -------
    lane
        Number of the lane of each activity. All nodes of a graph replay are on the lane of the
        first of them.
    contexts
        Number of the context of each lane.
    streams
        The ids of the context and of the stream of each lane.
    """
    activities = index.profile.tables["activities"]
    keys = [activities[name] for name in ("device_id", "context_id", "stream_id")]
    codes, first = group_codes(*keys)
    lane = codes.astype(np.int32)
    contexts = group_codes(*(key[first] for key in keys[:2]))[0].astype(np.int32)
    graphs = activities["graph_id"]
    if graphs.max(initial=MISSING) != MISSING:
        nodes = np.flatnonzero((graphs != MISSING) & (call >= 0) & index.is_device_work)
        order = nodes[np.lexsort((start[nodes], call[nodes]))]
        is_first = np.diff(call[order], prepend=-2) != 0
        lane[order] = lane[order[is_first]][np.cumsum(is_first) - 1]
    return lane, contexts, (keys[1][first], keys[2][first])


def lane_of_stream(
    streams: tuple[IntArray, IntArray], context: IntArray, stream: IntArray
) -> IntArray:
    """Return the lanes of streams; `MISSING` for streams without activities."""
    codes, _ = group_codes(np.append(streams[0], context), np.append(streams[1], stream))
    of_lanes, asked = np.split(codes, [len(streams[0])])
    lane = np.full(int(codes.max(initial=MISSING)) + 1, MISSING)
    lane[of_lanes] = np.arange(len(of_lanes))
    found: IntArray = lane[asked]
    return found
