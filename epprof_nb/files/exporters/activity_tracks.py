"""Tracks of a trace for the activities: one per stream, and more where activities overlap."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.arrays.groups import group_codes
from epprof_nb.arrays.row_packing import pack_rows

if TYPE_CHECKING:
    from epprof_nb.data.profile_data import ProfileData

DEVICES = 3
"""Process id of device 0."""


class ActivityTracks:
    """Tracks of the activities, on which slices do not overlap.

    Attributes
    ----------
    process, thread
        int64 arrays, one value per activity: process and thread id of its track.
    labels
        ``(process, thread)`` to name of the track.
    """

    def __init__(self, profile: ProfileData) -> None:
        activities = profile.tables["activities"]
        starts = activities["start_ns"]
        ends = np.maximum(activities["end_ns"], starts)
        # A wait lasts as long as the work it waits for, which is on the track of the stream.
        is_wait = activities.names("kind").equals("synchronization")
        owner = np.where(is_wait, activities["thread_id"], activities["stream_id"])
        groups, first = group_codes(activities["device_id"], is_wait.astype(np.int8), owner)
        order = np.argsort(groups, kind="stable")
        bounds = np.searchsorted(groups[order], np.arange(len(first) + 1))
        self.process = activities["device_id"] + DEVICES
        self.thread = np.zeros(len(activities), np.int64)
        self.labels: dict[tuple[int, int], str] = {}
        thread = 1
        for group in np.lexsort((owner[first], is_wait[first], self.process[first])).tolist():
            rows = order[bounds[group] : bounds[group + 1]]
            track = pack_rows(starts[rows], ends[rows])
            self.thread[rows] = thread + track
            number = int(owner[first[group]])
            name = f"waits of thread {number}" if is_wait[first[group]] else f"stream {number}"
            for i in range(int(track.max()) + 1):
                label = name if i == 0 else f"{name}, overlapping ({i + 1})"
                self.labels[int(self.process[first[group]]), thread + i] = label
            thread += int(track.max()) + 1
        # Viewers treat a thread with the id of its process as the main thread and sort it first:
        # skip this id.
        self.thread += self.thread >= self.process
        self.labels = {(p, t + (t >= p)): label for (p, t), label in self.labels.items()}
