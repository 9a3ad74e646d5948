"""Conversion between two clocks."""

import numpy as np

from epprof_nb.recording.clock_conversion import Calibration, Probe
from epprof_nb.recording.cupti import clock as cupti_clock
from epprof_nb.recording.cupti.clock import CuptiClock


def probe(ours: int, theirs: int, width: int = 400) -> Probe:
    return Probe(ours - width, theirs, ours + width)


def test_a_record_inside_our_readings_proves_the_shared_clock():
    assert Probe(1000, 1100, 1300).agrees
    assert not Probe(1000, 500_000, 1300).agrees


def test_times_of_a_clock_of_another_unit_and_origin_are_brought_into_ours():
    ticks_per_ns, origin = 2.1, 5_000_000_000
    ours = np.arange(1_000_000_000, 2_000_000_000, 12_345_678, dtype=np.int64)
    theirs = (ours * ticks_per_ns).astype(np.int64) + origin
    ends = (1_000_000_000, 2_000_000_000)
    probes = [probe(t, int(t * ticks_per_ns) + origin) for t in ends]
    back = Calibration(*probes).apply(theirs)
    assert np.abs(back - ours).max() < 1000


def test_one_probe_alone_shifts_without_stretching():
    only = probe(10_000, 70_000)
    assert Calibration(only, only).apply(np.array([70_000, 71_000])).tolist() == [10_000, 11_000]


def test_the_first_reading_of_a_foreign_clock_is_kept(monkeypatch):
    """The rate is the more exact the further two readings are apart."""
    readings = [probe(ours, 2 * ours + 10**9) for ours in (10**6, 10**7, 10**8, 10**9)]
    left = iter(readings)
    monkeypatch.setattr(cupti_clock, "_read", lambda: next(left))
    monkeypatch.setattr(cupti_clock, "_foreign_clock", None)
    for last in (1, 3):
        recording = CuptiClock()
        recording.start()
        found = recording.calibrate()
        assert found == Calibration(readings[0], readings[last])
        assert recording.info["cupti"] == "calibrated"
