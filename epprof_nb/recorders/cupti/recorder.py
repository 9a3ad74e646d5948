"""The CUPTI recorder: activities of the GPUs used by this process."""

from __future__ import annotations

import os
import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb import _native
from epprof_nb.core.clock import Calibration, Probe
from epprof_nb.core.errors import CaptureError
from epprof_nb.core.native_columns import ids
from epprof_nb.recorders.base import RecorderOutput
from epprof_nb.recorders.cupti import layouts, library, tables
from epprof_nb.recorders.cupti.other_profilers import active_profiler, likely_holder

if TYPE_CHECKING:
    from epprof_nb.core.options import Options

BUFFER_BYTES = 4 << 20
BUFFERS = 16
"""Limits raw records waiting to be decoded to 64 MiB. CUPTI drops further ones and counts them."""

_KIND_TABLE = 128  # kKinds in native/cupti/record_layout.h


_foreign_clock: Probe | None = None
"""First reading of the clock, if another profiler has registered its own clock with CUPTI."""


def packed_layout(api_version: int) -> bytes:
    """Pack the layout of one CUPTI version as the native ``RecordLayout``."""
    layout = layouts.layout_for(api_version)
    record_of_kind = np.full(_KIND_TABLE, -1, np.int32)
    for number, (record, _) in enumerate(layouts.NATIVE_RECORDS):
        for kind in layouts.RECORD_KINDS[record]:
            record_of_kind[kind] = number
    return np.concatenate([record_of_kind, layout.packed(), layout.packed_callbacks()]).tobytes()


def _kind(name: str) -> int:
    return layouts.ENUMERATORS[f"CUPTI_ACTIVITY_KIND_{name}"]


_loaded_in: int | None = None
"""Id of the process that loaded libcupti. A forked child cannot use it."""


@cache
def _load() -> tuple[library.CuptiLibrary, int]:
    """Locate and load libcupti, once per process."""
    global _loaded_in  # noqa: PLW0603 - process-wide state
    driver = library.find_driver()
    if driver is None:
        raise CaptureError(
            "GPU activity cannot be recorded: the NVIDIA driver (libcuda.so.1) was not found on "
            "this machine. If the machine has a GPU, install the driver. Run `epprof doctor` for "
            "details."
        )
    libcupti = library.locate_libcupti()
    try:
        version = _native.cupti_load(libcupti.path, driver)
        _native.cupti_set_layout(packed_layout(version))
    except RuntimeError as error:
        raise CaptureError(
            f"GPU activity cannot be recorded: {libcupti.path} ({libcupti.origin}) could not "
            f"be used: {error}. Run `epprof doctor` to see how to fix this."
        ) from error
    _loaded_in = os.getpid()
    return libcupti, version


def driver_present() -> bool:
    """Whether this machine has an NVIDIA driver with a device. Does not start CUDA."""
    return Path("/dev/nvidiactl").exists() and library.find_driver() is not None


