"""A profiling session: one subscription to the recording service, turned into `ProfileData`."""

from __future__ import annotations

import os
import sys
import threading
import weakref
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import epprof_nb.recording.ranges.ranges  # noqa: F401 - installs the hooks that track generators
from epprof_nb import _native
from epprof_nb.core.errors import CaptureError
from epprof_nb.core.options import Options
from epprof_nb.data.profile_data import ProfileData
from epprof_nb.data.repeats import with_repeats
from epprof_nb.data.stack_table import with_stack_rows
from epprof_nb.recording.code_texts import merged_texts
from epprof_nb.recording.epoch import pair_with_epoch
from epprof_nb.recording.ranges import range_sources
from epprof_nb.recording.session import host_load
from epprof_nb.recording.session.correlate import correlate
from epprof_nb.recording.session.profile_info import build_info
from epprof_nb.recording.session.recording import Recording, Subscription
from epprof_nb.recording.session.service import device_state, service
from epprof_nb.recording.session.thread_waits import waits_until
from epprof_nb.recording.session.time_limit import TimeLimit
from epprof_nb.recording.stacks.shown_stacks import absolute, shown_stacks

if TYPE_CHECKING:
    from collections.abc import Iterable

    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.python_stacks import PythonStacks
    from epprof_nb.data.table import Table
    from epprof_nb.recording.session.recording import Batch


_TIME_COLUMNS = ("start_ns", "end_ns", "time_ns")


