"""The queue of a stream: commands executed in order by one worker thread."""

# ruff: noqa: SLF001 (the device's modules share the internals of its few classes)

from __future__ import annotations

import os
import threading
import time
from queue import SimpleQueue
from typing import TYPE_CHECKING, NamedTuple

from epprof_nb import _native
from epprof_nb.core.errors import EpprofError
from epprof_nb.core.stream_threads import stream_thread_name
from epprof_nb.host._capture_checks import refuse_in_capture
from epprof_nb.host._log import LOG, Activity

if TYPE_CHECKING:
    from collections.abc import Callable

DEPTH = 1024
"""Capacity of a queue. Submitting to a full queue blocks, as in CUDA."""

_FULL_POLL_S = 50e-6
_SIGNAL_POLL_S = 0.1


class DeviceError(EpprofError, RuntimeError):
    """A command of a stream failed; ``__cause__`` is the exception that it raised."""


class Command(NamedTuple):
    """A command: the function to call, its label in errors, and the activity to record, if any."""

    run: Callable[[], object]
    label: str
    activity: Activity | None


class Fence:
    """A point in a queue that is signaled when the worker reaches it.

    It is not a `threading.Event`: Ctrl-C in a wait can leave the lock of an event locked, and the
    worker would then wait for it forever.
    """

    __slots__ = ("_pending", "_process", "_worker", "signaled", "time_ns")

    def __init__(self, worker: threading.Thread | None = None) -> None:
        self._worker = worker
        self._pending = threading.Lock()
        self._pending.acquire()
        self._process = os.getpid()
        self.signaled = False
        """Whether the worker has reached the fence."""
        self.time_ns = 0

    def signal(self) -> None:
        """Record the time (CLOCK_MONOTONIC) and wake all waiting threads."""
        if not self.signaled:
            self.time_ns = _native.now_ns()
            self.signaled = True
            self._pending.release()

    def wait(self) -> None:
        """Wait until the worker has reached the fence; raise RuntimeError if it never will."""
        if not self.signaled and self._process != os.getpid():
            raise RuntimeError(
                "cannot wait for this event: it was recorded before the process was forked, on a "
                "stream that runs in the parent only. Record it again in this process."
            )
        _native.pause_lock_waits()  # API calls say themselves what they wait for
        try:
            self._wait()
        finally:
            _native.resume_lock_waits()

    def _wait(self) -> None:
        # Wait with a timeout: once CUDA has started in a process, signals no longer interrupt an
        # unlimited wait, and Ctrl-C would be delayed until the work is done.
        while not self.signaled:
            if self._pending.acquire(timeout=_SIGNAL_POLL_S):
                self._pending.release()  # for the next waiting thread
                return
            worker = self._worker
            if worker is not None and not worker.is_alive() and not self.signaled:
                raise RuntimeError(
                    "cannot wait for this event: the thread of its stream has ended, so the "
                    "remaining work will not run. Create a new stream."
                )


class _Worker(threading.Thread):
    """A separate type, to distinguish workers from the user's threads."""


