"""The recording service of the process: it runs the recorders and serves their data to sessions.

A profiled cell, a ``profile()`` inside it and a profile that outlives both each hold a
`Subscription`. The service flushes the recorders into a `Batch` whenever a subscription opens or
closes, so the recording of a subscription is a whole number of batches and exact.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from epprof_nb import _native
from epprof_nb.arrays.ids import unique_values
from epprof_nb.core.errors import CaptureError
from epprof_nb.recording.ranges import greenlets, suspension
from epprof_nb.recording.samples import native_sampler
from epprof_nb.recording.session import created_threads, garbage_collections, thread_waits
from epprof_nb.recording.session.graph_node_registry import GraphNodeRegistry
from epprof_nb.recording.session.recording import Batch, Recording, Subscription, column
from epprof_nb.recording.session.thread_names import ThreadNames
from epprof_nb.recording.stacks import stack_log

if TYPE_CHECKING:
    from collections.abc import Callable

    from epprof_nb.core.options import Options
    from epprof_nb.recording.recorder import Recorder


_Result = TypeVar("_Result")


class _HostPart(Protocol):
    """Interface of the modules that record the host."""

    def start(self, options: Options) -> None:
        """Start the recording that the options request, unless it runs."""

    def stop(self) -> None:
        """Stop, and forget what was recorded."""


_HOST_PARTS: tuple[_HostPart, ...] = (
    created_threads,
    stack_log,
    native_sampler,
    garbage_collections,
    thread_waits,
)
"""Modules in the order of their start: samples refer to stacks."""


@cache
def _recorders() -> tuple[Recorder, ...]:
    from epprof_nb.recording.cupti.loading import driver_present
    from epprof_nb.recording.cupti.recorder import CuptiRecorder
    from epprof_nb.recording.host.recorder import HostRecorder
    from epprof_nb.recording.memory.recorder import MemoryRecorder
    from epprof_nb.recording.onnxruntime.recorder import OnnxRuntimeRecorder
    from epprof_nb.recording.session.framework_recorder import FrameworkRecorder

    always: tuple[Recorder, ...] = (
        HostRecorder(), OnnxRuntimeRecorder(), FrameworkRecorder(), MemoryRecorder()
    )  # fmt: skip
    return (CuptiRecorder(), *always) if driver_present() else always


def device_state() -> dict[str, Any]:
    """Return the state of the devices now: clocks, temperature and so on, if there is any."""
    return {k: v for recorder in _recorders() for k, v in recorder.state().items()}


class RecordingService:
    """Starts the recorders with the first subscription and stops them after the last.

    Ctrl-C can raise between any two statements of the main thread. Callers therefore open and
    abort subscriptions inside ``_native.uninterrupted``, and `close` does so itself. Exceptions of
    other signal handlers, and exceptions that one thread raises in another, are not delayed.
    Callers must therefore repeat `abort` until it returns, as `_native.GuardedContext` does.

    Attributes
    ----------
    on_recording
        Functions to call with ``recording=True`` before recording starts, and with
        ``recording=False`` after it has stopped. They must not fail. A forked child has none.
    """

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self.on_recording: list[Callable[..., None]] = []
        self._lock = threading.RLock()
        self._depth = 0  # nesting depth of calls that hold the lock
        self._abandoned: deque[Subscription] = deque()
        self._recording = False
        self._subscriptions: list[Subscription] = []
        self._batches: list[Batch] = []
        self._dropped_batches = 0
        self._recorders: tuple[Recorder, ...] = ()  # once a session has started
        self._running: list[Recorder] = []
        self._notes: list[str] = []
        self._options: Options | None = None
        self._graph_nodes = GraphNodeRegistry()
        self._thread_names = ThreadNames()
        self._stacks: list[dict[str, Any]] = []

    @property
    def open_subscriptions(self) -> int:
        """Number of open subscriptions."""
        return len(self._subscriptions)

    def _exclusively(self, function: Callable[..., _Result], *args: object) -> _Result:
        """Call a function under the lock.

        A context manager in Python is not enough: an exception of a signal handler can leave it
        entered as long as the traceback exists.
        """
        with self._lock:
            self._depth += 1
            try:
                result = function(*args)
            finally:
                self._depth -= 1
        self._end_abandoned()
        return result

    def open(self, subscription: Subscription) -> None:
        """Open a subscription, starting or extending recorders as its options require.

        If it fails, everything is as before. `abort` undoes it even if it was interrupted.
        """
        self._exclusively(self._open, subscription)

    def _open(self, subscription: Subscription) -> None:
        options = subscription.options
        try:
            if not self._subscriptions:
                self._stop_if_unused()  # stop what an error of a recorder left running
                self._start(options)
                self._options = None
            else:
                self._flush()
                for part in _HOST_PARTS:
                    part.start(options)
                for recorder in self._running:
                    notes = recorder.extend(options)
                    self._notes += [note for note in notes if note not in self._notes]
            subscription.first_batch = self._dropped_batches + len(self._batches)
            subscription.opened_ns = _native.now_ns()
            subscription.previous_batches = list(self._batches)
            subscription.notes = list(self._notes)
            self._options = options.union(self._options or options)
            self._subscriptions.append(subscription)
        except BaseException:
            self._remove(subscription)
            raise

    def close(self, subscription: Subscription) -> Recording:
        """Wait for the device work launched so far, close the subscription and return its data.

        Raises
        ------
        CaptureError
            If the subscription is already closed, or the process was forked after it opened.
        """
        stopped = _native.now_ns()
        self.wait(subscription)
        return _native.uninterrupted(self._take, subscription, stopped)

    def wait(self, subscription: Subscription) -> None:
        """Wait for the device work launched so far.

        Raises
        ------
        CaptureError
            If the subscription is closed, or the process was forked after it opened.
        """
        with self._lock:  # released before the wait, which Ctrl-C may end
            self._check_open(subscription)
            for recorder in list(self._running):
                recorder.sync()

    def _check_open(self, subscription: Subscription) -> None:
        if subscription not in self._subscriptions:
            raise CaptureError(
                "This profile has no data: it was already stopped, or it was started in the "
                "parent of this forked process. Start a new profile."
            )

    def _take(self, subscription: Subscription, stopped_ns: int) -> Recording:
        return self._exclusively(self._close, subscription, stopped_ns)

    def _close(self, subscription: Subscription, stopped_ns: int) -> Recording:
        self._check_open(subscription)
        try:
            self._flush(waited=True)
            return self._recording_of(subscription, stopped_ns)
        finally:
            self._remove(subscription)

    def _recording_of(self, subscription: Subscription, stopped_ns: int) -> Recording:
        return Recording(
            batches=self._batches[subscription.first_batch - self._dropped_batches :],
            previous_batches=subscription.previous_batches,
            opened_ns=subscription.opened_ns,
            stopped_ns=stopped_ns,
            closed_ns=self._batches[-1].flushed_ns,
            devices=[d for r in self._running for d in r.devices()],
            versions={k: v for r in self._running for k, v in _items(r, "versions")},
            clock={k: v for r in self._running for k, v in _items(r, "clock")},
            settings={k: v for r in self._running for k, v in _items(r, "settings")},
            notes=[
                *subscription.notes,
                *(n for r in self._running for n in r.notes()),
                *greenlets.notes(),
                *suspension.notes(),
            ],
            graph_nodes=self._graph_nodes,
            stacks=list(self._stacks),
            thread_names=self._thread_names,
            kernel_places=dict(i for r in self._running for i in _items(r, "kernel_places")),
            recorders=list(self._running),
            options=replace(
                self._options or subscription.options, samples=subscription.options.samples
            ),
        )

    def so_far(self, subscription: Subscription) -> Recording | None:
        """Return the recording until now, without waiting for the device; None if it has ended."""
        return self._exclusively(self._so_far, subscription)

    def _so_far(self, subscription: Subscription) -> Recording | None:
        if subscription not in self._subscriptions:
            return None
        self._flush()
        return self._recording_of(subscription, self._batches[-1].flushed_ns)

    def batches_since(self, subscription: Subscription, index: int) -> list[Batch] | None:
        """Return the newest batches of an open subscription, without waiting for the device.

        The recorders are flushed first. The subscription keeps all its batches.

        Parameters
        ----------
        subscription
            An open subscription.
        index
            Number of its batches that the caller already has.

        Returns
        -------
        batches
            The batches from `index` on; None if the subscription is closed.
        """
        return self._exclusively(self._batches_from, subscription, index)

    def _batches_from(self, subscription: Subscription, index: int) -> list[Batch] | None:
        if subscription not in self._subscriptions:
            return None
        self._flush()
        return self._batches[subscription.first_batch - self._dropped_batches + index :]

    def abort(self, subscription: Subscription) -> None:
        """Close a subscription, if it is open, and discard its data."""
        self._exclusively(self._remove, subscription)

    def abandon(self, subscription: Subscription) -> None:
        """Abort a subscription from a finalizer.

        A finalizer can run anywhere, even inside another call of the service or on a thread that
        holds a lock of a recorder. Therefore this never waits. If the service is in use, the
        subscription is closed at the end of that use.
        """
        self._abandoned.append(subscription)
        self._end_abandoned()

    def _end_abandoned(self) -> None:
        while self._abandoned and self._lock.acquire(blocking=False):
            try:
                if self._depth:  # called inside the call that holds the lock
                    return
                self._depth += 1
                try:
                    while self._abandoned:
                        self._remove(self._abandoned.popleft())
                finally:
                    self._depth -= 1
            finally:
                self._lock.release()

    def _remove(self, subscription: Subscription) -> None:
        if subscription in self._subscriptions:
            self._subscriptions.remove(subscription)
        self._stop_if_unused()
        if self._subscriptions:
            first = min(c.first_batch for c in self._subscriptions)
            drop = first - self._dropped_batches
            del self._batches[:drop]
            self._dropped_batches += drop

    def _start(self, options: Options) -> None:
        self._recording = True
        self._notify(recording=True)
        self._notes = []
        self._thread_names = ThreadNames()
        # Discard ops that threads logged after the end of the last session.
        _native.drain_ops(_native.now_ns(), open_too=False)
        _native.drain_launches()
        _native.take_costs(True)  # noqa: FBT003 - positional only
        _native.set_recording(ops=True, launches=True)
        _native.set_cell_thread(True)
        self._stacks = []
        for part in _HOST_PARTS:
            part.start(options)
        greenlets.follow()
        self._recorders = _recorders()
        for recorder in self._recorders:
            self._start_recorder(recorder, options)

    def _start_recorder(self, recorder: Recorder, options: Options) -> None:
        try:
            self._notes += recorder.start(options)
        except CaptureError as error:
            # The other recorders still work. The profile reports the missing one in its notes.
            self._notes.append(str(error))
        else:
            self._running.append(recorder)

    def _stop_if_unused(self) -> None:
        """Stop recording if no subscription is open; a call that failed can be repeated."""
        if self._subscriptions or not self._recording:
            return
        try:
            while self._running:
                recorder = self._running[-1]
                try:
                    recorder.stop()
                finally:
                    self._running.remove(recorder)
        finally:
            if not self._running:
                _native.set_cell_thread(False)
                _native.set_recording(ops=False, launches=False)
                for part in reversed(_HOST_PARTS):
                    part.stop()
                self._stacks = []
                suspension.stop_tracking()
                greenlets.stop()
                self._batches = []
                self._dropped_batches = 0
                self._recording = False
                self._notify(recording=False)

    def _notify(self, *, recording: bool) -> None:
        for function in list(self.on_recording):
            function(recording=recording)

    def _flush(self, *, waited: bool = False) -> None:
        now = _native.now_ns()
        # Drain activities first, so that each launch is in the same batch or an earlier one.
        outputs = [recorder.drain(waited=waited) for recorder in self._running]
        launches = _native.drain_launches()
        ops = _native.drain_ops(now, open_too=True)
        samples = native_sampler.drain()
        self._stacks += filter(None, [stack_log.drain()])
        for output in outputs:
            self._graph_nodes.add(output.graphs.nodes, self._stacks)
        batch = Batch(ops, launches, outputs, now, samples, thread_waits.drain())
        batch.op_costs = _native.take_op_costs()
        batch.costs = _native.take_costs(False)  # noqa: FBT003 - positional only
        self._batches.append(batch)
        for log in ("ops", "launches"):
            self._thread_names.update(unique_values(column([batch], log, "thread_id", np.int64)))

    def before_fork(self) -> None:
        """Let the recorders prepare for a fork, including recorders of earlier sessions."""
        for recorder in self._recorders:
            recorder.before_fork()

    def after_fork_in_parent(self) -> None:
        """Let the recorders continue after a fork."""
        for recorder in self._running:
            recorder.after_fork_in_parent()

    def after_fork_in_child(self) -> None:
        """Reset: a forked child has neither the threads nor the device of its parent."""
        for part in reversed(_HOST_PARTS):
            part.stop()
        self._reset()


def _items(recorder: Recorder, name: str) -> list[tuple[str, Any]]:
    return list(getattr(recorder, name, {}).items())


service = RecordingService()
os.register_at_fork(
    before=service.before_fork,
    after_in_parent=service.after_fork_in_parent,
    after_in_child=service.after_fork_in_child,
)
