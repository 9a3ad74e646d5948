"""The JSON profile of one run of a session that ONNX Runtime profiles as a whole.

ONNX Runtime ignores run-level profiling of such a session. Its events are known from the session's
profile, so the file of the run is written here, in the format of ONNX Runtime.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb import _native
from epprof_nb.core.errors import CaptureError
from epprof_nb.core.options import Options
from epprof_nb.data.ort_arguments import NODE_MEMORY, NODE_SIZES
from epprof_nb.onnxruntime.json_profile import call_events, device_events
from epprof_nb.recording.onnxruntime import run_file_notes
from epprof_nb.recording.session.correlate import correlate
from epprof_nb.recording.session.recording import Subscription
from epprof_nb.recording.session.service import service

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epprof_nb.recording.session.correlate import CorrelatedTables

_numbers = itertools.count(1)
_NODE_SUFFIX = "_kernel_time"
_SHAPE = re.compile(r"(\w+)\[([^\]]*)\]")


@contextmanager
def written_run(number: int, prefix: str) -> Iterator[None]:
    """Write the profile file of the run made in the ``with`` block on this thread.

    Parameters
    ----------
    number
        Number of the session, as in ``ops.session``.
    prefix
        Prefix of the name of the file. A file that cannot be written leaves a note.
    """
    subscription = Subscription(Options(ort_nodes="off", frameworks=(), stacks=False))
    try:
        service.open(subscription)
        begin = _native.now_ns()
        yield
    except BaseException:
        service.abort(subscription)
        raise
    try:
        correlated = correlate(service.close(subscription))
    except CaptureError:
        return  # a forked child, which recorded nothing
    events = run_events(correlated, number, threading.get_native_id(), begin)
    if not events:
        return
    stamp = time.strftime("%Y-%m-%d_%H-%M-%S")
    path = Path(f"{prefix}_{os.getpid()}_own{next(_numbers)}_{stamp}.json")
    try:
        path.write_text(as_json(events), encoding="utf-8")
    except OSError:
        run_file_notes.count(prefix, written=False)
    else:
        run_file_notes.count(prefix, written=True)


def run_events(
    correlated: CorrelatedTables, number: int, thread: int, begin_ns: int
) -> list[dict[str, Any]]:
    """Return the events of the run that began on a thread at or after `begin_ns`.

    Parameters
    ----------
    correlated
        Tables of a recording.
    number
        Number of the session.
    thread
        Id of the thread in the operating system.
    begin_ns
        Time before the run.

    Returns
    -------
    events
        In ONNX Runtime's format, in order of their ends; empty if the run does not exist. Times are
        microseconds since the start of the run.
    """
    ops = correlated.tables["ops"]
    is_run = ops.names("op_type").equals("run") & (ops["session"] == number)
    is_run &= (ops["thread_id"] == thread) & (ops["start_ns"] >= begin_ns)
    runs = np.flatnonzero(is_run)
    if not len(runs):
        return []
    run = int(runs[0])
    origin = int(ops["start_ns"][run])
    rows = np.flatnonzero(ops["run_id"] == ops["run_id"][run])
    rows = rows[np.argsort(ops["end_ns"][rows], kind="stable")]
    part = ops.take(rows)
    texts = {
        name: part.names(name).to_list()
        for name in ("name", "category", "op_type", "provider", "input_shapes", "output_shapes")
    }
    has_value = {column: part.has_value(column) for column in NODE_SIZES | NODE_MEMORY}
    events = []
    for i in range(len(part)):
        is_node = texts["category"][i] == "node"
        args: dict[str, Any] = {}
        if is_node:
            args = {
                "op_name": texts["op_type"][i] or "",
                "provider": texts["provider"][i] or "",
                "node_index": str(part["node_index"][i]),
                "input_type_shape": _shapes(texts["input_shapes"][i]),
                "output_type_shape": _shapes(texts["output_shapes"][i]),
                **{
                    key: str(part[column][i])
                    for column, key in (NODE_SIZES | NODE_MEMORY).items()
                    if has_value[column][i]
                },
            }
        events.append(
            _event(
                "Node" if is_node else "Session",
                (texts["name"][i] or "") + (_NODE_SUFFIX if is_node else ""),
                int(part["thread_id"][i]),
                (int(part["start_ns"][i]) - origin, int(part["duration_ns"][i])),
                args,
            )
        )
    op_id = int(ops["op_id"][run])
    tables = correlated.tables
    for category, made in (
        ("Kernel", device_events(ops, tables["activities"], number, op_id)),
        ("Api", call_events(ops, tables["api_calls"], number, op_id)),
    ):
        for name, start, duration, on_thread, pairs in made:
            args = dict(zip(pairs[::2], pairs[1::2], strict=True))
            events.append(_event(category, name, on_thread, (start - origin, duration), args))
    return events


def _event(
    category: str, name: str, thread: int, times_ns: tuple[int, int], args: dict[str, Any]
) -> dict[str, Any]:
    start, duration = times_ns
    return {
        "cat": category, "pid": os.getpid(), "tid": thread, "dur": duration // 1000,
        "ts": start // 1000, "ph": "X", "name": name, "args": args,
    }  # fmt: skip


def _shapes(text: str | None) -> list[dict[str, list[int]]]:
    """``[{"float": [1, 4]}]`` from ``float[1,4]``."""
    return [
        {kind: [int(size) for size in sizes.split(",") if size.strip().lstrip("-").isdigit()]}
        for kind, sizes in _SHAPE.findall(text or "")
    ]


def as_json(events: list[dict[str, Any]]) -> str:
    """Return events as ONNX Runtime writes them: an array with one object per line."""
    return "[\n" + ",\n".join(json.dumps(event) for event in events) + "\n]\n"
