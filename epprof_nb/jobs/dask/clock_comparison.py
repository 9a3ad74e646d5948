"""On a worker: its clock compared with the notebook's, while a recording runs."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from epprof_nb.core.own_thread import OwnThread
from epprof_nb.jobs.clocks import offset_at
from epprof_nb.jobs.dask.clock_echo import Sample, sample
from epprof_nb.jobs.process_part import own_clock

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_MAX_SAMPLES = 10_000


class ClockComparison:
    """Comparisons of the clock of this process with the clock of an echo.

    Processes that share the clock of the notebook compare nothing.

    Parameters
    ----------
    echo
        Where the echo of the notebook is: ``hosts``, ``port``, its ``clock`` (see
        `epprof_nb.files.dataset.manifest.Manifest`) and ``every_s``, the time between comparisons.
    token
        The secret of the job.
    """

    def __init__(self, echo: Mapping[str, Any], token: str) -> None:
        self._echo, self._token = echo, token
        own = own_clock()
        self._is_other = any(own[k] != echo["clock"][k] for k in ("boot_id", "time_namespace"))
        self._samples: list[Sample] = []
        self._by = "udp"
        self._ended = threading.Event()
        self._thread: OwnThread | None = None

    @property
    def is_needed(self) -> bool:
        """Whether the clock differs, and the echo has not answered."""
        return self._is_other and not self._samples

    def begin(self) -> None:
        """Compare now, and from time to time until `end` if the echo has answered."""
        if not self._is_other or self._thread is not None:
            return
        self._ended.clear()
        self._compare()
        if self._samples:
            self._thread = OwnThread(target=self._repeat, name="epprof clock", daemon=True)
            self._thread.start()

    def _repeat(self) -> None:
        while not self._ended.wait(self._echo["every_s"]):
            self._compare()

    def _compare(self) -> None:
        if len(self._samples) >= _MAX_SAMPLES:
            return
        found = sample(self._echo["hosts"], self._echo["port"], self._token)
        if found is not None:
            self._samples.append(found)

    def add(self, samples: Iterable[tuple[int, int, int]]) -> None:
        """Add comparisons that were made in another way, by messages of Dask."""
        if self.is_needed:
            self._by = "messages"
        if self._by == "messages":
            self._samples += [(int(a), int(b), int(c)) for a, b, c in samples]

    def own_ns(self, time_ns: int) -> int | None:
        """Return a time of the notebook's clock on the clock of this process; None if unknown."""
        if not self._is_other:
            return time_ns
        if not self._samples:
            return None
        near_ns = time_ns - self._samples[-1][1]
        return time_ns - offset_at(self._samples, near_ns, near_ns)[0]

    def end(self) -> dict[str, Any]:
        """Compare for the last time, and return what to add to the clock of the manifest."""
        self._ended.set()
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()
            self._compare()
        return self.known()

    def known(self) -> dict[str, Any]:
        """Return what `end` has returned; the processes of one host share their clock."""
        if not self._samples:
            return {}
        return {
            "samples": [list(row) for row in self._samples],
            "reference": dict(self._echo["clock"]),
            "compared_by": self._by,
        }
