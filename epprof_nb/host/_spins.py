"""Spins on streams, for experiments: they take the time of a kernel and measure it."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from epprof_nb import _native
from epprof_nb.host import _queue
from epprof_nb.host._queue import Command, Queue

if TYPE_CHECKING:
    from collections.abc import Callable


class Spins:
    """Spins on the stream that the calling thread launched to last.

    Parameters
    ----------
    spin
        Takes a length (ns) and whether to keep the GIL; returns how long it was.
    """

    def __init__(self, spin: Callable[[int, bool], int]) -> None:
        self._spin = spin
        self._last = threading.local()
        self._measured: list[tuple[int, int]] = []

    def begin(self) -> None:
        """Note from now on to which stream each thread launches."""
        _queue.follow_launches(self._note)

    def end(self) -> None:
        """Stop that."""
        _queue.follow_launches(None)
        self._last = threading.local()

    def _note(self, queue: Queue) -> None:
        self._last.queue, self._last.launches = queue, self.launches() + 1

    def launches(self) -> int:
        """Return how often the calling thread has launched since `begin`."""
        return getattr(self._last, "launches", 0)

    def launch(self, tag: int, length_ns: int) -> None:
        """Launch a spin, unless the thread has not launched, captures, or its stream is closed."""
        queue: Queue | None = getattr(self._last, "queue", None)
        if queue is None or _native.ep_is_capturing():
            return
        measured, spin = self._measured, self._spin

        def run() -> None:
            measured.append((tag, spin(length_ns, False)))  # noqa: FBT003

        with suppress(RuntimeError):  # a stream may be closed at any time
            queue.submit(Command(run, "a delay of an experiment", None))

    def take(self) -> list[tuple[int, int]]:
        """Return the tag and the length (ns) of each spin that has ended since the last call."""
        taken, self._measured = self._measured, []
        return taken
