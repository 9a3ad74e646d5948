"""The one capture service of the process: counted consumers, recorders on and off.

A consumer is anything that wants events: a profiled cell, a ``profile()`` inside it, a profile
that outlives both. What is recorded is cut into batches at every moment a consumer comes or goes,
so a consumer's slice is a whole number of batches and is exact.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb import _native
from epprof_nb.capture.graph_nodes import GraphNodes
from epprof_nb.core.errors import CaptureError
from epprof_nb.instrument import suspension

if TYPE_CHECKING:
    import numpy.typing as npt

    from epprof_nb.core.options import Options
    from epprof_nb.recorders.base import Recorded, Recorder


@dataclass(slots=True)
class Batch:
    """What was recorded between two cuts: the core's raw columns, and each recorder's tables."""

    ops: dict[str, Any]
    launches: dict[str, Any]
    recorded: list[Recorded]
    cut_ns: int


@dataclass(slots=True, eq=False)
class Consumer:
    """One who wants events, from `CaptureService.open` to `CaptureService.close`."""

    options: Options
    first_batch: int
    opened_ns: int
    earlier: list[Batch]
    """Batches from before it opened, while others recorded: work launched then is not its own."""
    notes: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Slice:
    """A consumer's share: its batches, and the launches known from before them."""

    batches: list[Batch]
    earlier: list[Batch]
    opened_ns: int
    stopped_ns: int
    closed_ns: int
    devices: list[dict[str, Any]]
    versions: dict[str, str]
    clock: dict[str, Any]
    notes: list[str]
    graph_nodes: GraphNodes


@cache
def _recorders() -> tuple[Recorder, ...]:
    from epprof_nb.recorders.cupti.recorder import CuptiRecorder, driver_present
    from epprof_nb.recorders.host import HostRecorder
    from epprof_nb.recorders.onnxruntime.recorder import OnnxRuntimeRecorder

    always: tuple[Recorder, ...] = (HostRecorder(), OnnxRuntimeRecorder())
    return (CuptiRecorder(), *always) if driver_present() else always


class CaptureService:
    """Turns recorders on for the first consumer and off after the last, whatever happens."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self._lock = threading.RLock()
        self._consumers: list[Consumer] = []
        self._batches: list[Batch] = []
        self._dropped_batches = 0
        self._running: list[Recorder] = []
        self._notes: list[str] = []
        self._graph_nodes = GraphNodes()

    @property
    def consumers(self) -> int:
        """How many consumers are open."""
        return len(self._consumers)

    def open(self, options: Options) -> Consumer:
        """Begin a consumer's slice."""
        with self._lock:
            if not self._consumers:
                self._start(options)
            else:
                self._cut(wait=False)
                if not _covers(self._consumers, options):
                    self._restart(options)
            consumer = Consumer(
                options,
                self._dropped_batches + len(self._batches),
                _native.now_ns(),
                list(self._batches),
                list(self._notes),
            )
            self._consumers.append(consumer)
            return consumer

    def close(self, consumer: Consumer) -> Slice:
        """End a consumer's slice: wait for the device work launched so far, and hand all over.

        Raises
        ------
        CaptureError
            If the consumer was closed before, or the process was forked since it opened.
        """
        with self._lock:
            if consumer not in self._consumers:
                raise CaptureError(
                    "This profile was stopped before, or was begun in the parent of this process: "
                    "there is nothing to hand over. Begin a new one."
                )
            stopped = _native.now_ns()
            try:
                self._cut(wait=True)
                first = consumer.first_batch - self._dropped_batches
                return Slice(
                    batches=self._batches[first:],
                    earlier=consumer.earlier,
                    opened_ns=consumer.opened_ns,
                    stopped_ns=stopped,
                    closed_ns=self._batches[-1].cut_ns,
                    devices=[d for r in self._running for d in r.devices()],
                    versions={k: v for r in self._running for k, v in _of(r, "versions")},
                    clock={k: v for r in self._running for k, v in _of(r, "clock")},
                    notes=[*consumer.notes, *(n for r in self._running for n in r.remarks())],
                    graph_nodes=self._graph_nodes,
                )
            finally:
                self._remove(consumer)

    def peek(self, consumer: Consumer, seen: int) -> list[Batch] | None:
        """Cut what was recorded so far, without waiting for the device.

        Parameters
        ----------
        consumer
            Whose slice to look at; it loses nothing by it.
        seen
            Batches of the slice that are known already.

        Returns
        -------
        batches
            Those after them; None once the consumer is closed.
        """
        with self._lock:
            if consumer not in self._consumers:
                return None
            self._cut(wait=False)
            return self._batches[consumer.first_batch - self._dropped_batches + seen :]

    def abort(self, consumer: Consumer) -> None:
        """End a consumer's slice and throw it away."""
        with self._lock:
            if consumer in self._consumers:
                self._remove(consumer)

    def _remove(self, consumer: Consumer) -> None:
        self._consumers.remove(consumer)
        if not self._consumers:
            self._stop()
            return
        first = min(c.first_batch for c in self._consumers)
        drop = first - self._dropped_batches
        del self._batches[:drop]
        self._dropped_batches += drop

    def _start(self, options: Options) -> None:
        self._notes = []
        # Whatever a thread logged after the last session's end is nobody's.
        _native.drain_ops(_native.now_ns(), open_too=False)
        _native.drain_launches()
        _native.set_recording(ops=True, launches=True)
        _native.set_cell_thread(True)
        for recorder in _recorders():
            self._turn_on(recorder, options)

    def _turn_on(self, recorder: Recorder, options: Options) -> None:
        try:
            self._notes += recorder.start(options)
        except CaptureError as error:
            # One source missing is no reason to lose the others: it is told in the profile.
            self._notes.append(str(error))
        else:
            self._running.append(recorder)

    def _restart(self, options: Options) -> None:
        """Turn recorders off and on again for a consumer that wants more than the open ones."""
        running, self._running = self._running, []
        for recorder in running:
            recorder.stop()
            self._turn_on(recorder, options)

    def _stop(self) -> None:
        try:
            for recorder in reversed(self._running):
                recorder.stop()
        finally:
            self._running = []
            _native.set_cell_thread(False)
            _native.set_recording(ops=False, launches=False)
            suspension.disable()
            self._batches = []
            self._dropped_batches = 0

    def _cut(self, *, wait: bool) -> None:
        if wait:
            for recorder in self._running:
                recorder.sync()
        now = _native.now_ns()
        # Activities first: the launch of each is then in the same batch or in one before.
        recorded = [recorder.drain(waited=wait) for recorder in self._running]
        launches = _native.drain_launches()
        ops = _native.drain_ops(now, open_too=True)
        for part in recorded:
            self._graph_nodes.add(part.graph_nodes)
        self._batches.append(Batch(ops, launches, recorded, now))

    def after_fork_in_child(self) -> None:
        """Forget everything: the child has neither the threads nor the device of its parent."""
        self._forget()


def _of(recorder: Recorder, name: str) -> list[tuple[str, Any]]:
    return list(getattr(recorder, name, {}).items())


def _covers(consumers: list[Consumer], options: Options) -> bool:
    return any(
        all(
            consumer.options.records(part) or not options.records(part)
            for part in ("api", "memory", "overhead")
        )
        for consumer in consumers
    )


service = CaptureService()
os.register_at_fork(after_in_child=service.after_fork_in_child)


def column(batches: list[Batch], table: str, name: str, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """One raw column over batches, concatenated."""
    parts = [np.frombuffer(getattr(batch, table)[name], dtype) for batch in batches]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
