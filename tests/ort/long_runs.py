"""Runs on separate threads that last longer than the work beside them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import threading

_NS = 50_000_000
_POOL_S = 0.5


def await_computing(thread: threading.Thread, *, on_pool: bool = False) -> None:
    """Wait until the run of a thread has computed for a while, or has ended.

    Parameters
    ----------
    thread
        A started thread that calls ``run``.
    on_pool
        Whether the session's pool threads compute. The CPU time is then the time of the whole
        process, in which pools of other sessions may still spin, so at least half a second passes.
    """
    # The CPU time of a thread has a clock, see clock_getcpuclockid(3).
    clock = time.CLOCK_PROCESS_CPUTIME_ID if on_pool else ~thread.native_id << 3 | 6
    try:
        begin = time.clock_gettime_ns(clock) if on_pool else 0
        earliest = time.monotonic() + (_POOL_S if on_pool else 0)
        while thread.is_alive() and (
            time.clock_gettime_ns(clock) < begin + _NS or time.monotonic() < earliest
        ):
            time.sleep(0.005)
    except OSError:  # the thread has ended
        pass
