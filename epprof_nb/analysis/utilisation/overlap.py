"""overlap: how long each device computed, copied, communicated or idled, alone or together.

Of a copy: `exposed_copies`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.devices import device_labels
from epprof_nb.analysis.base.result_table import (
    OptionalColumn,
    ResultTable,
    categorical,
    optional,
)
from epprof_nb.analysis.base.unknown_device_times import is_trace
from epprof_nb.analysis.base.work_classes import class_intervals
from epprof_nb.analysis.utilisation.idle_causes import split_by_cause
from epprof_nb.analysis.utilisation.idle_intervals import BETWEEN, idle_intervals
from epprof_nb.arrays.groups import sum_by_group
from epprof_nb.arrays.intervals import clip_times, length, union_of

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex


def overlap_table(index: ProfileIndex) -> ResultTable:
    """Return the columns of `Profile.overlap`."""
    devices = [device for device in index.device_ids if len(index.busy(device)[0])]
    rows = np.array([_of_device(index, device) for device in devices], np.int64).reshape(-1, 5)
    labels = device_labels(index.profile.info, devices)
    idle = idle_intervals(index)
    idle = idle.take(idle.position == BETWEEN)
    number = np.searchsorted(np.array(devices, np.int64), idle.device)
    names = ("span_ns", "compute_ns", "copy_ns", "communication_ns", "overlap_ns")
    times = {name: rows[:, i].copy() for i, name in enumerate(names)}
    idle_ns = sum_by_group(number, idle.end - idle.start, len(devices))[:-1]
    # Time that is neither work nor idle lacks records.
    unknown_ns = rows[:, 0] - rows[:, 1:].sum(axis=1) - idle_ns
    return ResultTable(
        {
            "device": categorical([labels[device] for device in devices]),
            "device_id": optional(devices),
            **times,
            "idle_ns": idle_ns,
            "not_recorded_ns": OptionalColumn(
                unknown_ns, np.full(len(devices), is_trace(index.profile.info))
            ),
            **{
                f"idle_{cause}_ns": sum_by_group(number, time, len(devices))[:-1]
                for cause, time in split_by_cause(index, idle).items()
            },
        }
    )


def _of_device(index: ProfileIndex, device: int) -> tuple[int, ...]:
    parts = index.cached(class_intervals, device)
    starts, ends = clip_times(*index.busy(device))
    busy = length(starts, ends)
    # Without a class, the union lacks the time in which only this class ran.
    alone = [busy - length(*union_of(parts[:i] + parts[i + 1 :])) for i in range(len(parts))]
    span = int(ends[-1]) - int(starts[0])
    return span, *alone, busy - sum(alone)
