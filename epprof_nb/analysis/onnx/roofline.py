"""The roofline: how close operators come to the peaks of their device.

The least time of an operator is the longer of two times: its FLOPs at the peak of the arithmetic,
and its least bytes at the peak of the bandwidth. Peaks are measured, see
`epprof_nb.analysis.peaks.peaks_in_info`; costs come from `epprof_nb.analysis.onnx.flops_and_bytes`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.attribution import attributed_op_rows
from epprof_nb.analysis.base.result_table import ResultTable, categorical, optional
from epprof_nb.analysis.onnx.flops_and_bytes import op_cost, parse_shapes
from epprof_nb.analysis.peaks.peaks_in_info import peaks_of
from epprof_nb.arrays.groups import group_codes, sum_by_group
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    import numpy.typing as npt

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.onnx.flops_and_bytes import Cost
    from epprof_nb.arrays.types import IntArray

    Floats = npt.NDArray[np.float64]

NOT_COVERED = "(not covered)"
"""Name of the row of the device time whose FLOPs and bytes are unknown."""

_KEYS = ("name", "op_type", "input_shapes", "output_shapes")


def roofline_table(index: ProfileIndex) -> ResultTable:
    """Return the columns of `Profile.roofline`."""
    activities, ops = (index.profile.tables[name] for name in ("activities", "ops"))
    work = np.flatnonzero(index.is_device_work)
    op = attributed_op_rows(activities, index.tree, "capture")[work]
    time, device = activities["duration_ns"][work], activities["device_id"][work]
    known = ops.names("input_shapes").codes >= 0
    is_node = np.append(known, False)[op]
    total = int(time.sum())
    work, op, time, device = work[is_node], op[is_node], time[is_node], device[is_node]
    codes = [ops.names(name).codes[op] for name in _KEYS]
    groups, first = group_codes(*codes, device)
    n = len(first)
    executions = _executions(index, work, op, groups, n)
    device_ns = sum_by_group(groups, time, n)[:-1]
    costs = _costs(index, op[first])
    rows = np.array([i for i in range(n) if costs[i] is not None], np.int64)
    rows = rows[np.argsort(-device_ns[rows], kind="stable")]
    found = [cost for i in rows.tolist() if (cost := costs[i]) is not None]
    count, spent, on = executions[rows], device_ns[rows], device[first[rows]]
    flops = np.array([cost.flops for cost in found], np.float64) * count.astype(np.float64)
    least_bytes = np.array([cost.least_bytes for cost in found], np.float64) * count.astype(
        np.float64
    )
    compute_s, memory_s = _least_seconds(index, found, on, flops, least_bytes)
    least_ns = np.maximum(compute_s, memory_s) * 1e9
    bound = [
        None if np.isnan(least) else "compute" if compute >= memory else "memory"
        for least, compute, memory in zip(least_ns, compute_s, memory_s, strict=True)
    ]
    rest = total - int(spent.sum())
    last = int(rest > 0)
    seconds = np.maximum(spent, 1) / 1e9

    def floats(values: Floats) -> Floats:
        return np.append(values.astype(np.float64), [np.nan] * last)

    names = [ops.names(name).take(op[first[rows]]).to_list() for name in _KEYS]
    labels = [NOT_COVERED, None, None, None]
    every_ns = np.append(spent, np.full(last, rest, np.int64))
    return ResultTable(
        {
            **{
                key: categorical([*of_rows, *[label] * last])
                for key, of_rows, label in zip(_KEYS, names, labels, strict=True)
            },
            "device_id": optional(np.append(on, np.full(last, MISSING, np.int64))),
            "count": np.append(count, np.zeros(last, np.int64)),
            "device_ns": every_ns,
            "share": every_ns / total if total else np.zeros(len(every_ns)),
            "flops": floats(flops),
            "least_bytes": floats(least_bytes),
            "intensity": floats(flops / np.maximum(least_bytes, 1)),
            "flops_per_s": floats(flops / seconds),
            "bytes_per_s": floats(least_bytes / seconds),
            "bound": categorical([*bound, *[None] * last]),
            "least_ns": floats(least_ns),
            "roof_share": floats(least_ns / np.maximum(spent, 1)),
        }
    )


def _executions(
    index: ProfileIndex, work: IntArray, op: IntArray, groups: IntArray, n: int
) -> IntArray:
    """Count the executions of each group: its ops, and for captured ops the replays."""
    activities = index.profile.tables["activities"]
    in_graph = activities["graph_id"][work] != MISSING
    replay = np.where(in_graph, activities["correlation_id"][work], MISSING)
    _, first = group_codes(op, replay)
    return np.bincount(groups[first], minlength=n).astype(np.int64)


def _costs(index: ProfileIndex, rows: IntArray) -> list[Cost | None]:
    """Return the cost of one execution of each op at `rows`."""
    ops = index.profile.tables["ops"]
    types, *shapes = (ops.names(name).take(rows).to_list() for name in _KEYS[1:])
    costs = []
    for op_type, *texts in zip(types, *shapes, strict=True):
        inputs, outputs = map(parse_shapes, texts)
        is_known = op_type is not None and inputs is not None and outputs is not None
        costs.append(op_cost(op_type, inputs or (), outputs or ()) if is_known else None)
    return costs


def _least_seconds(
    index: ProfileIndex,
    costs: list[Cost],
    devices: IntArray,
    flops: Floats,
    least_bytes: Floats,
) -> tuple[Floats, Floats]:
    """Return the times at the peaks of arithmetic and of bandwidth; NaN without peaks."""
    peaks = peaks_of(index.profile.info)
    of_rows = [peaks.get(device) for device in devices.tolist()]
    arithmetic = [
        (found.flops_of(cost.dtype) if found else None) or np.nan
        for found, cost in zip(of_rows, costs, strict=True)
    ]
    bandwidth = [found.bytes_per_s if found else np.nan for found in of_rows]
    return flops / np.array(arithmetic, np.float64), least_bytes / np.array(bandwidth, np.float64)
