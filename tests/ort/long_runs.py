"""Runs on separate threads that last longer than the work beside them."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Self

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

_NS = 50_000_000
_POOL_S = 0.5
_TIMES = 10**9


class Endless:
    """A run of `models.looping` on a thread of its own that goes on until it is cancelled.

    Attributes
    ----------
    thread
        The thread.
    error
        Message of the error that ended the run; None while it goes on.
    """

    def __init__(
        self, ort: Any, session: Any, x: npt.NDArray[np.float32], *, on_pool: bool = False
    ) -> None:
        self.options = ort.RunOptions()
        self.feed = {"x": x, "times": np.array(_TIMES)}
        self.session, self.on_pool = session, on_pool
        self.error: str | None = None
        self.thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        try:
            self.session.run(None, self.feed, self.options)
        except Exception as error:
            self.error = str(error)

    def __enter__(self) -> Self:
        self.thread.start()
        self.await_computing()
        assert self.thread.is_alive()
        return self

    def await_computing(self) -> None:
        """Wait until the run has computed for a while from now on."""
        await_computing(self.thread, on_pool=self.on_pool)

    def cancel(self) -> None:
        """End the run, and wait until it has ended."""
        self.options.terminate = True
        self.thread.join(60)
        assert not self.thread.is_alive()
        assert self.error is not None
        assert "terminate" in self.error or "Loop" in self.error

    def __exit__(self, *_: object) -> None:
        if self.thread.is_alive():
            self.cancel()


def await_computing(thread: threading.Thread, *, on_pool: bool = False) -> None:
    """Wait until the run of a thread has computed for a while from now on, or has ended.

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
        begin = time.clock_gettime_ns(clock)
        earliest = time.monotonic() + (_POOL_S if on_pool else 0)
        while thread.is_alive() and (
            time.clock_gettime_ns(clock) < begin + _NS or time.monotonic() < earliest
        ):
            time.sleep(0.005)
    except OSError:  # the thread has ended
        pass
