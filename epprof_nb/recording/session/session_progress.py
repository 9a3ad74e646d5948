"""Progress of a session, computed now and then in a small share of the CPU time."""

from __future__ import annotations

import time
import weakref
from dataclasses import replace
from typing import TYPE_CHECKING

from epprof_nb import _native
from epprof_nb.recording.session.running_totals import RunningTotals

if TYPE_CHECKING:
    from epprof_nb.recording.session.running_totals import Progress
    from epprof_nb.recording.session.session import Session

_MAX_CPU_SHARE = 0.01
"""Maximum share of CPU time. After an expensive update only the clock advances."""


class SessionProgress:
    """Progress of a session, for one thread.

    Each update flushes the recording without waiting for the device, which only splits the
    recording into more batches.

    Parameters
    ----------
    session
        The session; it is not kept alive.
    """

    def __init__(self, session: Session) -> None:
        self._session = weakref.ref(session)
        self._opened_ns = _native.now_ns()
        self._totals = RunningTotals(self._opened_ns)
        self._progress = self._totals.progress(self._opened_ns)
        self._batch_count = 0
        self._next_update = 0.0

    def latest(self) -> Progress | None:
        """Return the progress until now; None once recording has ended."""
        asked = time.monotonic()
        if asked >= self._next_update:
            begin = time.thread_time()
            session = self._session()
            batches = None if session is None else session.batches_since(self._batch_count)
            del session
            if batches is None:
                return None
            self._batch_count += len(batches)
            for batch in batches:
                self._totals.add(batch)
            self._progress = self._totals.progress(_native.now_ns())
            self._next_update = asked + (time.thread_time() - begin) / _MAX_CPU_SHARE
        return replace(self._progress, elapsed_ns=_native.now_ns() - self._opened_ns)
