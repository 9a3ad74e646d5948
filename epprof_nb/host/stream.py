"""Streams, and events that order work across streams."""

# ruff: noqa: SLF001 (the device's modules share the internals of its few classes)

from __future__ import annotations

import itertools

from epprof_nb import _native
from epprof_nb.host import _log
from epprof_nb.host._log import LOG, Activity, RecordedEvent
from epprof_nb.host._queue import Command, Fence, Queue, live_queues, refuse_wait, wait_for_all

_ids = itertools.count()


class Stream:
    """A queue of work that runs asynchronously and in order on its own worker thread.

    Streams run concurrently with each other and with the caller. There is no implicit order
    between them, including the default stream; use `wait_event` to order work. A stream that is
    garbage collected or closed finishes its work before its thread ends.

    Attributes
    ----------
    stream_id : int
        Id of the stream, unique in the process; the default stream is 0.
    """

    __slots__ = ("__weakref__", "_finalizer", "_queue", "stream_id")

    def __init__(self) -> None:
        self.stream_id = next(_ids)
        self._queue = Queue(self.stream_id)
        # Not at exit: daemon threads end with the process, as GPU work does.
        self._finalizer = _native.Finalizer(self._queue.request_close)

    def wait_event(self, event: Event) -> None:
        """Make work launched on this stream from now on wait for `event`.

        The call itself does not block. As in CUDA, the stream waits for the most recent
        `Event.record` before this call, and does not wait if the event was never recorded.

        Raises
        ------
        RuntimeError
            If the stream is closed.
        """
        fence = event._fence
        if fence is None:
            return
        with LOG.call(_log.STREAM_WAIT_EVENT) as correlation:
            activity = None
            if correlation:
                activity = Activity(
                    "synchronization", "stream_wait_event", correlation, self.stream_id,
                    event=event._recorded,
                )  # fmt: skip
            self._queue.submit(Command(fence.wait, "a wait for an event", activity))

    def query(self) -> bool:
        """Whether all work launched on this stream is done."""
        return self._queue.idle

    def synchronize(self) -> None:
        """Wait until all work launched on this stream is done.

        Raises
        ------
        DeviceError
            If a command of the stream failed since the last synchronization.
        RuntimeError
            If called inside a kernel.
        """
        refuse_wait("Stream.synchronize()")
        with LOG.call(_log.STREAM_SYNCHRONIZE) as correlation:
            _wait(self._queue.insert_fence(), "stream_synchronize", correlation, self.stream_id)
        self._queue.raise_error()

    def close(self) -> None:
        """Accept no more work; the worker thread ends when the queued work is done."""
        self._queue.close()

    def __repr__(self) -> str:
        return f"<epprof_nb.host.Stream {self.stream_id}>"


class Event:
    """A point in a stream that can be queried, waited for and timed."""

    __slots__ = ("_fence", "_queue", "_recorded")

    def __init__(self) -> None:
        self._fence: Fence | None = None
        self._queue: Queue | None = None
        self._recorded: RecordedEvent | None = None

    def record(self, stream: Stream | None = None) -> None:
        """Record the work launched so far on `stream` (default: the default stream).

        Recording the event again moves it. Waits launched before still refer to the old point.

        Raises
        ------
        RuntimeError
            If the stream is closed.
        """
        queue = (stream or default_stream())._queue
        fence = Fence()
        with LOG.minor_call(_log.EVENT_RECORD) as correlation:
            queue.submit(fence)
        recorded = RecordedEvent(correlation or _native.next_correlation(), queue.stream_id)
        self._fence, self._queue, self._recorded = fence, queue, recorded

    def query(self) -> bool:
        """Whether the recorded work is done; True for an event that was never recorded."""
        return self._fence is None or self._fence.signaled

    def synchronize(self) -> None:
        """Wait until the recorded work is done; return immediately if never recorded.

        Raises
        ------
        DeviceError
            If a command of the event's stream failed since its last synchronization.
        RuntimeError
            If called inside a kernel, or for an event recorded before a fork.
        """
        refuse_wait("Event.synchronize()")
        if self._fence is None or self._queue is None:
            return
        with LOG.call(_log.EVENT_SYNCHRONIZE) as correlation:
            stream_id, event = self._queue.stream_id, self._recorded
            _wait(self._fence, "event_synchronize", correlation, stream_id, event)
        self._queue.raise_error()

    def elapsed_ns(self, end: Event) -> int:
        """Return the time from this event to `end` in nanoseconds, as reached by the workers.

        Raises
        ------
        RuntimeError
            If an event was not recorded or not reached yet.
        """
        return end._passed_ns("second") - self._passed_ns("first")

    def _passed_ns(self, which: str) -> int:
        if self._fence is None:
            raise RuntimeError(f"the {which} event was never recorded; call record() on it")
        if not self._fence.signaled:
            raise RuntimeError(
                f"the {which} event was not reached yet; call synchronize() on it first"
            )
        return self._fence.time_ns


_default = Stream()


def default_stream() -> Stream:
    """Return the default stream; its ``stream_id`` is 0."""
    return _default


def synchronize() -> None:
    """Wait until all work launched on all streams is done.

    Raises
    ------
    DeviceError
        If a command failed and its error was not raised yet. Further errors are raised by the
        next calls.
    RuntimeError
        If called inside a kernel.
    """
    refuse_wait("epprof_nb.host.synchronize()")
    with LOG.call(_log.DEVICE_SYNCHRONIZE) as correlation:
        start_ns = _native.now_ns()
        wait_for_all()
        if correlation:
            activity = Activity("synchronization", "context_synchronize", correlation)
            LOG.add(activity, start_ns, _native.now_ns())
    for queue in live_queues():
        queue.raise_error()


def _wait(
    fence: Fence, name: str, correlation: int, stream_id: int, event: RecordedEvent | None = None
) -> None:
    start_ns = _native.now_ns()
    fence.wait()
    if correlation:
        activity = Activity("synchronization", name, correlation, stream_id, event=event)
        LOG.add(activity, start_ns, _native.now_ns())
