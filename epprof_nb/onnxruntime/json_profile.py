"""Device work in ONNX Runtime's own JSON profile, which the released wheels leave out.

A session that the user has ONNX Runtime profile (``SessionOptions.enable_profiling``) is recorded
from its creation to its ``end_profiling()``; then its kernels, copies and sets become events of
that profile, each under the node that launched it. So do those of a single run that writes a
profile; see `epprof_nb.onnxruntime.run_profile_files`.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb import _native
from epprof_nb.arrays.ids import IdIndex
from epprof_nb.capture.correlate import join
from epprof_nb.capture.service import service
from epprof_nb.core.errors import CaptureError
from epprof_nb.core.options import Options
from epprof_nb.data.schema import MISSING
from epprof_nb.recorders.cupti.recorder import driver_present

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epprof_nb.capture.service import Consumer
    from epprof_nb.data.table import Table

_SHAPE = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")
_KINDS = ("kernel", "memcpy", "memset")

_recorded: weakref.WeakKeyDictionary[Any, Consumer] = weakref.WeakKeyDictionary()


def begin(session: object) -> None:
    """Record what devices do from now on, if there is a device whose work is recorded."""
    consumer = None if session in _recorded else record()
    if consumer is None:
        return
    _recorded[session] = consumer
    # A session that goes without end_profiling() must not leave the recording on.
    weakref.finalize(session, service.abort, consumer).atexit = False


def record() -> Consumer | None:
    """Record from now on what devices do; None where there is no device whose work is recorded."""
    return service.open(Options()) if driver_present() else None


def end(session: object, number: int) -> None:
    """Put what the session launched since `begin` into its own profile, before that ends."""
    consumer = _recorded.pop(session, None)
    if consumer is not None:
        keep(consumer, number)


def keep(consumer: Consumer, session: int, run_op: int = 0) -> None:
    """Put what was recorded into the profile of a session, or of its run with this op."""
    try:
        joined = join(service.close(consumer))
    except CaptureError:
        return  # the process was forked since: the child recorded nothing
    for event in events_of(joined.tables["ops"], joined.tables["activities"], session, run_op):
        _native.ort_keep_event(session, run_op, *event)


def events_of(
    ops: Table, activities: Table, number: int, run_op: int = 0
) -> Iterator[tuple[str, int, int, int, tuple[str, ...]]]:
    """Yield the device work of one session, or of one run of it, as events.

    Parameters
    ----------
    ops, activities
        Joined tables.
    number
        The session's number, as in ``ops.session``.
    run_op
        The op of the run; 0 for all runs.

    Yields
    ------
    event
        Name, start and duration in nanoseconds, thread, and args: keys and values in turn, as
        ONNX Runtime's CUDA provider names them.
    """
    kind = activities.names("kind")
    device_work = np.logical_or.reduce([kind.equals(k) for k in _KINDS])
    capture = activities["capture_op_id"]
    op = IdIndex(ops["op_id"]).rows(np.where(capture == MISSING, activities["op_id"], capture))
    mine = device_work & (op >= 0) & (np.append(ops["session"], MISSING)[op] == number)
    if run_op:
        run = ops["run_id"][ops["op_id"] == run_op]
        mine &= len(run) > 0 and np.append(ops["run_id"], MISSING)[op] == run[0]
    rows = np.flatnonzero(mine)
    of = op[rows]
    names = activities.names("name").take(rows).to_list()
    parents = ops.names("name").take(of).to_list()
    types = ops.names("op_type").take(of).to_list()
    for row, name, parent, op_type in zip(rows.tolist(), names, parents, types, strict=True):
        args = ["stream", str(activities["stream_id"][row])]
        if activities["grid_x"][row] != MISSING:
            args += [t for a in _SHAPE for t in (a, str(activities[a][row]))]
        if activities["bytes"][row] != MISSING:
            args += ["bytes", str(activities["bytes"][row])]
        args += ["op_name", op_type or "", "parent_name", parent or ""]
        yield (
            name or "",
            int(activities["start_ns"][row]),
            int(activities["duration_ns"][row]),
            int(activities["thread_id"][row]),
            tuple(args),
        )
