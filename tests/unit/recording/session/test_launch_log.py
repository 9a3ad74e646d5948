"""The launch log of several flushes."""

import numpy as np

from epprof_nb import _native
from epprof_nb.data.schema import OPS
from epprof_nb.data.table import Table
from epprof_nb.recording.session.launch_log import LaunchLog
from epprof_nb.recording.session.recording import Batch

IN_CALL = 4
WIDTHS = {
    "correlation_id": "u8", "op_id": "u8", "start_ns": "i8", "end_ns": "i8", "thread_id": "u8",
    "return_value": "i4", "flags": "u2", "name_id": "u4", "domain": "u2",
    "stack_id": "i4",
}  # fmt: skip


def batch(*calls):
    """A batch of API calls, given as correlation id, end and flags."""
    columns = {name: np.zeros(len(calls), width) for name, width in WIDTHS.items()}
    columns["name_id"][:] = _native.intern("cuLaunchKernel")
    for i, call in enumerate(calls):
        for name, value in zip(("correlation_id", "end_ns", "flags"), call, strict=True):
            columns[name][i] = value
    launches = {name: values.tobytes() for name, values in columns.items()}
    return Batch({}, {**launches, "lost": 0}, [], 0)


def calls(*batches):
    log = LaunchLog.of(list(batches), [], Table(OPS))
    return list(zip(log.correlation.tolist(), log.end.tolist(), strict=True))


def test_a_call_in_progress_at_flushes_is_in_the_log_once():
    first = batch((1, 5, 0), (2, 6, IN_CALL))
    second = batch((2, 7, IN_CALL), (3, 8, 0))
    assert calls(first, second) == [(1, 5), (2, 7), (3, 8)]
    assert calls(first, second, batch((2, 9, 0))) == [(1, 5), (3, 8), (2, 9)]
