"""Replays of the work in the bodies of conditional nodes of CUDA graphs.

CUPTI reports the work in such a body without the correlation id of the graph launch, because the
device decides whether and how often it runs. An executable graph runs one replay at a time, so its
work between the first and the last activity of a replay belongs to that replay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.data.schema import MISSING

if TYPE_CHECKING:
    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.data.table import Table


def with_launches(activities: Table) -> Table:
    """Return the activities with the correlation ids of the replays around them.

    Parameters
    ----------
    activities
        A table of schema `epprof_nb.data.schema.ACTIVITIES`, sorted by start.

    Returns
    -------
    activities
        Work of a graph without a correlation id gets the id of the replay that it ran in. It gets
        none if the graph begins or ends with a conditional node and ran several times, because it
        may belong to the replay before or after it.
    """
    graph = activities["graph_id"]
    unknown = (graph != MISSING) & (activities["correlation_id"] <= 0)
    if not unknown.any():
        return activities
    correlation = activities["correlation_id"].copy()
    for number in np.unique(graph[unknown]).tolist():
        of_graph = graph == number
        rows = np.flatnonzero(of_graph & unknown)
        known = np.flatnonzero(of_graph & ~unknown)
        correlation[rows] = _around(activities, rows, known, correlation)
    return activities.replace(correlation_id=correlation)


def _around(activities: Table, rows: IntArray, known: IntArray, correlation: IntArray) -> IntArray:
    """Return the correlation ids of the replays around some rows, unchanged where unknown."""
    replays, replay = np.unique(correlation[known], return_inverse=True)
    if not len(replays):
        return correlation[rows]
    if len(replays) == 1:
        return np.full(len(rows), replays[0], np.int64)
    first = np.full(len(replays), np.iinfo(np.int64).max)
    last = np.full(len(replays), np.iinfo(np.int64).min)
    np.minimum.at(first, replay, activities["start_ns"][known])
    np.maximum.at(last, replay, activities["end_ns"][known])
    order = np.argsort(first, kind="stable")
    at = order[
        np.maximum(np.searchsorted(first[order], activities["start_ns"][rows], "right") - 1, 0)
    ]
    inside: BoolArray = (activities["start_ns"][rows] >= first[at]) & (
        activities["end_ns"][rows] <= last[at]
    )
    return np.where(inside, replays[at], correlation[rows])
