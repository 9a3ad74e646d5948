"""Devices whose streams can be delayed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from epprof_nb.analysis.experiments.ops_to_delay import Streams
from epprof_nb.host._queue import in_worker, wait_for_all
from epprof_nb.host._spins import Spins
from epprof_nb.host.device import HOST_DEVICE_ID
from epprof_nb.recording.delays.cuda import CudaDelays
from epprof_nb.recording.delays.spins import spin_on_host

if TYPE_CHECKING:
    from collections.abc import Mapping

    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.profile_data import ProfileData


class DelayDevice(Streams, Protocol):
    """Delays on the streams of a device. A delay measures its length; it is never assumed."""

    def begin(self, streams: Mapping[str, int]) -> None:
        """Prepare for delays of ops, given the stream that each op launches to."""

    def end(self) -> None:
        """Free what `begin` took."""

    def launches(self) -> int | None:
        """Return how often the calling thread has launched since `begin`; None: not known."""

    def delay(self, op: str, tag: int, length_ns: int) -> None:
        """Delay the stream that an op launched to last; 0: only the launch of the delay."""

    def wait(self) -> None:
        """Wait until all work launched so far is done."""

    def take(self) -> list[tuple[int, int]]:
        """Return the tag and the length (ns) of each delay that has ended since the last call."""


class HostDelays:
    """Delays on the streams of the host device."""

    def __init__(self) -> None:
        self._spins = spins = Spins(spin_on_host)
        self.end, self.launches, self.take = spins.end, spins.launches, spins.take

    def streams(self, profile: ProfileData) -> IntArray:
        """Return the stream of each activity; -1: it is one of another device."""
        activities = profile.tables["activities"]
        found: IntArray = np.where(
            activities["device_id"] == HOST_DEVICE_ID, activities["stream_id"], -1
        )
        return found

    def uncovered(self, stream: int) -> str:
        """Return why a stream cannot be delayed."""
        return "its device cannot be delayed" if stream < 0 else ""

    def begin(self, streams: Mapping[str, int]) -> None:  # noqa: ARG002
        """Note from now on to which stream each thread launches."""
        self._spins.begin()

    def delay(self, op: str, tag: int, length_ns: int) -> None:  # noqa: ARG002
        """Delay the stream that the calling thread launched to last."""
        self._spins.launch(tag, length_ns)

    def wait(self) -> None:
        """Wait until all work launched so far is done."""
        if not in_worker():
            wait_for_all()


def device_of(profile: ProfileData) -> DelayDevice:
    """Return the delays for the devices of a profile."""
    devices = profile.tables["activities"]["device_id"]
    return CudaDelays() if (devices != HOST_DEVICE_ID).any() else HostDelays()
