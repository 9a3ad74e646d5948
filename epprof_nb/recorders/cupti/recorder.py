"""The CUPTI recorder: what the GPUs of this process did."""

from __future__ import annotations

import os
import sys
import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb import _native
from epprof_nb.core.clock import Calibration, Probe
from epprof_nb.core.errors import CaptureError
from epprof_nb.core.native_columns import ids
from epprof_nb.recorders.base import Recorded
from epprof_nb.recorders.cupti import layouts, library, tables

if TYPE_CHECKING:
    from epprof_nb.core.options import Options

BUFFER_BYTES = 4 << 20
BUFFERS = 16
"""At most 64 MiB of raw records wait to be decoded; CUPTI drops and counts beyond that."""

_KIND_TABLE = 128  # native/layout.h: kKinds
_ALREADY_SUBSCRIBED = {
    "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED",
    "CUPTI_ERROR_MAX_LIMIT_REACHED",
}


_foreign_clock: Probe | None = None
"""The first reading of a clock that another profiler put into CUPTI, while it is there."""


def packed_layout(api_version: int) -> bytes:
    """The layout of one CUPTI version as the native core's ``Layout`` (``native/layout.h``)."""
    layout = layouts.layout_for(api_version)
    record_of_kind = np.full(_KIND_TABLE, -1, np.int32)
    for number, (record, _) in enumerate(layouts.NATIVE_RECORDS):
        for kind in layouts.RECORD_KINDS[record]:
            record_of_kind[kind] = number
    return np.concatenate([record_of_kind, layout.packed(), layout.packed_callbacks()]).tobytes()


def _kind(name: str) -> int:
    return layouts.ENUMERATORS[f"CUPTI_ACTIVITY_KIND_{name}"]


_loaded_in: int | None = None
"""The process that loaded libcupti: a child forked from it cannot use it."""


@cache
def _load() -> tuple[library.CuptiLibrary, int]:
    """Find and load libcupti, once a process."""
    global _loaded_in  # noqa: PLW0603 - a fact of the process
    driver = library.find_driver()
    if driver is None:
        raise CaptureError(
            "No GPU work can be recorded: the NVIDIA driver (libcuda.so.1) was not found on this "
            "machine. On a machine with a GPU, install the driver; `epprof doctor` shows more."
        )
    found = library.locate_libcupti()
    try:
        version = _native.cupti_load(found.path, driver)
        _native.cupti_set_layout(packed_layout(version))
    except RuntimeError as error:
        raise CaptureError(
            f"No GPU work can be recorded: {found.path} ({found.origin}) could not be used: "
            f"{error}. `epprof doctor` shows what was found and how to mend it."
        ) from error
    _loaded_in = os.getpid()
    return found, version


def driver_present() -> bool:
    """Whether this machine has an NVIDIA driver with a device; CUDA is not started."""
    return Path("/dev/nvidiactl").exists() and library.find_driver() is not None


def active_profiler() -> str | None:
    """The name of a profiler that is recording in this process now, where that can be known."""
    torch = sys.modules.get("torch")
    enabled = getattr(getattr(torch, "autograd", None), "_profiler_enabled", None)
    if enabled is not None and enabled():
        return "torch.profiler"
    injected = os.environ.get("CUDA_INJECTION64_PATH", "")
    if injected:
        return "Nsight Systems" if "nsys" in injected.lower() else injected
    if any("NVIDIA_NSIGHT_COMPUTE" in k or k.startswith("NV_NSIGHT") for k in os.environ):
        return "Nsight Compute"
    return None


def _likely_holder(result: str) -> str:
    if result not in _ALREADY_SUBSCRIBED:
        return "an unknown tool"
    if "torch" in sys.modules:
        return "another profiler, likely torch.profiler, which keeps them once it has run"
    return "another profiler"


