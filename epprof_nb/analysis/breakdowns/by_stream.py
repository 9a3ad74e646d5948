"""by_stream: device time by stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.analysis.base.activity_sums import activity_sums, busy_by_group
from epprof_nb.analysis.base.breakdown_columns import HIGH_PERCENTILE, bandwidth, mean_delay
from epprof_nb.analysis.base.devices import device_labels
from epprof_nb.analysis.base.op_totals import share
from epprof_nb.analysis.base.result_table import ResultTable, categorical, optional
from epprof_nb.arrays.groups import group_codes
from epprof_nb.arrays.ids import unique_values
from epprof_nb.arrays.percentiles import GroupStatistics
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray


def stream_table(index: ProfileIndex) -> ResultTable:
    """Return the columns of `Profile.by_stream`."""
    activities = index.profile.tables["activities"]
    keys = [activities[name] for name in ("device_id", "context_id", "stream_id")]
    codes, first = group_codes(*keys)
    n = len(first)
    # Waits form a separate group, the last one. Streams without work are left out.
    groups = np.where(index.is_device_work, codes, n).astype(np.int32)
    measures = activity_sums(index, groups, n + 1)
    statistics = GroupStatistics(groups, activities["duration_ns"], n + 1)
    order = np.lexsort([key[first] for key in reversed(keys)])
    order = order[measures["activities"][order] > 0]
    sums = {name: values[order] for name, values in measures.items()}
    device, context, stream = (key[first[order]] for key in keys)
    busy = busy_by_group(index, groups, n + 1)
    return ResultTable(
        {
            "stream": categorical(_labels(index.profile.info, device, context, stream)),
            "device_id": optional(device),
            "context_id": optional(context),
            "stream_id": optional(stream),
            "count": sums["activities"],
            "device_ns": sums["device_ns"],
            "busy_ns": busy[order],
            "share": share(sums["device_ns"], int(sums["device_ns"].sum())),
            "mean_device_ns": statistics.mean[order],
            f"p{HIGH_PERCENTILE}_device_ns": statistics.percentile(HIGH_PERCENTILE)[order],
            **{name: sums[name] for name in ("kernels", "memcpys", "memsets", "bytes")},
            "bandwidth": bandwidth(sums["copied_bytes"], sums["copy_ns"]),
            "launch_delay_ns": mean_delay(sums["delay_ns"], sums["delays"]),
        }
    )


def _labels(
    info: Mapping[str, Any], device: IntArray, context: IntArray, stream: IntArray
) -> list[str]:
    device_ids = unique_values(device)
    several_devices = len(device_ids) > 1
    of_device = device_labels(info, device_ids)
    pairs = np.stack([device, stream], axis=1)
    _, position, counts = np.unique(pairs, axis=0, return_inverse=True, return_counts=True)
    several_contexts = counts[position.reshape(-1)] > 1
    labels = []
    for device_id, context_id, stream_id, needs_context in zip(
        device, context, stream, several_contexts, strict=True
    ):
        label = "no stream" if stream_id == MISSING else f"stream {stream_id}"
        if several_devices:
            label += f", {of_device[device_id]}"
        labels.append(f"{label}, context {context_id}" if needs_context else label)
    return labels