class Queue:
    """A queue of commands and its worker thread, which starts with the first command."""

    def __init__(self, stream_id: int) -> None:
        self.stream_id = stream_id
        self._reset()
        self._closed = False
        _live.add(self)

    def _reset(self) -> None:
        self._commands: SimpleQueue[tuple[int, Command | Fence] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._worker: _Worker | None = None
        self._last = Fence()
        self._submitted = 0
        self._served = 0
        self._error: tuple[str, BaseException] | None = None
        self._skipped = 0

    @property
    def idle(self) -> bool:
        """Whether all submitted commands are done."""
        return self._served >= self._submitted

    @property
    def failed(self) -> bool:
        """Whether a command has failed and its error was not raised yet."""
        return self._error is not None

    def launch(self, command: Command) -> None:
        """Append work of the device; see `submit`."""
        self.submit(command)
        if _follower is not None:
            _follower(self)

    def submit(self, command: Command | Fence) -> None:
        """Append a command, blocking while the queue is full. RuntimeError if closed."""
        refuse_in_capture(
            f"launches work on stream {self.stream_id}",
            "Do the work in the kernel itself: a graph holds the launches of its own stream",
        )
        # A kernel that launches work must not wait for itself.
        if self._submitted - self._served >= DEPTH and not in_worker():
            while self._submitted - self._served >= DEPTH:
                time.sleep(_FULL_POLL_S)
        with self._lock:
            if self._closed:
                raise RuntimeError(
                    f"stream {self.stream_id} is closed and accepts no more work; create a new "
                    "one with epprof_nb.host.Stream()"
                )
            self._put(command)

    def _put(self, command: Command | Fence) -> None:
        if self._worker is None:
            # A wait for a queue whose worker never started would not end.
            _native.uninterrupted(self._start_worker)
        # Commands are numbered, so that one lost to Ctrl-C between these lines is not missed.
        self._submitted += 1
        self._commands.put((self._submitted, command))

    def _start_worker(self) -> None:
        name = stream_thread_name(self.stream_id)
        worker = _Worker(target=self._serve, name=name, daemon=True)
        worker.start()
        self._worker = worker

    def insert_fence(self) -> Fence:
        """Append a fence after all submitted commands."""
        with self._lock:
            if self._closed:
                return self._last
            fence = Fence(self._worker)
            self._put(fence)
            return fence

    def close(self) -> None:
        """Accept no more commands; the worker ends when it has executed those in the queue."""
        with self._lock:
            self._closed = True
            if self._worker is None:
                self._last.signal()
        self.request_close()

    def request_close(self) -> None:
        """Close from a finalizer: takes no lock, because the interrupted code may hold any."""
        if self._worker is None:
            _live.discard(self)
        else:
            self._commands.put(None)

    def _serve(self) -> None:
        _native.pause_lock_waits()
        # Nothing is added to a closed queue, so the worker ends once it is empty.
        while not (self._closed and self._commands.empty()):
            item = self._commands.get()
            if item is None:
                with self._lock:
                    self._closed = True
                continue
            number, command = item
            if isinstance(command, Fence):
                self._served = number
                command.signal()
            else:
                if self._error is None:
                    self._execute(command)
                else:
                    self._skipped += 1
                self._served = number
            # Release its arrays now instead of when the next command arrives.
            del item, command
        self._last.signal()
        if not self.failed:
            _live.discard(self)

    def _execute(self, command: Command) -> None:
        start_ns = _native.now_ns()
        try:
            command.run()
        except BaseException as error:  # noqa: BLE001 (raised at the next synchronization)
            self._error = (command.label, error)
        if command.activity is not None:
            LOG.add(command.activity, start_ns, _native.now_ns())

    def raise_error(self) -> None:
        """Raise `DeviceError` if a command has failed, and reset the error."""
        with self._lock:
            if self._error is None:
                return
            (label, cause), skipped = self._error, self._skipped
            self._error, self._skipped = None, 0
            ended = self._closed and self._last.signaled
        if ended:
            _live.discard(self)
        later = ""
        if skipped:
            what = "1 later command was" if skipped == 1 else f"{skipped} later commands were"
            later = f" {what} skipped."
        raise DeviceError(
            f"{label} on stream {self.stream_id} of the host device raised "
            f"{type(cause).__name__}: {cause}.{later} The stream accepts work again: fix the "
            "error, then launch this command and the later ones again."
        ) from cause


_follower: Callable[[Queue], None] | None = None


def follow_launches(follower: Callable[[Queue], None] | None) -> None:
    """Set the function that is called with the queue after each launch; None: no function."""
    global _follower  # noqa: PLW0603
    _follower = follower


# All operations on it are atomic, including `sorted` and `list`, so it needs no lock.
_live: set[Queue] = set()


def live_queues() -> list[Queue]:
    """Return all queues that are in use or have an error that was not raised yet."""
    return sorted(_live, key=lambda queue: queue.stream_id)


def wait_for_all() -> list[Queue]:
    """Wait for all submitted commands on all queues; return the queues waited for."""
    queues = [queue for queue in live_queues() if not queue.idle or queue.failed]
    for fence in [queue.insert_fence() for queue in queues]:
        fence.wait()
    return queues


def in_worker() -> bool:
    """Whether the caller runs on the worker thread of a stream."""
    return isinstance(threading.current_thread(), _Worker)


def refuse_wait(call: str) -> None:
    """Raise RuntimeError on the worker thread of a stream and in a capture, which cannot wait."""
    refuse_in_capture(
        f"waits for the device with {call}",
        "Leave it out: the kernels of a graph run one after the other",
    )
    if in_worker():
        raise RuntimeError(
            f"{call} was called inside a kernel, which would wait for itself; call it from the "
            "code that launches the kernel"
        )


def _after_fork() -> None:
    # Threads do not survive a fork. Queued commands run in the parent only, and the streams of
    # the child start empty, with new workers.
    for queue in list(_live):
        queue._reset()
        if queue._closed:
            queue._last.signal()
            _live.discard(queue)


os.register_at_fork(after_in_child=_after_fork)
