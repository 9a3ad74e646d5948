"""A profiling session: a slice of the capture service, from its start to its Profile."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np

import epprof_nb.instrument.ranges  # noqa: F401 - it installs what follows ops into generators
from epprof_nb import _native
from epprof_nb.capture.correlate import join
from epprof_nb.capture.profile_info import describe
from epprof_nb.capture.service import Consumer, Slice, service
from epprof_nb.core.clock import pair_with_epoch
from epprof_nb.core.options import Options
from epprof_nb.data.profile_data import ProfileData
from epprof_nb.instrument import range_sources
from epprof_nb.recorders import nvml

if TYPE_CHECKING:
    from epprof_nb.capture.service import Batch
    from epprof_nb.data.table import Table


_TIME_COLUMNS = ("start_ns", "end_ns", "time_ns")


class Session:
    """One profiled stretch. `start` makes one; `stop` gives its `Profile`.

    Parameters
    ----------
    options
        What to record.
    cell, source
        Name (as ``In[3]``) and source text of the profiled cell, if it is one.
    """

    def __init__(
        self, options: Options, *, cell: str | None = None, source: str | None = None
    ) -> None:
        self.options = options
        self._cell = cell
        self._sources = {} if cell is None or source is None else {cell: source}
        self._runs: list[tuple[int, int]] = []
        self._timer: threading.Timer | None = None
        self._sliced: Slice | None = None
        begun = _native.now_ns()
        self._gpu_before = nvml.snapshot()
        self._epoch = pair_with_epoch()
        self._consumer: Consumer = service.open(options)
        self._start_cost_ns = _native.now_ns() - begun
        if options.time_limit_s is not None:
            self._timer = threading.Timer(options.time_limit_s, self._cut_short)
            self._timer.daemon = True
            self._timer.start()

    def mark_run(self, index: int) -> None:
        """Say that repeat `index` of the profiled code begins now."""
        self._runs.append((_native.now_ns(), index))

    def _cut_short(self) -> None:
        self._sliced = service.close(self._consumer)

    def stop(self, *, error: str | None = None) -> ProfileData:
        """End the session and join what was recorded.

        Parameters
        ----------
        error
            Name of the exception the profiled code ended with, if it did.

        Raises
        ------
        CaptureError
            If it was stopped before, or begun in the parent of a forked process.
        """
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()
        stopped = _native.now_ns()
        part, self._sliced = self._sliced or service.close(self._consumer), None
        joined = join(part)
        joined_ns = _native.now_ns()
        info = {
            "cell": self._cell,
            "detail": self.options.detail,
            **describe(part, joined, self._epoch),
            "gpu": {"before": self._gpu_before, "after": nvml.snapshot()},
        }
        info["error"] = error
        if self.options.time_limit_s is not None and part.closed_ns < stopped:
            info["notes"].append(
                f"Recording stopped after {self.options.time_limit_s:g} s, as asked; the code "
                "went on unrecorded."
            )
        cost = self._start_cost_ns + joined_ns - part.closed_ns
        info["profiling_cost"] = {
            "ns": cost,
            "share": cost / max(1, info["wall_ns"]),
            "start_ns": self._start_cost_ns,
            "join_ns": joined_ns - part.closed_ns,
            "decode_ns": sum(r.decode_ns for b in part.batches for r in b.recorded),
        }
        tables = {name: _rebased(table, part.opened_ns) for name, table in joined.tables.items()}
        if self._runs:
            tables["ops"] = self._with_runs(tables["ops"], part.opened_ns)
        places, sources = range_sources.of_ops(tables["ops"])
        if places:
            info["op_places"] = places
        return ProfileData(tables, info, {**self._sources, **sources})

    def peek(self, seen: int) -> list[Batch] | None:
        """What was recorded so far, from the `seen`-th batch on; None once recording has ended."""
        return service.peek(self._consumer, seen)

    def abort(self) -> None:
        """End the session and throw away what it recorded."""
        if self._timer is not None:
            self._timer.cancel()
        service.abort(self._consumer)

    def _with_runs(self, ops: Table, origin: int) -> Table:
        starts = np.array([at - origin for at, _ in self._runs], np.int64)
        indices = np.array([index for _, index in self._runs], np.int64)
        at = np.searchsorted(starts, ops["start_ns"], side="right") - 1
        # An event of ONNX Runtime keeps the run of its session.
        of_repeat = (at >= 0) & ~ops.names("source").equals("onnxruntime")
        return ops.replace(run_id=np.where(of_repeat, indices[at], ops["run_id"]))


def start(
    options: Options | None = None, *, cell: str | None = None, source: str | None = None
) -> Session:
    """Begin a session; see `Session`."""
    return Session(options or Options(), cell=cell, source=source)


def _rebased(table: Table, origin: int) -> Table:
    times = {name: table[name] - origin for name in _TIME_COLUMNS if name in table.schema.names}
    return table.replace(**times) if times else table
