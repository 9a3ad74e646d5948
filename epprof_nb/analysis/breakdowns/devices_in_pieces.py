"""Devices and communication of a process in one pass over its activities, piece by piece.

Only sums and the latest end of each device are kept from one piece to the next, so a process may
have more activities than fit into memory.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb import _native
from epprof_nb.analysis.base.activity_sums import MEASURES, activity_sums
from epprof_nb.analysis.base.devices import gpu_ids
from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.base.index_in_pieces import NotInOnePassError
from epprof_nb.analysis.base.work_classes import COMMUNICATION, COMPUTE, work_classes
from epprof_nb.analysis.breakdowns.by_device import (
    DeviceSums,
    peer_bytes,
    streams_of,
    table_of,
)
from epprof_nb.arrays.ids import unique_values
from epprof_nb.data.profile_data import ProfileData

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    import numpy.typing as npt

    from epprof_nb.analysis.base.result_table import ResultTable
    from epprof_nb.arrays.types import BoolArray
    from epprof_nb.data.table import Table

COLUMNS = (
    "kind", "name", "device_id", "context_id", "stream_id", "start_ns", "duration_ns", "bytes",
    "copy_kind", "src_device_id", "dst_device_id",
)  # fmt: skip
"""Columns of the activities that `DevicePass` reads."""


class _Cover:
    """Time that intervals cover, by group; the intervals of a group are sorted by start."""

    def __init__(self) -> None:
        self.ns = np.zeros(0, np.int64)
        self._last = np.zeros((2, 0), np.int64)

    def copy(self) -> _Cover:
        """Return a copy, which is continued independently."""
        same = _Cover()
        same.ns, same._last = self.ns.copy(), self._last.copy()
        return same

    def grow(self, count: int) -> None:
        """Add groups."""
        self.ns = np.append(self.ns, np.zeros(count, np.int64))
        least = np.full((2, count), np.iinfo(np.int64).min)
        self._last = np.ascontiguousarray(np.concatenate([self._last, least], axis=1))

    def add(self, index: ProfileIndex, groups: npt.NDArray[np.int32], rows: BoolArray) -> None:
        """Add some activities."""
        activities = index.profile.tables["activities"]
        times = (np.ascontiguousarray(activities[name]) for name in ("start_ns", "duration_ns"))
        if not _native.add_covered(self.ns, self._last, groups, rows, *times):
            raise NotInOnePassError("the activities are not in the order of their starts")


class DevicePass:
    """One pass over the activities of a process.

    Parameters
    ----------
    pieces
        The activities in the order of their starts, with `COLUMNS`.
    info
        Info of the profile.

    Raises
    ------
    NotInOnePassError
        If they are not in that order; if a graph launch may count or not, depending on other
        activities; or if the info lacks the wall time.

    Examples
    --------
    >>> from epprof_nb.testing import synthetic_profile
    >>> prof = synthetic_profile(activities=100)
    >>> activities = prof.tables["activities"]
    >>> activities = activities.take(np.argsort(activities["start_ns"]))
    >>> pieces = [activities.take(np.arange(i, i + 50)) for i in (0, 50)]
    >>> DevicePass(pieces, prof.info).table().values("kernels")
    [97]
    """

    def __init__(self, pieces: Iterable[Table], info: Mapping[str, Any]) -> None:
        self._profile = ProfileData({}, info)
        if self._profile.wall_ns <= 0:
            raise NotInOnePassError("the info has no wall time")
        self._groups: dict[int, int] = {}
        self._sums = np.zeros((len(MEASURES), 0), np.int64)
        # A copy may name a device before that one has an activity.
        self._sent: Counter[int] = Counter()
        self._received: Counter[int] = Counter()
        self._streams: set[tuple[int, int, int]] = set()
        self._busy, self._compute = _Cover(), _Cover()
        self._talk: _Cover | None = None  # once there is communication
        self._both = _Cover()
        self._add_devices(gpu_ids(info))
        for piece in pieces:
            self._add(piece)

    def _add_devices(self, devices: Iterable[int]) -> None:
        new = [device for device in devices if device not in self._groups]
        self._groups |= {device: len(self._groups) + i for i, device in enumerate(new)}
        self._sums = np.pad(self._sums, ((0, 0), (0, len(new))))
        for cover in (self._busy, self._compute, self._talk, self._both):
            if cover is not None:
                cover.grow(len(new))

    def _add(self, activities: Table) -> None:
        if not len(activities):
            return
        if activities.names("kind").equals("graph_launch").any():
            raise NotInOnePassError("a graph launch counts if none of its nodes was recorded")
        index = ProfileIndex(ProfileData({"activities": activities}, self._profile.info))
        self._add_devices(index.device_ids)
        devices = np.array([*self._groups], np.int64)
        order = np.argsort(devices)
        n, work = len(devices), index.is_device_work
        device = order[np.searchsorted(devices[order], activities["device_id"])].astype(np.int32)
        groups = np.where(work, device, np.int32(n))
        self._sums += [sums[:n] for sums in activity_sums(index, groups, n + 1).values()]
        self._busy.add(index, device, work)
        classes = index.cached(work_classes)
        compute, talk = work & (classes == COMPUTE), work & (classes == COMMUNICATION)
        if self._talk is None and talk.any():
            self._talk, self._both = _Cover(), self._compute.copy()
            self._talk.grow(n)
        if self._talk is not None:
            self._talk.add(index, device, talk)
            self._both.add(index, device, compute | talk)
        self._compute.add(index, device, compute)
        rows, first = streams_of(index, groups, n)
        at = rows[first]
        streams = (activities[name][at].tolist() for name in ("context_id", "stream_id"))
        self._streams |= {*zip(groups[at].tolist(), *streams, strict=True)}
        for column, counts in (("src_device_id", self._sent), ("dst_device_id", self._received)):
            named = np.array(unique_values(activities[column]), np.int64)
            copied = peer_bytes(index, named, column)
            counts.update(dict(zip(named.tolist(), copied.tolist(), strict=True)))

    @property
    def communication(self) -> tuple[int, int]:
        """Time in which the devices communicated, and the part beside computation."""
        if self._talk is None:
            return 0, 0
        whole, alone = self._talk.ns.sum(), self._both.ns.sum() - self._compute.ns.sum()
        return int(whole), int(whole - alone)

    def table(self) -> ResultTable:
        """Return the columns of `Profile.by_device`."""
        devices = np.array([*self._groups], np.int64)
        order = np.argsort(devices)
        streams = np.bincount([group for group, *_ in self._streams], minlength=len(devices))
        sent, received = (
            np.array([counts[device] for device in devices[order].tolist()], np.int64)
            for counts in (self._sent, self._received)
        )
        found = DeviceSums(
            devices[order],
            streams[order].astype(np.int64),
            {name: sums[order] for name, sums in zip(MEASURES, self._sums, strict=True)},
            self._busy.ns[order],
            sent,
            received,
        )
        return table_of(found, self._profile, np.zeros(len(devices), np.int64))
