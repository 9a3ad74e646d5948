"""Work of graph replays by the op that captured it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.result_table import ResultTable, categorical
from epprof_nb.arrays.groups import group_codes, sum_by_group

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex


def captured_work(index: ProfileIndex) -> ResultTable | None:
    """Return the ops that captured the work of graph replays, by descending device time.

    Parameters
    ----------
    index
        Index of the profile.

    Returns
    -------
    table
        One row per name and type of such an op: ``name``, ``op_type``, ``device_ns``, ``share``
        (of the device time of the profile), ``count`` (replays of the op) and ``kernels``. None if
        no such op is known.

    Examples
    --------
    >>> from epprof_nb.analysis.base.index import ProfileIndex
    >>> from epprof_nb.testing import synthetic_profile
    >>> captured_work(ProfileIndex(synthetic_profile(activities=100))) is None  # has no graph
    True
    """
    activities, ops = index.profile.tables["activities"], index.profile.tables["ops"]
    if not activities.has_value("capture_op_id").any():
        return None
    captured = index.tree.rows(activities["capture_op_id"])
    work = np.flatnonzero(index.is_device_work & (captured >= 0))
    if not len(work):
        return None
    captured = captured[work]
    names, types = ops.names("name"), ops.names("op_type")
    groups, first = group_codes(names.codes[captured], types.codes[captured])
    size = len(first)
    duration = activities["duration_ns"]
    device_ns = sum_by_group(groups, duration[work], size)[:-1]
    _, once = group_codes(captured, activities["correlation_id"][work])
    ones = np.ones(len(work), np.int64)
    is_kernel = activities.names("kind").take(work).equals("kernel").astype(np.int64)
    order = np.argsort(-device_ns, kind="stable")
    total = int(duration[index.is_device_work].sum())
    return ResultTable(
        {
            "name": categorical(names.take(captured[first[order]]).to_list()),
            "op_type": categorical(types.take(captured[first[order]]).to_list()),
            "device_ns": device_ns[order],
            "share": device_ns[order] / max(total, 1),
            "count": sum_by_group(groups[once], ones[once], size)[:-1][order],
            "kernels": sum_by_group(groups, is_kernel, size)[:-1][order],
        }
    )