class CuptiRecorder:
    """Records GPU activities through CUPTI. See `epprof_nb.recorders.base.Recorder`."""

    name = "cupti"

    def __init__(self) -> None:
        self._probe: Probe | None = None
        self._external = False
        self._without_record = 0
        self._own_waits: list[tuple[int, int]] = []
        self._room = 0  # records that may still be kept
        self._devices: list[str] = []
        self._device_of_context: dict[int, int] = {}
        self.versions: dict[str, str] = {}
        self.clock: dict[str, Any] = {}

    def start(self, options: Options) -> list[str]:
        """Turn CUPTI on.

        Raises
        ------
        CaptureError
            Where no GPU work can be recorded; the message says why and what to do.
        """
        if _loaded_in not in (None, os.getpid()):
            raise CaptureError(
                "No GPU work can be recorded in this process: it was forked from one that uses "
                "CUDA, and CUDA does not work in the child of a fork. Start worker processes with "
                "the 'spawn' method."
            )
        found, version = _load()
        self.versions = {
            "cupti": str(version),
            "cupti_library": found.path,
            "cuda_major": str(found.cuda_major),
        }
        other = active_profiler()
        if other == "torch.profiler":
            raise CaptureError(
                "No GPU work was recorded: torch.profiler is recording in this process, and CUPTI "
                "serves one profiler at a time. End it first, or profile one cell with the one "
                "and the next with the other."
            )
        notes: list[str] = []
        kinds = [_kind(k) for k in ("CONCURRENT_KERNEL", "MEMCPY", "MEMCPY2", "MEMSET")]
        # Graphs are recorded node by node: CUPTI 13.0 crashes when GRAPH_TRACE is on and a graph
        # is launched that was instantiated before.
        kinds.append(_kind("SYNCHRONIZATION"))
        if options.records("memory"):
            kinds.append(_kind("MEMORY2"))
        if options.records("overhead"):
            kinds.append(_kind("OVERHEAD"))
        self._room = options.max_records
        _native.cupti_configure(buffer_bytes=BUFFER_BYTES, buffers=BUFFERS, max_records=self._room)
        started = self._start(kinds, callbacks=True, all_calls=options.records("api"))
        self._external = False
        self._without_record = 0
        if not started["subscribed"]:
            # Another tool owns CUPTI's callbacks: tag calls by external correlation instead.
            _native.cupti_stop()
            kinds += [_kind(k) for k in ("RUNTIME", "DRIVER", "EXTERNAL_CORRELATION")]
            self._start(kinds, callbacks=False, all_calls=False)
            self._external = True
            result = layouts.RESULTS.get(started["subscribe_result"], started["subscribe_result"])
            holder = other or _likely_holder(str(result))
            notes.append(
                f"CUPTI's callbacks are held by {holder} ({result}): work was tied to ops by "
                "external correlation, which costs more. Restart the kernel to profile without it."
            )
        elif other:
            notes.append(f"{other} is active in this process: it may take records from this one.")
        # Before CUDA's first use there is nothing to read: the clock is then proven at the end.
        started_before = _native.cuda_started()
        self._probe = self._read_clock() if started_before else None
        if self._probe is None and started_before:
            notes.append(
                "CUPTI delivered no record when asked for one: another profiler may hold its "
                "buffers. GPU work may be missing; restart the kernel without the other profiler."
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
                f"No GPU work was recorded: {error}. Another profiler may hold CUPTI: end it "
                "(nsys, ncu, torch.profiler), or restart the kernel without it."
            ) from error

    @staticmethod
    def _read_clock() -> Probe | None:
        times = _native.cupti_probe()
        return None if times is None else Probe(*times)

    def sync(self) -> None:
        """Wait for the contexts that worked; not while a stream captures, which it would break."""
        before = _native.now_ns()
        _native.cupti_sync()
        self._own_waits.append((before, _native.now_ns()))
        self._await_records()

    def _await_records(self) -> None:
        """Flush until every launch has its record: CUPTI finishes records on a thread of its own.

        A forced flush comes last, because it gives up on records of work still running.
        """
        if not self._external:
            for pause_s in (0.0, 0.0005, 0.001, 0.002, 0.004):
                time.sleep(pause_s)
                _native.cupti_flush(forced=False)
                if _native.cupti_outstanding() <= self._without_record:
                    return
        _native.cupti_flush(forced=True)
        # Copies within the host's memory, and what CUPTI dropped, will never have one.
        self._without_record = max(0, _native.cupti_outstanding())

    def drain(self, *, waited: bool = True) -> Recorded:
        """Hand over the records CUPTI has finished."""
        _native.cupti_flush(forced=False)  # a cut without a wait takes what is there
        raw = _native.cupti_drain()
        # Reading the clock flushes by force, which gives up on records of work still running.
        calibration = self._calibrate(may_read=waited)
        activities = tables.activities(raw, calibration, self._device_of_context)
        recorded = Recorded(
            activities=activities,
            memory=tables.memory(raw, calibration),
            overhead=tables.overhead(raw, calibration),
            dropped=raw["lost"] + raw["dropped"] + raw["unfinished"],
            decode_ns=raw["decode_ns"],
        )
        if self._external:
            recorded.api_calls = tables.api_calls(raw, calibration)
            recorded.op_of_correlation = (
                ids(raw, "external.correlation_id", np.uint32),
                ids(raw, "external.id", np.uint64),
            )
            recorded.own_waits = tuple(self._own_waits)
        self._own_waits.clear()
        self._bound_the_rest(recorded)
        nodes = _native.cupti_graph_nodes()
        recorded.graph_nodes = {
            name: np.frombuffer(nodes[name], np.uint64).astype(np.int64) for name in nodes
        }
        return recorded

    def _bound_the_rest(self, recorded: Recorded) -> None:
        """Have the core keep at most what is left of `max_records`: draining starts it anew."""
        tables = (recorded.activities, recorded.memory, recorded.overhead)
        self._room = max(self._room - sum(map(len, tables)), 0)
        _native.cupti_configure(buffer_bytes=BUFFER_BYTES, buffers=BUFFERS, max_records=self._room)

    def _calibrate(self, *, may_read: bool) -> Calibration | None:
        global _foreign_clock  # noqa: PLW0603 - a fact of the process, like the clock itself
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
        # Another profiler has put its own clock into CUPTI. The longer the stretch between two
        # readings, the better the rate: the first reading of that clock is kept.
        _foreign_clock = _foreign_clock or first
        last = (self._read_clock() if may_read else None) or first
        calibration = Calibration(_foreign_clock, last)
        self.clock = {"cupti": "calibrated", "offset_ns": calibration.offset_ns}
        return calibration

    def remarks(self) -> list[str]:
        """What CUPTI did not record is counted, not remarked on."""
        return []

    def stop(self) -> None:
        """Turn CUPTI off, with nothing left subscribed."""
        _native.cupti_stop()
        _native.cupti_drain()
        self._own_waits.clear()

    def devices(self) -> list[dict[str, Any]]:
        """Describe the GPUs of this machine."""
        from epprof_nb.recorders.nvml import device_names

        # CUDA has started by the time something was recorded, and its ordinals stay.
        self._devices = self._devices or device_names()
        return [
            {"device_id": index, "name": name, "kind": "cuda"}
            for index, name in enumerate(self._devices)
        ]
