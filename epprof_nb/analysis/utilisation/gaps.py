"""gaps: idle times of devices, with the op and the line that the host ran in each.

An *idle gap* lies between the first and the last work of a device. The time before and after these
is mostly host setup: `gaps` returns it too, with another ``position``, and the summary does not
count it. `epprof_nb.analysis.utilisation.idle_causes` says why a device was idle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.result_table import ResultTable, names_at, optional
from epprof_nb.analysis.base.sampled_time import where_sampled
from epprof_nb.analysis.base.stack_lines import StackLines
from epprof_nb.analysis.utilisation.host_ops import host_ops
from epprof_nb.analysis.utilisation.idle_causes import launching_thread, main_cause, split_by_cause
from epprof_nb.analysis.utilisation.idle_intervals import POSITIONS, idle_intervals
from epprof_nb.analysis.utilisation.sampled_host import main_place
from epprof_nb.arrays.ids import unique_values, values_at
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.names import CategoryColumn

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.base.result_table import Column
    from epprof_nb.analysis.utilisation.idle_intervals import IdleIntervals

IDLE_GAP_NS = 1_000_000
"""Shortest idle gap that the summary counts, and that `Profile.gaps` returns by default."""


def gap_table(index: ProfileIndex, min_ns: int = IDLE_GAP_NS) -> ResultTable:
    """Return the columns of `Profile.gaps`."""
    ops, found = index.profile.tables["ops"], idle_intervals(index, min_ns)
    middle = found.start + (found.end - found.start) // 2
    op = host_ops(index, found.next_row, middle)
    statement = values_at(index.statement, op)
    parts = split_by_cause(index, found)
    return ResultTable(
        {
            "device_id": optional(found.device),
            "start_ns": found.start,
            "end_ns": found.end,
            "duration_ns": found.end - found.start,
            "position": CategoryColumn(found.position.astype(np.int32), POSITIONS),
            "cause": main_cause(parts),
            **{f"{name}_ns": time for name, time in parts.items()},
            "op_id": optional(values_at(ops["op_id"], op)),
            "name": names_at(ops.names("name"), op),
            "cell": names_at(ops.names("cell"), statement),
            "line": optional(values_at(ops["line"], statement)),
            **_sampled_columns(index, found),
        }
    )


def _sampled_columns(index: ProfileIndex, idle: IdleIntervals) -> dict[str, Column]:
    """Return the columns of the line that the host ran, by samples of the launching thread."""
    lines, thread = index.cached(StackLines), launching_thread(index, idle.next_row)
    stack = np.full(len(thread), MISSING, np.int64)
    samples = np.zeros(len(thread), np.int64)
    for device in unique_values(idle.device):
        at = np.flatnonzero(idle.device == device)
        stack[at], samples[at] = main_place(index, thread[at], idle.start[at], idle.end[at])
    return {
        "host_function": names_at(lines.function, stack),
        "host_file": names_at(lines.file, stack),
        "host_line": optional(values_at(lines.line, stack)),
        "host_samples": where_sampled(index.profile, samples),
    }
