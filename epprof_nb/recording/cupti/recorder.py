"""The CUPTI recorder: activities of the GPUs used by this process."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb import _native
from epprof_nb.core.errors import CaptureError
from epprof_nb.recording.cupti import buffer_limits, gpu_state, layouts, loading, tables
from epprof_nb.recording.cupti.clock import CuptiClock
from epprof_nb.recording.cupti.enabled_kinds import enabled_kinds
from epprof_nb.recording.cupti.event_waits import EventWaits
from epprof_nb.recording.cupti.other_profilers import (
    TorchProfilerHooks,
    active_profiler,
    notes_on_profilers,
    teardown_attempts,
)
from epprof_nb.recording.native_columns import ids, numbers
from epprof_nb.recording.recorder import CellLog, RecordedCalls, Recorder, RecorderOutput
from epprof_nb.util.cuda_state import cuda_started

if TYPE_CHECKING:
    from epprof_nb.core.options import Options

_MAX_FORK_WAIT_S = 5.0

_DEVICE_LOST = {214, 220, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721}
"""CUresult values after which every further call of CUDA in the process fails.

Uncorrectable errors of memory and of NVLink, contained errors, illegal address, timeout, assert,
hardware stack error, illegal instruction, misaligned address, invalid address space, invalid
program counter, failed launch, leak of tensor memory.
"""


def _cell_log() -> CellLog:
    raw = _native.take_cell_log()
    return CellLog(
        raw["thread_id"],
        numbers(raw, "top_ns", np.int64),
        ids(raw, "top_op_id", np.uint64),
        numbers(raw, "cpu_at_ns", np.int64),
        numbers(raw, "cpu_ns", np.int64),
    )


class CuptiRecorder(Recorder):
    """Records GPU activities through CUPTI. See `epprof_nb.recording.recorder.Recorder`."""

    name = "cupti"

    def __init__(self) -> None:
        self._options: Options | None = None
        self._cupti_clock = CuptiClock()
        self._external = False
        self._expected_missing = 0
        self._part = 0
        self._awaits_first_record = False
        self._sync_intervals: list[tuple[int, int]] = []
        self._records_left = 0
        self._devices: list[str] = []
        self._device_of_context: dict[int, int] = {}
        self._event_waits = EventWaits()
        self._failure: tuple[str, str] | None = None
        self._notes: list[str] = []
        # PyTorch's profiler pauses the recorder from any thread.
        self._lock = threading.RLock()
        self._hooks = TorchProfilerHooks(self._pause, self._resume)
        self._paused_ns: int | None = None
        self._is_released = False
        self._interrupted_ns = 0
        self._before_pause: list[RecorderOutput] = []
        self.versions: dict[str, str] = {}
        self.clock: dict[str, Any] = {}

    def start(self, options: Options) -> list[str]:
        """Start CUPTI.

        Raises
        ------
        CaptureError
            If GPU activity cannot be recorded. The message says why and what to do.
        """
        libcupti, version = loading.load()
        self.versions = {
            "cupti": str(version),
            "cupti_library": libcupti.path,
            "cuda_major": str(libcupti.cuda_major),
        }
        if active_profiler() == "torch.profiler":
            raise CaptureError(
                "GPU activity was not recorded: torch.profiler is recording in this process, and "
                "CUPTI serves one profiler at a time. Stop it first, or use the two profilers in "
                "separate cells."
            )
        with self._lock:
            self._options = options
            self._records_left = options.max_records
            self._failure = None
            self._notes = []
            self._paused_ns = None
            self._is_released = False
            self._interrupted_ns = 0
            self._before_pause = []
            self._sync_intervals.clear()
            self._awaits_first_record = False
            self._event_waits = EventWaits()
            self._part = 0
            notes = self._begin(options)
            self._hooks.install()
        return notes

    def _begin(self, options: Options) -> list[str]:
        """Start CUPTI with callbacks or, if they are held, with external correlation."""
        notes: list[str] = []
        self._limit_records()
        self._external = False
        self._expected_missing = 0
        started = self._start(options, callbacks=True)
        if not started["subscribed"]:
            for _ in teardown_attempts():
                _native.cupti_stop()
                started = self._start(options, callbacks=True)
                if started["subscribed"]:
                    break
        refusal = None
        if not started["subscribed"]:
            # Another tool owns CUPTI's callbacks: fall back to external correlation.
            _native.cupti_stop()
            self._start(options, callbacks=False)
            _native.start_cell_log()
            self._external = True
            result = started["subscribe_result"]
            refusal = str(layouts.RESULTS.get(result, result))
        notes += notes_on_profilers(refusal)
        self._cupti_clock.start()
        # With external correlation, its record would look like one of the user's.
        if not self._external and _native.cupti_first_launch():
            self._awaits_first_record = True
            self._records_left += 1
            self._limit_records()
        return notes

    def extend(self, options: Options) -> list[str]:
        """Also record what `options` request.

        If CUPTI must record more kinds, restart it after the work launched so far.
        """
        with self._lock:
            before = self._options
            if before is None:
                return []
            self._options = wider = before.union(options)
            self._records_left += wider.max_records - before.max_records
            if self._paused_ns is not None or all(map(before.records, wider.details)):
                return []
            self.sync()
            self._before_pause.append(self._drain(waited=True))
            self._end()
            self._part += 1
            try:
                return self._begin(wider)
            except CaptureError as error:
                self._paused_ns = _native.now_ns()
                return [str(error)]

    def _end(self) -> None:
        _native.cupti_stop()
        _native.stop_cell_log()

    def _pause(self) -> None:
        """Keep what was recorded so far and release CUPTI."""
        with self._lock:
            if self._paused_ns is not None or self._options is None:
                return
            self.sync()
            self._before_pause.append(self._drain(waited=True))
            _native.follow_streams(False)  # noqa: FBT003 - that would keep the callbacks
            self._end()
            self._paused_ns = _native.now_ns()

    def _resume(self) -> None:
        with self._lock:
            if self._paused_ns is None or self._options is None:
                return
            self._interrupted_ns += _native.now_ns() - self._paused_ns
            self._paused_ns = None
            self._part += 1
            try:
                self._notes += self._begin(self._options)
            except CaptureError as error:
                self._paused_ns = _native.now_ns()
                self._notes.append(str(error))

    def _start(self, options: Options, *, callbacks: bool) -> dict[str, int]:
        try:
            return _native.cupti_start(
                kinds=np.array(enabled_kinds(options, callbacks=callbacks), np.uint32).tobytes(),
                callbacks=callbacks,
                all_calls=options.records("api"),
                external=not callbacks,
                part=self._part,
            )
        except RuntimeError as error:
            raise CaptureError(
                f"GPU activity was not recorded: {error}. Another profiler may hold CUPTI. Stop it "
                "(nsys, ncu, torch.profiler), or restart the Jupyter kernel without it."
            ) from error

    def sync(self) -> None:
        """Wait for all used contexts, except during a stream capture, which would fail."""
        with self._lock:
            if self._paused_ns is not None:
                return
            before = _native.now_ns()
            for _, result in _native.cupti_sync():
                if result in _DEVICE_LOST and self._failure is None:
                    self._failure = _native.cuda_error(result)
            self._sync_intervals.append((before, _native.now_ns()))
            self._wait_for_outstanding()

    def _wait_for_outstanding(self) -> None:
        """Flush until every launch has its record; CUPTI completes records on its own thread.

        The forced flush comes last, because it abandons the records of work still running.
        """
        if not self._external:
            for pause_s in (0.0, 0.0005, 0.001, 0.002, 0.004):
                time.sleep(pause_s)
                _native.cupti_flush(forced=False)
                if _native.cupti_pending_records() <= self._expected_missing:
                    return
        _native.cupti_flush(forced=True)
        # Copies within host memory and records dropped by CUPTI never complete.
        self._expected_missing = max(0, _native.cupti_pending_records())

    def drain(self, *, waited: bool = True) -> RecorderOutput:
        """Return the records that CUPTI has completed."""
        with self._lock:
            outputs, self._before_pause = self._before_pause, []
            if self._paused_ns is None:
                outputs.append(self._drain(waited=waited))
            return RecorderOutput.merged(outputs)

    def _drain(self, *, waited: bool) -> RecorderOutput:
        _native.cupti_flush(forced=False)
        raw = _native.cupti_drain()
        calibration = self._cupti_clock.calibrate()
        self.clock = self._cupti_clock.info
        output = RecorderOutput(
            activities=tables.activities(
                raw,
                calibration,
                self._device_of_context,
                self._event_waits,
                part=self._part,
                waits_are_records=self._external,
            ),
            memory=tables.memory(raw, calibration, self._part),
            overhead=tables.overhead(raw, calibration),
            dropped=raw["lost"] + raw["dropped"] + raw["unfinished"],
            decode_ns=raw["decode_ns"],
            failure=self._failure,
        )
        self._check_delivery(output, waited=waited)
        if self._external:
            calls = tables.api_calls(raw, calibration, self._part)
            output.calls = RecordedCalls(
                calls,
                tables.correlation_ids(raw, "external.correlation_id", self._part),
                ids(raw, "external.id", np.uint64),
                tables.is_wait_of_profiler(calls, self._sync_intervals),
                _cell_log(),
            )
        self._update_record_limit(output)
        nodes = _native.cupti_graph_nodes()
        output.graphs.nodes = {
            name: np.frombuffer(nodes[name], np.uint64).astype(np.int64) for name in nodes
        }
        return output

    def _check_delivery(self, output: RecorderOutput, *, waited: bool) -> None:
        """Add a note if not even the record of our own launch has arrived."""
        if len(output.activities) or output.dropped or self._failure:
            self._awaits_first_record = False
        elif waited and self._awaits_first_record and not _native.cupti_state()["captures_open"]:
            self._awaits_first_record = False
            self._notes.append(
                "CUPTI delivered no records. Another profiler may have taken its buffers, and GPU "
                "activity is missing. Restart the Jupyter kernel without the other one."
            )

    def _update_record_limit(self, output: RecorderOutput) -> None:
        """Lower the native limit to the rest of `max_records`; draining resets its counter."""
        drained = (output.activities, output.memory, output.overhead)
        self._records_left = max(self._records_left - sum(map(len, drained)), 0)
        self._limit_records()

    def _limit_records(self) -> None:
        _native.cupti_configure(
            buffer_bytes=buffer_limits.BUFFER_BYTES,
            buffers=buffer_limits.BUFFERS,
            max_records=self._records_left,
        )

    def notes(self) -> list[str]:
        """Return notes on interruptions by other profilers; dropped records are counted."""
        with self._lock:
            interrupted = self._interrupted_ns
            if self._paused_ns is not None:
                interrupted += _native.now_ns() - self._paused_ns
            if not interrupted:
                return list(self._notes)
            note = (
                f"torch.profiler recorded for {interrupted / 1e9:.3g} s inside this profile. GPU "
                "activity of that time is in its trace, and missing here."
            )
            return [note, *self._notes]

    def stop(self) -> None:
        """Stop CUPTI and end the subscription to its callbacks."""
        with self._lock:
            self._hooks.remove()
            self._options = None
            if self._paused_ns is None:
                self._end()
            _native.cupti_drain()
            self._before_pause = []

    def before_fork(self) -> None:
        """End CUPTI if CUDA has not been started, so that the child can record GPUs.

        In a child of a process that has started CUPTI, also for an earlier session, CUPTI 13.0
        crashes or never returns. While PyTorch's profiler has CUPTI, it is left alone.
        """
        if cuda_started() or not self._lock.acquire(timeout=_MAX_FORK_WAIT_S):
            return
        try:
            if self._paused_ns is not None:
                return
            if self._options is not None:
                self._end()
                self._is_released = True
            _native.cupti_finalize()
        finally:
            self._lock.release()

    def after_fork_in_parent(self) -> None:
        """Record again."""
        if not self._is_released:
            return
        with self._lock:
            self._is_released = False
            if self._options is None:
                return
            self._part += 1
            try:
                self._begin(self._options)
            except CaptureError as error:
                self._paused_ns = _native.now_ns()
                self._notes.append(str(error))

    def state(self) -> dict[str, Any]:
        """Return the state of the GPUs, from NVML."""
        return gpu_state.snapshot()

    def devices(self) -> list[dict[str, Any]]:
        """Return the GPUs of this machine."""
        # CUDA ordinals are fixed once CUDA has started. It has if anything was recorded.
        self._devices = self._devices or gpu_state.device_names()
        return [
            {"device_id": index, "name": name, "kind": "gpu"}
            for index, name in enumerate(self._devices)
        ]
