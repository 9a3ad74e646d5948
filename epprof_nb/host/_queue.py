"""The queue behind a stream: commands served in order by one worker thread."""

# ruff: noqa: SLF001 (the device's modules share the internals of its few classes)

from __future__ import annotations

import os
import threading
import time
from queue import SimpleQueue
from typing import TYPE_CHECKING, NamedTuple

from epprof_nb import _native
from epprof_nb.core.errors import EpprofError
from epprof_nb.host._log import LOG, Activity

if TYPE_CHECKING:
    from collections.abc import Callable

DEPTH = 1024
"""Commands a queue holds before whoever submits the next one has to wait, as in CUDA."""

_FULL_POLL_S = 50e-6
_SIGNAL_POLL_S = 0.1


class DeviceError(EpprofError, RuntimeError):
    """A command of a stream failed while it ran; ``__cause__`` is the exception it raised."""


class Command(NamedTuple):
    """Work for a worker: what to call, how errors name it, and the activity to record, if any."""

    run: Callable[[], object]
    label: str
    activity: Activity | None


class Mark:
    """A point in a queue; it fires when the worker gets there."""

    __slots__ = ("_fired", "_process", "time_ns")

    def __init__(self) -> None:
        self._fired = threading.Event()
        self._process = os.getpid()
        self.time_ns = 0

    @property
    def fired(self) -> bool:
        """Whether the worker has passed."""
        return self._fired.is_set()

    def fire(self) -> None:
        """Stamp the time (CLOCK_MONOTONIC) and wake whoever waits."""
        self.time_ns = _native.now_ns()
        self._fired.set()

    def wait(self) -> None:
        """Wait until the worker has passed; RuntimeError if it never will."""
        if not self.fired and self._process != os.getpid():
            raise RuntimeError(
                "cannot wait for this event: it was recorded before the process was forked, on a "
                "stream whose work only the parent does. Record it again in this process."
            )
        # In slices: once CUDA has started in a process, a signal no longer breaks a wait without
        # a time limit, and Ctrl-C would have to wait for the work.
        while not self._fired.wait(_SIGNAL_POLL_S):
            pass


class _Worker(threading.Thread):
    """The type tells a worker from the user's threads."""


class Queue:
    """Commands in order, and the worker that serves them; it starts with the first command."""

    def __init__(self, stream_id: int) -> None:
        self.stream_id = stream_id
        self._reset()
        self._closed = False
        _live.add(self)

    def _reset(self) -> None:
        self._commands: SimpleQueue[Command | Mark | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._worker: _Worker | None = None
        self._last = Mark()
        self._submitted = 0
        self._served = 0
        self._error: tuple[str, BaseException] | None = None
        self._skipped = 0

    @property
    def idle(self) -> bool:
        """Whether everything submitted so far is done."""
        return self._served >= self._submitted

    @property
    def failed(self) -> bool:
        """Whether a command has raised what nobody has been told yet."""
        return self._error is not None

    def submit(self, command: Command | Mark) -> None:
        """Append a command; waits while the queue is full. RuntimeError once closed."""
        # A kernel that launches more work must not wait for itself.
        if self._submitted - self._served >= DEPTH and not in_worker():
            while self._submitted - self._served >= DEPTH:
                time.sleep(_FULL_POLL_S)
        with self._lock:
            if self._closed:
                raise RuntimeError(
                    f"stream {self.stream_id} was closed and takes no more work; make a new one "
                    "with epprof_nb.host.Stream()"
                )
            self._put(command)

    def _put(self, command: Command | Mark) -> None:
        if self._worker is None:
            self._worker = _Worker(
                target=self._serve, name=f"epprof-host-stream-{self.stream_id}", daemon=True
            )
            self._worker.start()
        self._submitted += 1
        self._commands.put(command)

    def mark(self) -> Mark:
        """Put a mark after everything submitted so far."""
        with self._lock:
            if self._closed:
                return self._last
            mark = Mark()
            self._put(mark)
            return mark

    def close(self) -> None:
        """Take no more commands; the worker ends when it has done those it has."""
        with self._lock:
            self._closed = True
            if self._worker is None:
                self._last.fire()
        self.abandon()

    def abandon(self) -> None:
        """`close` for the garbage collector: takes no lock, since the caller may hold any."""
        if self._worker is None:
            _live.discard(self)
        else:
            self._commands.put(None)

    def _serve(self) -> None:
        # Once closed nothing is put any more, so empty is the end.
        while not (self._closed and self._commands.empty()):
            command = self._commands.get()
            if command is None:
                with self._lock:
                    self._closed = True
                continue
            if isinstance(command, Mark):
                self._served += 1
                command.fire()
            else:
                if self._error is None:
                    self._execute(command)
                else:
                    self._skipped += 1
                self._served += 1
            # Its arrays are free again now, not when the next command comes.
            del command
        self._last.fire()
        if not self.failed:
            _live.discard(self)

    def _execute(self, command: Command) -> None:
        start_ns = _native.now_ns()
        try:
            command.run()
        except BaseException as error:  # noqa: BLE001 (it is raised at the synchronisation)
            self._error = (command.label, error)
        if command.activity is not None:
            LOG.add(command.activity, start_ns, _native.now_ns())

    def raise_error(self) -> None:
        """Raise `DeviceError` if a command has failed; the queue then works again."""
        with self._lock:
            if self._error is None:
                return
            (label, cause), skipped = self._error, self._skipped
            self._error, self._skipped = None, 0
            ended = self._closed and self._last.fired
        if ended:
            _live.discard(self)
        later = ""
        if skipped:
            what = "1 command after it was" if skipped == 1 else f"{skipped} commands after it were"
            later = f" {what} not run."
        raise DeviceError(
            f"{label} on stream {self.stream_id} of the host device raised "
            f"{type(cause).__name__}: {cause}.{later} The stream takes work again: correct what "
            "was launched, and launch it and what came after it again."
        ) from cause


# Each operation on it is atomic, `sorted` and `list` included, so it needs no lock.
_live: set[Queue] = set()


def live_queues() -> list[Queue]:
    """Return every queue with work to come, or with an error that nobody has been told."""
    return sorted(_live, key=lambda queue: queue.stream_id)


def finish() -> list[Queue]:
    """Wait for everything submitted so far, on every queue; return those queues."""
    queues = [queue for queue in live_queues() if not queue.idle or queue.failed]
    for mark in [queue.mark() for queue in queues]:
        mark.wait()
    return queues


def in_worker() -> bool:
    """Whether this is a worker thread: code that a stream runs."""
    return isinstance(threading.current_thread(), _Worker)


def refuse_in_worker(call: str) -> None:
    """Raise RuntimeError in code that a stream runs: it would wait for itself."""
    if in_worker():
        raise RuntimeError(
            f"{call} was called inside a kernel, which would wait for itself; call it from the "
            "code that launches the kernel"
        )


def _after_fork() -> None:
    # Threads do not survive a fork: what was queued is the parent's to do, and the child's
    # streams start empty with workers of their own.
    for queue in list(_live):
        queue._reset()
        if queue._closed:
            queue._last.fire()
            _live.discard(queue)


os.register_at_fork(after_in_child=_after_fork)
