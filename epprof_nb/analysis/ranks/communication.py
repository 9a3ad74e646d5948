"""Communication of a rank, and how much of it ran beside other work."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.work_classes import class_intervals
from epprof_nb.analysis.ranks.collectives_of_rank import NOT_ENDED, host_calls
from epprof_nb.arrays.intervals import length, union, union_of

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex

COLUMNS = ("op_id", "name", "op_type", "thread_id", "start_ns", "end_ns", "args")
"""Columns of the ops that `communication` reads."""


def communication(index: ProfileIndex) -> tuple[int, int] | None:
    """Return the time in which a rank communicated, and the part beside other work.

    Returns
    -------
    communication_ns
        Time in which its devices communicated, summed over the devices, and from the calls on the
        host to their ends.
    overlapped_ns
        Time of that in which the device also computed, or in which the host did not wait.

    None if the end of a call on the host is not known, as of those that PyTorch's reducer makes.

    Examples
    --------
    >>> from epprof_nb.analysis.base.index import ProfileIndex
    >>> from epprof_nb.testing import synthetic_profile
    >>> communication(ProfileIndex(synthetic_profile(activities=100)))
    (0, 0)
    """
    on_host = of_host(index)
    if on_host is None:
        return None
    whole, alone = on_host
    for device in index.device_ids:
        compute, _, talks = class_intervals(index, device)
        whole += length(*talks)
        alone += length(*union_of([compute, talks])) - length(*compute)
    return whole, whole - alone


def of_host(index: ProfileIndex) -> tuple[int, int] | None:
    """Return the time of the calls on the host, and the part in which it waited; None if unknown.

    Only the ops are needed.
    """
    calls = host_calls(index)
    if any(call.end_ns == NOT_ENDED for call in calls):
        return None
    starts, waits, ends = (
        np.array(times, np.int64)
        for times in (
            [call.start_ns for call in calls],
            [call.blocked_ns for call in calls],
            [call.end_ns for call in calls],
        )
    )
    return length(*union(starts, ends)), length(*union(waits, ends))