class CuptiRecorder:
    """Records GPU activities through CUPTI. See `epprof_nb.recorders.base.Recorder`."""

    name = "cupti"

    def __init__(self) -> None:
        self._probe: Probe | None = None
        self._external = False
        self._expected_missing = 0
        self._sync_intervals: list[tuple[int, int]] = []
        self._records_left = 0
        self._devices: list[str] = []
        self._device_of_context: dict[int, int] = {}
        self.versions: dict[str, str] = {}
        self.clock: dict[str, Any] = {}

    def start(self, options: Options) -> list[str]:
        """Start CUPTI.

        Raises
        ------
        CaptureError
            If GPU activity cannot be recorded. The message says why and what to do.
        """
        if _loaded_in not in (None, os.getpid()):
            raise CaptureError(
                "GPU activity cannot be recorded in this process: it was forked from a process "
                "that uses CUDA, and CUDA does not work in forked children. Start worker processes "
                "with the 'spawn' method."
            )
        libcupti, version = _load()
        self.versions = {
            "cupti": str(version),
            "cupti_library": libcupti.path,
            "cuda_major": str(libcupti.cuda_major),
        }
        other = active_profiler()
        if other == "torch.profiler":
            raise CaptureError(
                "GPU activity was not recorded: torch.profiler is recording in this process, and "
                "CUPTI serves one profiler at a time. Stop it first, or use the two profilers in "
                "separate cells."
            )
        notes: list[str] = []
        kinds = [_kind(k) for k in ("CONCURRENT_KERNEL", "MEMCPY", "MEMCPY2", "MEMSET")]
        # Graphs are recorded node by node. With GRAPH_TRACE enabled, CUPTI 13.0 crashes at the
        # launch of a graph that was instantiated before.
        kinds.append(_kind("SYNCHRONIZATION"))
        if options.records("memory"):
            kinds.append(_kind("MEMORY2"))
        if options.records("overhead"):
            kinds.append(_kind("OVERHEAD"))
        self._records_left = options.max_records
        _native.cupti_configure(
            buffer_bytes=BUFFER_BYTES, buffers=BUFFERS, max_records=self._records_left
        )
        started = self._start(kinds, callbacks=True, all_calls=options.records("api"))
        self._external = False
        self._expected_missing = 0
        if not started["subscribed"]:
            # Another tool owns CUPTI's callbacks: fall back to external correlation.
            _native.cupti_stop()
            kinds += [_kind(k) for k in ("RUNTIME", "DRIVER", "EXTERNAL_CORRELATION")]
            self._start(kinds, callbacks=False, all_calls=False)
            self._external = True
            result = layouts.RESULTS.get(started["subscribe_result"], started["subscribe_result"])
            holder = other or likely_holder(str(result))
            notes.append(
                f"CUPTI's callbacks are held by {holder} ({result}). Activities are attributed by "
                "external correlation instead, which has more overhead. Restart the kernel to "
                "avoid this."
            )
        elif other:
            notes.append(
                f"{other} is active in this process. It may consume records that are then missing "
                "from this profile."
            )
        # The clock cannot be read before the first use of CUDA. It is then checked at the end.
        started_before = _native.cuda_started()
        self._probe = self._read_clock() if started_before else None
        if self._probe is None and started_before:
            notes.append(
                "CUPTI did not deliver a test record. Another profiler may hold its buffers, and "
                "GPU activity may be missing. Restart the kernel without the other profiler."
            )
        return notes

    def _start(self, kinds: list[int], *, callbacks: bool, all_calls: bool) -> dict[str, int]:
        try:
            return _native.cupti_start(
                kinds=np.array(kinds, np.uint32).tobytes(),
                callbacks=callbacks,
                all_calls=all_calls,
                external=not callbacks,
            )
        except RuntimeError as error:
            raise CaptureError(
                f"GPU activity was not recorded: {error}. Another profiler may hold CUPTI. Stop it "
                "(nsys, ncu, torch.profiler), or restart the kernel without it."
            ) from error

    @staticmethod
    def _read_clock() -> Probe | None:
        times = _native.cupti_probe()
        return None if times is None else Probe(*times)

    def sync(self) -> None:
        """Wait for all used contexts, except while a stream is capturing (it would be aborted)."""
        before = _native.now_ns()
        _native.cupti_sync()
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
        _native.cupti_flush(forced=False)
        raw = _native.cupti_drain()
        # Reading the clock forces a flush, which abandons the records of work still running.
        calibration = self._calibrate(may_read=waited)
        output = RecorderOutput(
            activities=tables.activities(raw, calibration, self._device_of_context),
            memory=tables.memory(raw, calibration),
            overhead=tables.overhead(raw, calibration),
            dropped=raw["lost"] + raw["dropped"] + raw["unfinished"],
            decode_ns=raw["decode_ns"],
        )
        if self._external:
            output.api_calls = tables.api_calls(raw, calibration)
            output.external_correlation = (
                ids(raw, "external.correlation_id", np.uint32),
                ids(raw, "external.id", np.uint64),
            )
            output.profiler_sync_intervals = tuple(self._sync_intervals)
        self._sync_intervals.clear()
        self._update_record_limit(output)
        nodes = _native.cupti_graph_nodes()
        output.graph_nodes = {
            name: np.frombuffer(nodes[name], np.uint64).astype(np.int64) for name in nodes
        }
        return output

    def _update_record_limit(self, output: RecorderOutput) -> None:
        """Lower the native limit to the rest of `max_records`; draining resets its counter."""
        drained = (output.activities, output.memory, output.overhead)
        self._records_left = max(self._records_left - sum(map(len, drained)), 0)
        _native.cupti_configure(
            buffer_bytes=BUFFER_BYTES, buffers=BUFFERS, max_records=self._records_left
        )

    def _calibrate(self, *, may_read: bool) -> Calibration | None:
        global _foreign_clock  # noqa: PLW0603 - process-wide state, like the clock itself
        if self._probe is None and may_read and _native.cuda_started():
            self._probe = self._read_clock()
        first = self._probe
        if first is None:
            self.clock = {"cupti": "unproven"}
            return None
        if first.agrees:
            _foreign_clock = None
            self.clock = {"cupti": "shared", "probe_ns": first.after_ns - first.before_ns}
            return None
        # Another profiler has registered its own clock with CUPTI. The rate is more accurate the
        # further two readings are apart, so the first reading of that clock is kept.
        _foreign_clock = _foreign_clock or first
        last = (self._read_clock() if may_read else None) or first
        calibration = Calibration(_foreign_clock, last)
        self.clock = {"cupti": "calibrated", "offset_ns": calibration.offset_ns}
        return calibration

    def notes(self) -> list[str]:
        """Return no notes: dropped records are counted instead."""
        return []

    def stop(self) -> None:
        """Stop CUPTI and end the subscription to its callbacks."""
        _native.cupti_stop()
        _native.cupti_drain()
        self._sync_intervals.clear()

    def devices(self) -> list[dict[str, Any]]:
        """Return the GPUs of this machine."""
        from epprof_nb.recorders.nvml import device_names

        # CUDA ordinals are fixed once CUDA has started, as it has when anything was recorded.
        self._devices = self._devices or device_names()
        return [
            {"device_id": index, "name": name, "kind": "cuda"}
            for index, name in enumerate(self._devices)
        ]