class Session:
    """A profiling session in progress, created by `start`; `stop` returns its data.

    A session ends automatically when nothing refers to it.

    Parameters
    ----------
    options
        What to record.
    cell, source
        Name (such as ``In[3]``) and source text of the profiled cell or script, if there is one.
    script
        Name of the profiled script. Without a cell, it defaults to the program that is running.
    """

    def __init__(
        self,
        options: Options,
        *,
        cell: str | None = None,
        source: str | None = None,
        script: str | None = None,
    ) -> None:
        self.options = options
        self._cell = cell
        self._script = script
        self._sources = {} if cell is None or source is None else {cell: source}
        self._repeats: list[int] = []
        self._repeat_ends: list[int] = []
        self._waits_begun: list[host_load.WaitReading] = []
        self._waits_ended: list[host_load.WaitReading] = []
        self._first_step: int | None = None
        self._recording: Recording | None = None
        self._process, self._thread = os.getpid(), threading.get_native_id()
        self._subscription = Subscription(options)
        self._limit: TimeLimit | None = None
        if options.time_limit_s is not None:
            # The limit must not keep the session alive.
            self._limit = TimeLimit(options.time_limit_s, _on_time_limit, weakref.ref(self))
        self._finalizer = _native.Finalizer(_abandon, self._subscription, self._limit)

    def open(self) -> None:
        """Begin to record. If this fails or is interrupted, `abort` undoes it."""
        self._start_began_ns = begin = _native.now_ns()
        self._gpu_before = device_state()
        self._host_before = host_load.read()
        self._epoch = pair_with_epoch()
        service.open(self._subscription)
        if self._limit is not None:
            self._limit.start()
        self._begun_ns = _native.now_ns()
        self._start_overhead_ns = self._begun_ns - begin

    @property
    def opened_ns(self) -> int:
        """Begin of the profile, CLOCK_MONOTONIC nanoseconds: time 0 of its tables."""
        return self._subscription.opened_ns

    @property
    def belongs_to_parent(self) -> bool:
        """Whether this process is a forked child of the process that started the session."""
        return os.getpid() != self._process

    def begin_code(self) -> None:
        """Begin the wall time now, right before the profiled code, not with the session."""
        self._begun_ns = self._subscription.opened_ns = _native.now_ns()
        self._start_overhead_ns = self._begun_ns - self._start_began_ns

    def mark_repeat(self, step: int | None = None) -> None:
        """Record that the next repeat of the profiled code, or its step `step`, starts now."""
        if not self._repeats:
            self._first_step = step
        self._repeats.append(_native.now_ns())

    def begin_repeat(self) -> None:
        """Record that the next repeat starts now, and record its waits for a core.

        `end_repeat` ends it.
        """
        self._waits_begun.append(host_load.read_waits())
        self.mark_repeat()

    def mark_step(self) -> None:
        """Record that the next step of the profiled code starts now.

        Step 0 lasts from the start of the session to the first call.
        """
        if self.belongs_to_parent:
            return
        if not self._repeats:
            self._first_step = 0
            self._repeats.append(self._begun_ns)
        self._repeats.append(_native.now_ns())

    def end_repeat(self) -> None:
        """Record that the repeat ends now, and wait until its device work is done.

        Without this call, a repeat lasts until the next one starts, and its work may last longer.
        """
        self._repeat_ends.append(_native.now_ns())
        self._end_waits()
        with suppress(CaptureError):  # the time limit has ended the recording
            service.wait(self._subscription)

    def _end_waits(self) -> None:
        if len(self._waits_ended) < len(self._waits_begun):
            self._waits_ended.append(host_load.read_waits())

    def stop_recording(self) -> None:
        """Stop recording, if it has not stopped; `stop` still returns the data."""
        with suppress(CaptureError):  # it was aborted
            self._recording = service.close(self._subscription)

    def stop(self, *, error: str | None = None, ended_ns: int | None = None) -> ProfileData:
        """End the session and correlate what was recorded.

        Parameters
        ----------
        error
            Name of the exception that ended the profiled code, if any.
        ended_ns
            When the profiled code and its last repeat ended; now if None. The wall time ends then,
            or with the last device work of the code.

        Raises
        ------
        CaptureError
            If the session was already stopped, or was started in the parent of a forked process.
        """
        if self._limit is not None:
            self._limit.cancel()
            self._limit.join()
        if ended_ns is None:
            ended_ns = _native.now_ns()
        self._end_waits()
        recording, self._recording = self._recording or service.close(self._subscription), None
        host_after = host_load.read()
        correlated = correlate(recording)
        correlated_ns = _native.now_ns()
        is_cut = recording.closed_ns < ended_ns
        tables = correlated.tables
        # Threads, and the profiler, go on to wait after the code.
        others = [table for name, table in tables.items() if name != "thread_waits"]
        recording = _ended(recording, others, ended_ns)
        tables["thread_waits"] = waits_until(tables["thread_waits"], recording.closed_ns)
        info = {
            "cell": self._cell,
            "script": _program() if self._cell is None else self._script,
            "detail": self.options.detail,
            "thread_id": self._thread,
            **build_info(recording, correlated, self._epoch),
            "gpu": {"before": self._gpu_before, "after": device_state()},
            "load": host_load.between(self._host_before, host_after),
        }
        info["error"] = error
        if self.options.time_limit_s is not None and is_cut:
            info["notes"].append(
                f"Recording stopped after {self.options.time_limit_s:g} s (the time limit). The "
                "code continued to run without being recorded."
            )
        overhead_ns = self._start_overhead_ns + correlated_ns - recording.closed_ns
        info["profiling_cost"] = {
            "ns": overhead_ns,
            "share": overhead_ns / max(1, info["wall_ns"]),
            "start_ns": self._start_overhead_ns,
            "join_ns": correlated_ns - recording.closed_ns,
            "decode_ns": sum(r.decode_ns for b in recording.batches for r in b.outputs),
        }
        tables = {name: rebased(table, recording.opened_ns) for name, table in tables.items()}
        texts: dict[str, str] = {}
        if correlated.stacks is not None:
            tables, texts = self._with_stacks(tables, correlated.stacks)
        info["recording"]["waits"] = bool(self._repeat_ends)
        if self._repeats:
            until = min(ended_ns, recording.closed_ns)
            info["repeats"] = _bounds(self._repeats, self._repeat_ends, until, recording.opened_ns)
            if self._waits_begun:
                waits = zip(self._waits_begun, self._waits_ended, info["repeats"], strict=False)
                info["repeat_waits_ns"] = [
                    host_load.waited_between(begun, ended, end - start)
                    for begun, ended, (start, end) in waits
                ]
            if self._first_step is not None:
                info["first_step"] = self._first_step
            tables = with_repeats(tables, info)
        functions = range_sources.sources_of(tables["ops"], self._sources)
        if functions.op_places:
            info["op_places"] = functions.op_places
        if functions.class_places:
            info["class_places"] = functions.class_places
        return ProfileData(tables, info, {**self._sources, **merged_texts(texts, functions.texts)})

    def _with_stacks(
        self, tables: dict[str, Table], stacks: PythonStacks
    ) -> tuple[dict[str, Table], dict[str, str]]:
        """Return the tables with the stacks that they refer to, and the text of their code."""
        script, main = None, getattr(sys.modules.get("__main__"), "__file__", None)
        if isinstance(main, str):
            path = absolute(main)
            is_cell = self._cell is not None and Path(path).name == self._script
            script = (path, str(self._cell) if is_cell else path)
        shown = shown_stacks(stacks, self.options, script=script, known=self._sources)
        return with_stack_rows({**tables, "stacks": shown.table}, shown.row), shown.texts

    def batches_since(self, index: int) -> list[Batch] | None:
        """Return the batches recorded so far, from `index` on; None once recording has ended."""
        return service.batches_since(self._subscription, index)

    def so_far(self) -> Recording | None:
        """Return the recording until now; None once it has ended."""
        return service.so_far(self._subscription)

    @property
    def epoch(self) -> tuple[int, int]:
        """The monotonic and the epoch clock at the same moment, in nanoseconds."""
        return self._epoch

    def abort(self) -> None:
        """End the session and discard its records."""
        if self._limit is not None:
            self._limit.cancel()
        service.abort(self._subscription)


