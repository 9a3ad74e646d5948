"""Streams and events: order within a stream, overlap between streams, waits across them."""

# ruff: noqa: SLF001 (the device's modules share the internals of its few classes)

from __future__ import annotations

import itertools
import weakref

from epprof_nb import _native
from epprof_nb.host import _log
from epprof_nb.host._log import LOG, Activity
from epprof_nb.host._queue import Command, Mark, Queue, finish, live_queues, refuse_in_worker

_ids = itertools.count()


class Stream:
    """A queue of work that runs in order, asynchronously, on a worker thread of its own.

    Streams run beside each other and beside the caller, without implicit order between them
    (the default stream included); `wait_event` makes the order that is needed. A stream that
    is garbage collected or closed finishes its work, then its thread ends.

    Attributes
    ----------
    stream_id : int
        Number of the stream, unique in the process; the default stream is 0.
    """

    __slots__ = ("__weakref__", "_queue", "stream_id")

    def __init__(self) -> None:
        self.stream_id = next(_ids)
        self._queue = Queue(self.stream_id)
        # Not at exit: daemon workers end with the process, as a GPU's work would.
        weakref.finalize(self, self._queue.abandon).atexit = False

    def wait_event(self, event: Event) -> None:
        """Let what is launched on this stream from now on wait for `event`.

        The stream's worker waits, the caller does not. As in CUDA, the wait is for the latest
        `Event.record` before this call; for an event that was never recorded there is none.

        Raises
        ------
        RuntimeError
            If the stream is closed.
        """
        mark = event._mark
        if mark is None:
            return
        with LOG.call(_log.STREAM_WAIT_EVENT) as correlation:
            activity = None
            if correlation:
                activity = Activity(
                    "synchronization", "stream_wait_event", correlation, self.stream_id
                )
            self._queue.submit(Command(mark.wait, "a wait for an event", activity))

    def query(self) -> bool:
        """Whether everything launched on this stream so far is done."""
        return self._queue.idle

    def synchronize(self) -> None:
        """Wait until everything launched on this stream so far is done.

        Raises
        ------
        DeviceError
            If a command of the stream failed since the last synchronisation.
        RuntimeError
            If called inside a kernel.
        """
        refuse_in_worker("Stream.synchronize()")
        with LOG.call(_log.STREAM_SYNCHRONIZE) as correlation:
            _wait(self._queue.mark(), "stream_synchronize", correlation, self.stream_id)
        self._queue.raise_error()

    def close(self) -> None:
        """Take no more work; the worker thread ends when it has done what it has."""
        self._queue.close()

    def __repr__(self) -> str:
        return f"<epprof_nb.host.Stream {self.stream_id}>"


class Event:
    """A point in a stream that can be waited for, asked for and timed."""

    __slots__ = ("_mark", "_queue")

    def __init__(self) -> None:
        self._mark: Mark | None = None
        self._queue: Queue | None = None

    def record(self, stream: Stream | None = None) -> None:
        """Mark what was launched on `stream` (default: the default stream) so far.

        A second `record` moves the event; waits that were launched before keep the old place.

        Raises
        ------
        RuntimeError
            If the stream is closed.
        """
        queue = (stream or default_stream())._queue
        mark = Mark()
        with LOG.minor_call(_log.EVENT_RECORD):
            queue.submit(mark)
        self._mark, self._queue = mark, queue

    def query(self) -> bool:
        """Whether the marked work is done; True for an event that was never recorded."""
        return self._mark is None or self._mark.fired

    def synchronize(self) -> None:
        """Wait until the marked work is done; returns at once if never recorded.

        Raises
        ------
        DeviceError
            If a command of the event's stream failed since its last synchronisation.
        RuntimeError
            If called inside a kernel, or for an event recorded before a fork.
        """
        refuse_in_worker("Event.synchronize()")
        if self._mark is None or self._queue is None:
            return
        with LOG.call(_log.EVENT_SYNCHRONIZE) as correlation:
            _wait(self._mark, "event_synchronize", correlation, self._queue.stream_id)
        self._queue.raise_error()

    def elapsed_ns(self, end: Event) -> int:
        """Nanoseconds from this event to `end`, as the workers passed them.

        Raises
        ------
        RuntimeError
            If one of the two is not recorded or not reached yet.
        """
        return end._passed_ns("second") - self._passed_ns("first")

    def _passed_ns(self, which: str) -> int:
        if self._mark is None:
            raise RuntimeError(f"the {which} event was never recorded; call record() on it")
        if not self._mark.fired:
            raise RuntimeError(
                f"the {which} event is not reached yet; call synchronize() on it first"
            )
        return self._mark.time_ns


_default = Stream()


def default_stream() -> Stream:
    """Return the stream that is used where none is named; its ``stream_id`` is 0."""
    return _default


def synchronize() -> None:
    """Wait until everything launched on every stream so far is done.

    Raises
    ------
    DeviceError
        If a command failed and was not reported yet; with several, the others are reported by
        the next calls.
    RuntimeError
        If called inside a kernel.
    """
    refuse_in_worker("epprof_nb.host.synchronize()")
    with LOG.call(_log.DEVICE_SYNCHRONIZE) as correlation:
        start_ns = _native.now_ns()
        finish()
        if correlation:
            activity = Activity("synchronization", "context_synchronize", correlation)
            LOG.add(activity, start_ns, _native.now_ns())
    for queue in live_queues():
        queue.raise_error()


def _wait(mark: Mark, name: str, correlation: int, stream_id: int) -> None:
    start_ns = _native.now_ns()
    mark.wait()
    if correlation:
        activity = Activity("synchronization", name, correlation, stream_id)
        LOG.add(activity, start_ns, _native.now_ns())
