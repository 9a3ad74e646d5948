"""The epoch, paired with the clock of profiles."""

import time
from types import SimpleNamespace

from epprof_nb import _native
from epprof_nb.recording import epoch as paired
from epprof_nb.recording.epoch import pair_with_epoch


def test_the_epoch_is_paired_with_the_middle_of_the_fastest_reading(monkeypatch):
    # Pairs of readings around the epoch's; the thread is suspended in the first and the third.
    monotonic = iter([0, 9_000_000, 10_000_000, 10_000_400, 11_000_000, 18_000_000,
                      20_000_000, 20_000_600, 21_000_000, 21_000_800])  # fmt: skip
    epoch = iter([100, 200, 300, 400, 500])
    monkeypatch.setattr(paired, "_native", SimpleNamespace(now_ns=lambda: next(monotonic)))
    monkeypatch.setattr(paired, "time", SimpleNamespace(time_ns=lambda: next(epoch)))
    assert pair_with_epoch() == (10_000_200, 200)


def test_the_epoch_is_paired_with_the_clock_of_the_profile():
    before, (monotonic, epoch), after = _native.now_ns(), pair_with_epoch(), _native.now_ns()
    assert before <= monotonic <= after
    assert time.time_ns() - epoch < 3600 * 10**9
