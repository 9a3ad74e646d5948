"""Devices whose streams can be delayed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from epprof_nb.core.errors import ExperimentError
from epprof_nb.host._queue import in_worker, wait_for_all
from epprof_nb.host._spins import Spins
from epprof_nb.host.device import HOST_DEVICE_ID
from epprof_nb.recording.delays.spins import spin_on_host

if TYPE_CHECKING:
    from epprof_nb.data.profile_data import ProfileData


class DelayDevice(Protocol):
    """Delays on the streams of a device. A delay measures its length; it is never assumed."""

    device_ids: frozenset[int]
    """Ids of the devices in profiles."""

    def begin(self) -> None:
        """Note from now on to which stream each thread launches."""

    def end(self) -> None:
        """Stop that, and free what `begin` took."""

    def launches(self) -> int:
        """Return how often the calling thread has launched since `begin`."""

    def delay(self, tag: int, length_ns: int) -> None:
        """Delay the stream that the calling thread launched to last; 0: only the launch of it."""

    def wait(self) -> None:
        """Wait until all work launched so far is done."""

    def take(self) -> list[tuple[int, int]]:
        """Return the tag and the length (ns) of each delay that has ended since the last call."""


class HostDelays:
    """Delays on the streams of the host device."""

    device_ids = frozenset([HOST_DEVICE_ID])

    def __init__(self) -> None:
        spins = Spins(spin_on_host)
        self.begin, self.end, self.launches, self.delay, self.take = (
            spins.begin, spins.end, spins.launches, spins.launch, spins.take
        )  # fmt: skip

    def wait(self) -> None:
        """Wait until all work launched so far is done."""
        if not in_worker():
            wait_for_all()


def device_of(profile: ProfileData) -> DelayDevice:
    """Return the delays for the devices of a profile; ExperimentError if there are none."""
    used = np.unique(profile.tables["activities"]["device_id"])
    if (used != HOST_DEVICE_ID).any():
        raise ExperimentError(
            "delays are not supported on GPUs yet, only on the host device. `prof.what_if` "
            "replays the profile with other durations."
        )
    return HostDelays()
