"""Finding on ONNX operators that are far from the peaks of their device."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.attribution import attributed_op_rows
from epprof_nb.analysis.findings.finding import Finding, code
from epprof_nb.analysis.onnx.roofline import roofline_table
from epprof_nb.analysis.peaks.peaks_in_info import peaks_of
from epprof_nb.util.format import duration, percent, plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray

FAR = 0.5
"""Maximum share of the roof for an operator to be named."""
REACHABLE = 0.7
"""Share of the roof that good kernels reach."""

_REMEDIES = {
    "compute": "Use a smaller element type, larger batches, or kernels for its shapes.",
    "memory": "Fuse it with the nodes before or after it, or use a smaller element type.",
}
_LIMITS = {"compute": "arithmetic", "memory": "bandwidth"}


def far_from_roof(index: ProfileIndex) -> Iterator[Finding]:
    """Yield a finding on the operator that loses the most time relative to the device's peaks.

    The peaks are known after ``prof.roofline()``.
    """
    if not peaks_of(index.profile.info):
        return
    table = index.cached(roofline_table)
    types, bounds = table.values("op_type"), table.values("bound")
    lost: dict[tuple[str, str], list[int]] = {}
    for row, (op_type, bound) in enumerate(zip(types, bounds, strict=True)):
        if op_type is not None and bound is not None and table["roof_share"][row] < FAR:
            lost.setdefault((op_type, bound), []).append(row)
    if not lost:
        return

    def excess(rows: list[int]) -> float:
        return float((table["device_ns"][rows] - table["least_ns"][rows] / REACHABLE).sum())

    (op_type, bound), rows = max(lost.items(), key=lambda item: excess(item[1]))
    spent, least = int(table["device_ns"][rows].sum()), float(table["least_ns"][rows].sum())
    activities = _activities(index, op_type, {table.values("name")[row] for row in rows})
    times = index.profile.tables["activities"]
    yield Finding(
        f"{code(op_type)} nodes ({plural(len(rows), 'node')}) take {duration(spent)}, "
        f"{percent(least / max(spent, 1))} of what the {_LIMITS[bound]} of the device allows: "
        f"{duration(least)} at least.",
        int(excess(rows)),
        int(times["start_ns"][activities].min()),
        int(times["end_ns"][activities].max()),
        kind="roofline",
        remedy=_REMEDIES[bound],
        gain_low_ns=0,
        gain_high_ns=int(spent - least),
        op_id=int(index.profile.tables["ops"]["op_id"][_op(index)[activities[0]]]),
        rows=lambda: activities,
    )


def _op(index: ProfileIndex) -> IntArray:
    return attributed_op_rows(index.profile.tables["activities"], index.tree, "capture")


def _activities(index: ProfileIndex, op_type: str, names: set[str | None]) -> IntArray:
    """Return the rows of the device work of nodes, ascending."""
    ops = index.profile.tables["ops"]
    of_names = ops.names("name")
    chosen = np.isin(of_names.codes, [i for i, n in enumerate(of_names.categories) if n in names])
    chosen &= ops.names("op_type").equals(op_type) & (ops.names("input_shapes").codes >= 0)
    return np.flatnonzero(np.append(chosen, False)[_op(index)] & index.is_device_work)
