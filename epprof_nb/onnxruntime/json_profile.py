"""Device work and its calls in ONNX Runtime's own JSON profile, which released wheels do not add.

If the user enables ONNX Runtime's profiling (``SessionOptions.enable_profiling``), the session is
recorded from its creation to ``end_profiling()``. Its kernels, copies and memsets, and the calls
that launched them, then become events of that profile, each with the node that it belongs to. The
same is done for a single run that writes a profile; see
`epprof_nb.onnxruntime.run_profile_files`.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb import _native
from epprof_nb.arrays.ids import IdIndex
from epprof_nb.core.errors import CaptureError
from epprof_nb.core.options import Options
from epprof_nb.data.schema import DEVICE_KINDS, MISSING
from epprof_nb.recording.cupti.loading import driver_present
from epprof_nb.recording.session.correlate import correlate
from epprof_nb.recording.session.recording import Subscription
from epprof_nb.recording.session.service import service

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.data.table import Table

_SHAPE = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")

_subscriptions: weakref.WeakKeyDictionary[Any, Subscription] = weakref.WeakKeyDictionary()


def begin(session: object) -> None:
    """Start recording device work for a session, if there is a supported device."""
    if session not in _subscriptions:
        _native.uninterrupted(_subscribe, session)


def _subscribe(session: object) -> None:
    subscription = subscribe()
    if subscription is None:
        return
    _subscriptions[session] = subscription
    # A session deleted without end_profiling() must not keep the recording on.
    weakref.finalize(session, service.abandon, subscription).atexit = False


def subscribe() -> Subscription | None:
    """Start recording device work; return None without a supported device."""
    if not driver_present():
        return None
    subscription = Subscription(Options(ort_nodes="off", frameworks=(), stacks=False))
    service.open(subscription)
    return subscription


def end(session: object, number: int) -> None:
    """Add the work launched by the session since `begin` to its profile, before that ends."""
    subscription = _subscriptions.pop(session, None)
    if subscription is not None:
        add_device_events(subscription, number)


def add_device_events(subscription: Subscription, session: int, run_op: int = 0) -> None:
    """Add recorded device work to the profile of a session, or of the run with the op `run_op`."""
    try:
        correlated = correlate(service.close(subscription))
    except CaptureError:
        return  # a forked child, which recorded nothing
    ops, activities, calls = (correlated.tables[n] for n in ("ops", "activities", "api_calls"))
    for is_call, events in (
        (False, device_events(ops, activities, session, run_op)),
        (True, call_events(ops, calls, session, run_op)),
    ):
        for event in events:
            _native.ort_add_device_event(session, run_op, is_call, *event)


def call_events(
    ops: Table, calls: Table, number: int, run_op: int = 0
) -> Iterator[tuple[str, int, int, int, tuple[str, ...]]]:
    """Yield the calls of CUDA by one session, or by one of its runs, as `device_events` does."""
    op = IdIndex(ops["op_id"]).rows(calls["op_id"])
    rows = np.flatnonzero(_of_session(ops, op, number, run_op))
    yield from _events(ops, calls, rows, op[rows], lambda row: _correlation(calls, row))


def device_events(
    ops: Table, activities: Table, number: int, run_op: int = 0
) -> Iterator[tuple[str, int, int, int, tuple[str, ...]]]:
    """Yield the device work of one session, or of one of its runs, as events.

    Parameters
    ----------
    ops, activities
        Correlated tables.
    number
        Number of the session, as in ``ops.session``.
    run_op
        Op of the run; 0 for all runs.

    Yields
    ------
    event
        Name, start and duration in nanoseconds, thread, and alternating keys and values of the
        args, named as by ONNX Runtime's CUDA provider.
    """
    kind = activities.names("kind")
    device_work = np.logical_or.reduce([kind.equals(k) for k in DEVICE_KINDS])
    capture = activities["capture_op_id"]
    op = IdIndex(ops["op_id"]).rows(np.where(capture == MISSING, activities["op_id"], capture))
    rows = np.flatnonzero(device_work & _of_session(ops, op, number, run_op))
    yield from _events(ops, activities, rows, op[rows], lambda row: _work(activities, row))


def _of_session(ops: Table, op: IntArray, number: int, run_op: int) -> BoolArray:
    """Whether the ops in some rows belong to a session, or to one of its runs."""
    selected: BoolArray = (op >= 0) & (np.append(ops["session"], MISSING)[op] == number)
    if run_op:
        run = ops["run_id"][ops["op_id"] == run_op]
        selected &= len(run) > 0 and np.append(ops["run_id"], MISSING)[op] == run[0]
    return selected


def _events(
    ops: Table, table: Table, rows: IntArray, op_rows: IntArray, args: Callable[[int], list[str]]
) -> Iterator[tuple[str, int, int, int, tuple[str, ...]]]:
    names = table.names("name").take(rows).to_list()
    parents = ops.names("name").take(op_rows).to_list()
    types = ops.names("op_type").take(op_rows).to_list()
    for row, name, parent, op_type in zip(rows.tolist(), names, parents, types, strict=True):
        yield (
            name or "",
            int(table["start_ns"][row]),
            int(table["duration_ns"][row]),
            int(table["thread_id"][row]),
            (*args(row), "op_name", op_type or "", "parent_name", parent or ""),
        )


def _work(activities: Table, row: int) -> list[str]:
    args = ["stream", str(activities["stream_id"][row])]
    # Copies have -1 there, as with ONNX Runtime's CUDA provider.
    args += [t for a in _SHAPE for t in (a, str(activities[a][row]))]
    if activities["bytes"][row] != MISSING:
        args += ["bytes", str(activities["bytes"][row])]
    return [*args, *_correlation(activities, row)]


def _correlation(table: Table, row: int) -> list[str]:
    """Return the id that a call and its device work share."""
    number = table["correlation_id"][row]
    return [] if number == MISSING else ["correlation_id", str(number)]
