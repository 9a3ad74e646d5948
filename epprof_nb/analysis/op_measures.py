"""Measures of device work, summed for each op."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.arrays.chunks import chunks

if TYPE_CHECKING:
    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.data.table import Table

MEASURES = (
    "activities", "device_ns", "bytes", "kernels", "memcpys", "memsets", "copied_bytes", "copy_ns",
    "delay_ns", "delays",
)  # fmt: skip
"""Names of the measures; see `epprof_nb.analysis.op_totals.Totals`."""


def sum_by_op(
    activities: Table,
    op_rows: IntArray,
    ops: int,
    is_device_work: BoolArray,
    launch_delays: tuple[IntArray, BoolArray],
) -> dict[str, IntArray]:
    """Sum the activities of each op itself.

    Parameters
    ----------
    activities
        A table of schema `epprof_nb.data.schema.ACTIVITIES`.
    op_rows
        int64 array: row of the op of each activity; `MISSING` for none.
    ops
        Number of ops.
    is_device_work, launch_delays
        One value per activity; see `epprof_nb.analysis.index.ProfileIndex`.

    Returns
    -------
    sums
        Name of a measure to int64 array, shape ``(ops + 1,)``; the last element is the sum over
        the activities without an op.
    """
    kind = activities.names("kind")
    masks = [kind.equals(name) for name in ("kernel", "memcpy", "memset")]
    delays, is_known = launch_delays
    sums = {name: np.zeros(ops + 1, np.int64) for name in MEASURES}
    for chunk in chunks(len(activities)):
        op, time = op_rows[chunk], activities["duration_ns"][chunk]
        size = np.maximum(activities["bytes"][chunk], 0)
        work = is_device_work[chunk]
        kernel, memcpy, memset = (mask[chunk] for mask in masks)
        timed = kernel & is_known[chunk]
        for name, mask, values in (
            ("activities", work, 1),
            ("device_ns", work, time),
            ("bytes", work & (size > 0), size),
            ("kernels", kernel, 1),
            ("memcpys", memcpy, 1),
            ("memsets", memset, 1),
            ("copied_bytes", memcpy, size),
            ("copy_ns", memcpy, time),
            ("delay_ns", timed, delays[chunk]),
            ("delays", timed, 1),
        ):
            rows = np.flatnonzero(mask)
            selected = values[rows] if isinstance(values, np.ndarray) else values
            np.add.at(sums[name], op[rows], selected)
    return sums
