"""The epoch at a time of the profile's clock, CLOCK_MONOTONIC."""

import time

from epprof_nb import _native


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
