"""Delays on CUDA devices: kernels that spin, on the streams that recorded repeats launched to.

In the repeats with delays nothing shows where an op launches. So each op has the stream that it
launched to in the recorded repeat: the callbacks of its session noted the handles of streams, and
go on to notice when a stream is destroyed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epprof_nb import _native
from epprof_nb.arrays.groups import group_codes
from epprof_nb.arrays.types import MISSING
from epprof_nb.core.errors import ExperimentError
from epprof_nb.host.device import HOST_DEVICE_ID
from epprof_nb.util.cuda_state import DRIVER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.profile_data import ProfileData

_DELAYED, _CAPTURING, _DESTROYED, _OTHER_THREAD, _TOO_MANY = range(5)
"""Results of a launch (``native/delays/api.h``); later ones name an error of the driver."""
_REASONS = {
    _DESTROYED: "its stream was destroyed; create the stream once, before the code",
    _OTHER_THREAD: "it launches to the default stream of another thread",
    _TOO_MANY: "more than 4,096 of its delays have not ended",
}
_UNKNOWN, _OTHER_DEVICE = -1, -2


class _Stream(NamedTuple):
    """A stream that a recorded repeat launched to."""

    number: int
    is_new: bool
    exists: bool
    correlations: list[int]


class CudaDelays:
    """Delays on the streams of CUDA devices."""

    def __init__(self) -> None:
        self._known: dict[int, _Stream] = {}
        self._targets: dict[str, int] = {}
        self._failure = ""

    def streams(self, profile: ProfileData) -> IntArray:
        """Return the native id of the stream of each activity; negative: it cannot be delayed.

        Raises
        ------
        ExperimentError
            If the recording has noted no streams.
        """
        launched = _native.launched_streams()
        if launched is None:
            raise ExperimentError(
                "the streams of the code are not known, because another profiler uses CUPTI. Stop "
                "it, such as torch.profiler or nsys, or restart the Jupyter kernel without it."
            )
        self._known = {row[0]: _Stream(*row) for row in launched}
        activities = profile.tables["activities"]
        found = self._by_launch(activities["correlation_id"])
        in_graph = activities["graph_id"] != MISSING
        is_sample = (found != _UNKNOWN) & ~in_graph
        stream_of, first = group_codes(
            *(activities[f"{part}_id"] for part in ("device", "context", "stream"))
        )
        of_stream = np.full(len(first), _UNKNOWN, np.int64)
        of_stream[stream_of[is_sample]] = found[is_sample]
        found[~in_graph] = of_stream[stream_of[~in_graph]]
        found[activities["device_id"] == HOST_DEVICE_ID] = _OTHER_DEVICE
        return found

    def _by_launch(self, correlations: IntArray) -> IntArray:
        """Return the stream of each launch that was noted."""
        noted = [(c, s.number) for s in self._known.values() for c in s.correlations]
        ids, numbers = np.array([(-2, _UNKNOWN), *sorted(noted)], np.int64).T
        at = np.searchsorted(ids, correlations, side="right") - 1
        found: IntArray = np.where(ids[at] == correlations, numbers[at], _UNKNOWN)
        return found

    def uncovered(self, stream: int) -> str:
        """Return why a stream cannot be delayed; empty if it can."""
        if stream == _OTHER_DEVICE:
            return "the device of its stream cannot be delayed beside a GPU"
        known = self._known.get(stream)
        if known is None:
            return "the handle of its stream is not known"
        if not known.exists:
            return _REASONS[_DESTROYED]
        if known.is_new:
            return "the code creates its stream; create the stream once, before the code"
        return ""

    def begin(self, streams: Mapping[str, int]) -> None:
        """Load the kernel into the contexts of the streams."""
        self._targets, self._failure = dict(streams), ""
        try:
            _native.ep_load_driver(DRIVER)
            _native.begin_delays()
        except RuntimeError as error:
            raise ExperimentError(f"the device cannot be delayed: {error}.") from error

    def end(self) -> None:
        """Free the kernels and what they write to."""
        _native.end_delays()

    def launches(self) -> None:
        """Return None: nothing counts launches while nothing is recorded."""

    def delay(self, op: str, tag: int, length_ns: int) -> None:
        """Delay the stream of an op, unless it is being captured."""
        stream = self._targets.get(op)
        if stream is None:
            return
        result, cuda_result = _native.launch_delay(stream, tag, max(length_ns, 0))
        if result not in (_DELAYED, _CAPTURING) and not self._failure:
            reason = _REASONS.get(result) or ": ".join(_native.cuda_error(cuda_result))
            self._failure = f"{op} could not be delayed: {reason}"

    def wait(self) -> None:
        """Wait until all work launched so far is done.

        Raises
        ------
        ExperimentError
            If a delay could not be launched, or the device has failed.
        """
        try:
            _native.wait_for_delays()
        except RuntimeError as error:
            raise ExperimentError(f"waiting for the device failed: {error}.") from error
        if self._failure:
            raise ExperimentError(f"{self._failure}.")

    def take(self) -> list[tuple[int, int]]:
        """Return the tag and the length (ns) of each delay that has ended since the last call."""
        return _native.take_delays()
