"""CUPTI's clock, compared with ours in each recording."""

from __future__ import annotations

from typing import Any

from epprof_nb import _native
from epprof_nb.recording.clock_conversion import Calibration, Probe, same_clock

_foreign_clock: Probe | None = None
"""First reading of the clock, if another profiler has registered its own clock with CUPTI."""


def _read() -> Probe | None:
    times = _native.cupti_read_clock()
    return None if times is None else Probe(*times)


class CuptiClock:
    """The clock of CUPTI's records during a recording.

    Attributes
    ----------
    info
        Entry of ``info["clock"]``: whether CUPTI shares our clock, if known.
    """

    def __init__(self) -> None:
        self._first: Probe | None = None
        self.info: dict[str, Any] = {}

    def start(self) -> None:
        """Read the clock."""
        self._first = _read()

    def calibrate(self) -> Calibration | None:
        """Return the conversion of the times of CUPTI's records; None if they need none."""
        global _foreign_clock  # noqa: PLW0603 - process-wide state, like the clock itself
        first = self._first
        if first is None:
            self.info = {"cupti": "unproven"}
            return None
        if first.agrees:
            _foreign_clock = None
            self.info = {"cupti": "shared", "probe_ns": first.after_ns - first.before_ns}
            return None
        # Another profiler has registered its own clock with CUPTI. The rate is more accurate the
        # further two readings are apart, so the first reading of that clock is kept.
        last = _read() or first
        if _foreign_clock is None or not same_clock(_foreign_clock, first, last):
            _foreign_clock = first
        calibration = Calibration(_foreign_clock, last)
        self.info = {"cupti": "calibrated", "offset_ns": calibration.offset_ns}
        return calibration
