"""The profile's clock: CLOCK_MONOTONIC, paired with the epoch and calibrated against CUPTI."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from epprof_nb import _native

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


CLOCK_SLACK_NS = 100_000
"""Tolerated error of a calibrated clock."""
_RATE_TOLERANCE = 0.1
"""Bound of the error of a rate that was measured over a short time."""


def pair_with_epoch() -> tuple[int, int]:
    """Read the monotonic clock and the epoch clock at the same moment.

    Returns
    -------
    tuple of int
        Monotonic and epoch time in nanoseconds. The fastest of several readings is used, so the
        two are less than a microsecond apart unless the machine is overloaded.
    """
    best = (1 << 62, 0, 0)
    for _ in range(5):
        before = _native.now_ns()
        epoch = time.time_ns()
        after = _native.now_ns()
        best = min(best, (after - before, (before + after) // 2, epoch))
    return best[1], best[2]


@dataclass(frozen=True, slots=True)
class Probe:
    """A reading of the recorder's clock between two of ours."""

    before_ns: int
    theirs_ns: int
    after_ns: int

    @property
    def agrees(self) -> bool:
        """Whether the reading lies between ours, within a microsecond."""
        slack = 1000
        return self.before_ns - slack <= self.theirs_ns <= self.after_ns + slack

    @property
    def ours_ns(self) -> int:
        """Midpoint of our readings."""
        return (self.before_ns + self.after_ns) // 2


def same_clock(earlier: Probe, first: Probe, last: Probe) -> bool:
    """Whether `earlier` has the clock of `first` and `last`, judged by the rate that it implies.

    Another profiler may replace the recorder's clock. The rate between probes of different clocks
    then differs greatly from the rate between probes of the same clock.
    """
    recently = last.theirs_ns - first.theirs_ns
    since = last.theirs_ns - earlier.theirs_ns
    if recently <= 0 or since <= 0:
        return False
    rate = (last.ours_ns - first.ours_ns) / recently
    return abs((last.ours_ns - earlier.ours_ns) / since / rate - 1) < _RATE_TOLERANCE


@dataclass(frozen=True, slots=True)
class Calibration:
    """Linear conversion through two probes, for a recorder with a different clock."""

    first: Probe
    last: Probe

    @property
    def offset_ns(self) -> int:
        """Our clock minus the recorder's clock, at the last probe."""
        return self.last.ours_ns - self.last.theirs_ns

    def apply(self, times: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Convert times of the recorder's clock, in any unit, to nanoseconds of our clock."""
        theirs = self.last.theirs_ns - self.first.theirs_ns
        rate = (self.last.ours_ns - self.first.ours_ns) / theirs if theirs > 0 else 1.0
        shifted = (times - self.last.theirs_ns) * rate
        return shifted.astype("int64") + self.last.ours_ns
