"""Exposed copies: how long each ran while its device computed nothing; the rest is hidden."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.work_classes import COMMUNICATION, COMPUTE, class_intervals
from epprof_nb.arrays.intervals import covered_before, union

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray


def exposed(index: ProfileIndex, rows: IntArray) -> IntArray:
    """Return how long each copy ran while its device computed nothing, ns."""
    activities = index.profile.tables["activities"]
    result = np.zeros(len(rows), np.int64)
    for device in index.device_ids:
        parts = index.cached(class_intervals, device)
        starts, ends = (
            np.concatenate([parts[code][side] for code in (COMPUTE, COMMUNICATION)])
            for side in (0, 1)
        )
        at = np.flatnonzero(activities["device_id"][rows] == device)
        start = activities["start_ns"][rows[at]]
        times = np.stack([start, np.maximum(activities["end_ns"][rows[at]], start)])
        before, until = covered_before(*union(starts, ends), times)
        result[at] = times[1] - times[0] - (until - before)
    return result
