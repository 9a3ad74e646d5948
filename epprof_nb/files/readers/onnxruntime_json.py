"""JSON profiles of ONNX Runtime, including invalid ones of releases up to 1.30.

These releases do not escape quotes, backslashes and control characters in names. Each event begins
a line with its category, and its fields have a fixed order, so the name is found between its
neighbours.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from epprof_nb.arrays.ancestors import nearest_ancestor
from epprof_nb.arrays.groups import group_codes
from epprof_nb.data import ort_runs
from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.ort_arguments import NODE_MEMORY, NODE_SIZES
from epprof_nb.data.profile_data import ProfileData
from epprof_nb.data.schema import ACTIVITIES, API_CALLS, MISSING, OPS
from epprof_nb.files.readers.finish_tables import from_zero, with_stacks
from epprof_nb.files.readers.json_events import MAX_EVENT_BYTES
from epprof_nb.files.readers.rows import (
    MAX_SHAPES,
    Rows,
    Threads,
    integer,
    nanoseconds,
    signed,
    text,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from epprof_nb.data.table import Table
    from epprof_nb.files.readers.rows import Budget, Skipped

_FIRST = re.compile(rb'\s*\[\s*\{\s*"cat" ?: ?"(Session|Node|Kernel|Api)", ?"pid" ?:')
_START = b'\n{"cat" : "'
_HEAD = re.compile(
    r'\{"cat" : "(\w+)","pid" :(-?\d+),"tid" :(-?\d+),"dur" :(-?\d+),"ts" :(-?\d+),"ph" : "(\w)",'
    r'"name" :"'
)  # fmt: skip
_ARGUMENTS, _END = '","args" : {', "}}"
_ARGUMENT = re.compile(r'"(op_name|provider|node_index)" : "([^"\\]*)"')
_NUMBERS = {
    column: (key, signed if OPS.column(column).kind == "delta" else integer)
    for column, key in (NODE_SIZES | NODE_MEMORY).items()
}
_SUFFIX = "_kernel_time"
_SHAPE = tuple(f"{of}_{axis}" for of in ("grid", "block") for axis in "xyz")
_SESSION = 1
"""Number of the session: a file has one."""


def is_onnxruntime(head: bytes) -> bool:
    """Return whether a file begins like a profile of ONNX Runtime."""
    return _FIRST.match(head) is not None


class OnnxRuntimeEvents:
    """Events of a profile, one by one.

    Attributes
    ----------
    repaired, invalid
        Number of events with invalid JSON that could be read, and that could not.
    """

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = pieces
        self.repaired = self.invalid = 0
        self.complete = False

    def __iter__(self) -> Iterator[dict[str, Any]]:
        pending = b"\n"
        for piece in self._pieces:
            *whole, rest = (pending + piece).split(_START)
            for i, line in enumerate(whole):
                yield from self._event(line if i == 0 else _START + line)
            pending = (_START if whole else b"") + rest
            if len(pending) > MAX_EVENT_BYTES:
                self.invalid += 1
                pending = b"\n"
        last = pending.rstrip()
        self.complete = last.endswith(b"]")
        yield from self._event(last.removesuffix(b"]"))

    def _event(self, line: bytes) -> Iterator[dict[str, Any]]:
        line = line.strip().removesuffix(b",")
        if line in (b"", b"["):
            return
        try:
            found = orjson.loads(line)
        except orjson.JSONDecodeError:
            found = _repaired(line.decode("utf-8", "replace"))
            self.repaired += found is not None
        if type(found) is dict:
            yield found
        else:
            self.invalid += 1


def _repaired(line: str) -> dict[str, Any] | None:
    match = _HEAD.match(line)
    if match is None or not line.endswith(_END):
        return None
    category, pid, tid, dur, ts, phase = match.groups()
    name, found, args = line[match.end() : -1].partition(_ARGUMENTS)
    if not found:
        return None
    try:
        parsed = json.loads("{" + args)
    except (ValueError, RecursionError):
        parsed = dict(_ARGUMENT.findall(args))
    return {
        "cat": category, "pid": int(pid[:19]), "tid": int(tid[:19]), "dur": int(dur[:19]),
        "ts": int(ts[:19]), "ph": phase, "name": name, "args": parsed,
    }  # fmt: skip


def read(events: OnnxRuntimeEvents, budget: Budget, skipped: Skipped) -> ProfileData:
    """Read the events of a profile of ONNX Runtime."""
    threads = Threads()
    ops = Rows(OPS, (
        "name", "op_type", "category", "provider", "thread_id", "node_index", "input_shapes",
        "output_shapes", "start_ns", "end_ns", *_NUMBERS, "pool_start_ns", "pool_wait_ns",
    ), budget)  # fmt: skip
    device = Rows(
        ACTIVITIES,
        ("kind", "name", "stream_id", "start_ns", "end_ns", "bytes", "correlation_id", *_SHAPE),
        budget,
    )
    calls = Rows(
        API_CALLS, ("domain", "name", "thread_id", "start_ns", "end_ns", "correlation_id"), budget
    )
    for event in events:
        start, length = nanoseconds(event.get("ts")), nanoseconds(event.get("dur"))
        category, name, args = event.get("cat"), text(event.get("name")), event.get("args")
        args = args if type(args) is dict else {}
        if start is None or length is None or length < 0:
            skipped.add("without a valid time and duration")
        elif category == "Session":
            thread = threads(event.get("pid"), event.get("tid"))
            kind = "run" if name == "model_run" else "session"
            ops.append(
                name, kind, "session", None, thread, None, None, None, start, start + length,
                *[None] * (len(_NUMBERS) + 2),
            )  # fmt: skip
        elif category == "Node" and (name or "").endswith(_SUFFIX):
            thread = threads(event.get("pid"), event.get("tid"))
            ops.append(
                (name or "").removesuffix(_SUFFIX), text(args.get("op_name")), "node",
                text(args.get("provider")), thread, integer(args.get("node_index")),
                _shapes(args.get("input_type_shape")), _shapes(args.get("output_type_shape")),
                start, start + length,
                *(number(args.get(key)) for key, number in _NUMBERS.values()),
                *_pool_times(args.get("thread_scheduling_stats")),
            )  # fmt: skip
        elif category == "Kernel":
            copy = (name or "").lower().startswith("memcpy")
            shape = (integer(args.get(part)) for part in _SHAPE)
            device.append(
                "memcpy" if copy else "kernel", name, integer(args.get("stream")), start,
                start + length, integer(args.get("bytes")), integer(args.get("correlation_id")),
                *shape,
            )  # fmt: skip
        elif category == "Api":
            calls.append(
                "runtime" if (name or "").startswith("cuda") else "driver", name,
                threads(event.get("pid"), event.get("tid")), start, start + length,
                integer(args.get("correlation_id")),
            )  # fmt: skip
        else:
            skipped.add(f"of category {str(category)[:50]!r}")
    tables, _ = from_zero(
        {"ops": ops.table(), "activities": device.table(), "api_calls": calls.table()}
    )
    tables["ops"] = _numbered(tables["ops"])
    notes = []
    if events.repaired:
        notes.append(
            f"{events.repaired:,} events were invalid JSON, as ONNX Runtime up to 1.30 writes for "
            "names with quotes or control characters. They were read nevertheless."
        )
    count = len(tables["activities"])
    if count:
        notes.append(
            f"{count:,} kernels and copies have no op: the file names the node that launched them, "
            "but not its run."
        )
        tables["activities"] = tables["activities"].replace(
            attribution=CategoryColumn.constant("none", count)
        )
    info: dict[str, Any] = {"notes": notes}
    if tables["ops"].names("category").equals("node").any():
        info["onnxruntime_sessions"] = {str(_SESSION): f"session {_SESSION}"}
    return ProfileData(tables, info)


def _numbered(ops: Table) -> Table:
    """Nest the ops and number the runs; a node has the run it is nested in."""
    ops, stacks = with_stacks(ops, "onnxruntime")
    is_run = ort_runs.is_run(ops)
    run = np.full(len(ops), MISSING, np.int64)
    run[is_run] = np.arange(int(is_run.sum()))
    run = np.append(run, MISSING)[nearest_ancestor(stacks.parent, is_run)]
    ops = ops.replace(run_id=run, session=np.full(len(ops), _SESSION, np.int64))
    return _without_times_of_earlier_runs(ops)


def _without_times_of_earlier_runs(ops: Table) -> Table:
    """Drop the pool's times of the first node of each run and thread.

    ONNX Runtime adds the times of earlier unprofiled runs to them.
    """
    nodes = np.flatnonzero(ops.names("category").equals("node"))
    nodes = nodes[np.argsort(ops["end_ns"][nodes], kind="stable")]
    _, first = group_codes(ops["run_id"][nodes], ops["thread_id"][nodes])
    columns = {}
    for name in ("pool_start_ns", "pool_wait_ns"):
        if not ops.is_absent(name):
            columns[name] = ops[name].copy()
            columns[name][nodes[first]] = MISSING
    return ops.replace(**columns)


def _pool_times(value: object) -> tuple[int | None, int | None]:
    """Return the times (ns) to start the threads of the session's pool and to wait for them."""
    thread = value.get("main_thread") if type(value) is dict else None
    if type(thread) is not dict:
        return None, None
    times = [nanoseconds(thread.get(key)) for key in ("Distribution", "Wait", "WaitRevoke")]
    start, wait, revoke = (None if ns is None or ns < 0 else ns for ns in times)
    return start, None if wait is None else wait + (revoke or 0)


def _shapes(value: object) -> str | None:
    if type(value) is not list or not value:
        return None
    written = orjson.dumps(value).decode()
    return written if len(written) <= MAX_SHAPES else None