def _on_time_limit(session: weakref.ref[Session]) -> None:
    reached = session()
    if reached is not None:
        reached.stop_recording()


def _abandon(subscription: Subscription, limit: TimeLimit | None) -> None:
    if limit is not None:
        limit.cancel()
    service.abandon(subscription)


def start(
    options: Options | None = None,
    *,
    cell: str | None = None,
    source: str | None = None,
    script: str | None = None,
) -> Session:
    """Start a session; see `Session`.

    On the main thread, call it inside ``_native.uninterrupted``, in a function that also stores the
    session.
    """
    session = Session(options or Options(), cell=cell, source=source, script=script)
    try:
        session.open()
    except BaseException:
        session.abort()
        raise
    return session


def _program() -> str | None:
    """Return the file name of the program; None in an interactive session."""
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    return Path(file).name if isinstance(file, str) else None


def _ended(recording: Recording, tables: Iterable[Table], ended_ns: int) -> Recording:
    """Return a recording that ends with the code, or with the last recorded row."""
    ends = [column.max() for table in tables for column in _ends(table) if len(column)]
    # The code of another process may have ended before this session began.
    stopped = min(max(ended_ns, recording.opened_ns), recording.stopped_ns)
    closed = min(max(stopped, *map(int, ends), 0), recording.closed_ns)
    return replace(recording, stopped_ns=stopped, closed_ns=closed)


def _ends(table: Table) -> list[IntArray]:
    return [table[name] for name in ("end_ns", "time_ns") if name in table.schema.names]


def rebased(table: Table, origin: int) -> Table:
    """Return a table whose times count from `origin`."""
    times = {name: table[name] - origin for name in _TIME_COLUMNS if name in table.schema.names}
    return table.replace(**times) if times else table


def _bounds(starts: list[int], ends: list[int], until: int, origin: int) -> list[list[int]]:
    """Return start and end of each repeat that began before recording ended, from `origin`.

    A repeat for which `ends` has no time ends where the next one starts.
    """
    ends = [*ends, *[*starts[1:], until][len(ends) :]]
    return [
        [start - origin, min(end, until) - origin]
        for start, end in zip(starts, ends, strict=True)
        if start < until
    ]
