"""Tracks of a trace for the activities: one per stream, and more where activities overlap."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from epprof_nb.analysis.base.devices import device_labels
from epprof_nb.arrays.groups import group_codes
from epprof_nb.arrays.row_packing import pack_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from epprof_nb.data.profile_data import ProfileData

DEVICES = 3
"""Process id of device 0."""
_WITHIN = 2**22 + 2
"""First thread id of tracks within a process, larger than Linux gives to any thread."""


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
        self.process = activities["device_id"].astype(np.int64) + DEVICES
        self._within: tuple[int, dict[int, str]] | None = None
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

    def within(self, pid: int, info: Mapping[str, Any]) -> Self:
        """Move the tracks of all devices into one process, and return them.

        Parameters
        ----------
        pid
            Id of the process.
        info
            The profile's info, for the names of the devices.
        """
        devices = device_labels(info, sorted({process - DEVICES for process, _ in self.labels}))
        tracks = {track: _WITHIN + number for number, track in enumerate(self.labels)}
        codes, first = group_codes(self.process, self.thread)
        pairs = zip(self.process[first].tolist(), self.thread[first].tolist(), strict=True)
        self.thread = np.array([tracks[pair] for pair in pairs], np.int64)[codes]
        self.process = np.full_like(self.process, pid)
        self.labels = {
            (pid, tracks[process, thread]): f"{devices[process - DEVICES]}: {label}"
            for (process, thread), label in self.labels.items()
        }
        self._within = pid, devices
        return self

    def process_of(self, device_id: int) -> tuple[int, str]:
        """Return the process of a device's counters, and the beginning of their names there."""
        if self._within is None:
            return device_id + DEVICES, ""
        pid, devices = self._within
        return pid, f"{devices.get(device_id, f'device {device_id}')}: "
