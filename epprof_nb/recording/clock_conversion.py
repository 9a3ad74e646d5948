"""Conversion of a recorder's times to the clock of profiles, CLOCK_MONOTONIC."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


CLOCK_SLACK_NS = 100_000
"""Tolerated error of a calibrated clock."""
_RATE_TOLERANCE = 0.1
"""Bound of the error of a rate that was measured over a short time."""


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
