"""CUPTI's clock, compared with ours in each recording."""

from __future__ import annotations

from typing import Any

from epprof_nb import _native
from epprof_nb.recording.clock import Calibration, Probe, same_clock

_foreign_clock: Probe | None = None
"""First reading of the clock, if another profiler has registered its own clock with CUPTI."""


def _read() -> Probe | None:
    times = _native.cupti_probe()
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

    def start(self) -> bool:
        """Read the clock if CUDA has started; otherwise `calibrate` reads it later.

        Returns
        -------
        delivers
            Whether CUPTI has delivered a test record, or none was requested.
        """
        self._first = None
        if not _native.cuda_started():
            return True
        self._first = _read()
        return self._first is not None

    def calibrate(self, *, may_read: bool) -> Calibration | None:
        """Return the conversion of the times of CUPTI's records; None if they need none.

        Parameters
        ----------
        may_read
            Whether the clock may be read, which abandons the records of work still running.
        """
        global _foreign_clock  # noqa: PLW0603 - process-wide state, like the clock itself
        if self._first is None and may_read and _native.cuda_started():
            self._first = _read()
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
        last = (_read() if may_read else None) or first
        if _foreign_clock is None or not same_clock(_foreign_clock, first, last):
            _foreign_clock = first
        calibration = Calibration(_foreign_clock, last)
        self.info = {"cupti": "calibrated", "offset_ns": calibration.offset_ns}
        return calibration
