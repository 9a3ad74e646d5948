"""What is counted of a device: when it was busy, what was launched, what was copied; in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from epprof_nb.arrays.chunks import chunks
from epprof_nb.arrays.intervals import clip_times
from epprof_nb.data.schema import MISSING
from epprof_nb.util.cached import once

if TYPE_CHECKING:
    from epprof_nb.analysis.index import Shared
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.profile_data import ProfileData


_PIECE = 1 << 16


class Launches(NamedTuple):
    """How many launches are given and not done after each time at which that changes.

    ``t`` ascends, int64 ns; ``level`` is int32.
    """

    t: IntArray
    level: npt.NDArray[np.int32]


class Copies(NamedTuple):
    """Copies by their starts, int64: ``start`` and ``end`` in ns, ``size`` in bytes."""

    start: IntArray
    end: IntArray
    size: IntArray


class Counted:
    """What one device did, each part found when first asked for.

    Parameters
    ----------
    profile
        The profile; it must not change while this is in use.
    device
        Id of the device.
    shared
        What the profile's tables share.
    """

    def __init__(self, profile: ProfileData, device: int, shared: Shared) -> None:
        self._profile, self._device, self._shared = profile, device, shared

    @once
    def busy(self) -> tuple[IntArray, IntArray]:
        """Starts and ends of the stretches in which the device was busy, int64 ns, ascending."""
        return self._shared.busy(self._device)

    @once
    def busy_until(self) -> IntArray:
        """Time for which the device was busy before each of those stretches, int64 ns."""
        starts, ends = self.busy
        return np.concatenate(([0], np.cumsum(ends - starts)))

    @once
    def copies(self) -> Copies:
        """What was copied; a copy that takes no time counts as one nanosecond."""
        activities = self._profile.tables["activities"]
        chosen = activities.names("kind").equals("memcpy")
        chosen &= activities["device_id"] == self._device
        rows = np.flatnonzero(chosen & (activities["bytes"] > 0))
        rows = rows[np.argsort(activities["start_ns"][rows], kind="stable")]
        start, end = clip_times(activities["start_ns"][rows], activities["end_ns"][rows])
        end = np.maximum(end, start + 1)
        return Copies(start, end, activities["bytes"][rows])

    @once
    def launches(self) -> Launches:
        """What was launched.

        A launch is given at its API call's start, and done when the last of what it launched has
        ended: the replay of a CUDA graph is one. An activity whose API call was not recorded
        counts while it runs.
        """
        activities, calls = self._profile.tables["activities"], self._profile.tables["api_calls"]
        none = np.iinfo(np.int64).min
        last = np.full(len(calls) + 1, none)
        begun, ended = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for piece in chunks(len(activities)):
            mine = self._shared.work[piece] & (activities["device_id"][piece] == self._device)
            start, end = activities["start_ns"][piece][mine], activities["end_ns"][piece][mine]
            end = np.maximum(end, start)
            call = self._shared.calls.rows(activities["correlation_id"][piece][mine])
            np.maximum.at(last, call, end)
            alone = call == MISSING
            begun.append(start[alone])
            ended.append(end[alone])
        launched = np.flatnonzero(last[:-1] != none)
        last = last[launched]
        # No launch ends before it was given, whatever the clocks say.
        given = np.concatenate([np.minimum(calls["start_ns"][launched], last), *begun])
        done = np.concatenate([last, *ended])
        # Nearly in order as they are: a sort that merges runs is the fastest.
        given.sort(kind="stable")
        done.sort(kind="stable")
        return _launches(*clip_times(given, done))


def _launches(given: IntArray, done: IntArray) -> Launches:
    """From when launches were given and done, each in ascending order, so not in pairs."""
    t, level = np.empty(2 * len(given), np.int64), np.empty(2 * len(given), np.int32)
    up = down = size = 0
    while up < len(given):
        bound = given[min(up + _PIECE, len(given)) - 1]
        ups = slice(up, int(np.searchsorted(given, bound, "right")))
        whole = ups.stop == len(given)
        downs = slice(down, len(done) if whole else int(np.searchsorted(done, bound, "right")))
        # The lowest bit tells which: one sort does for both.
        events = np.concatenate([given[ups] * 2 + 1, done[downs] * 2])
        events.sort(kind="stable")
        at = events >> 1
        last = np.flatnonzero(np.append(at[1:] != at[:-1], True))
        here = slice(size, size + len(last))
        t[here] = at[last]
        level[here] = up - down + np.cumsum((events & 1) * 2 - 1)[last]
        up, down, size = ups.stop, downs.stop, here.stop
    return Launches(t[:size], level[:size])
