"""Finding on kernels that only change the layout of a convolution's inputs and outputs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.device_work import device_kinds_ns, kernels_named
from epprof_nb.analysis.base.lines_of_work import Places
from epprof_nb.analysis.critical_path.changed_durations import Removed
from epprof_nb.analysis.critical_path.saving_without_work import saving_without
from epprof_nb.analysis.findings.finding import Finding, launcher_name, op_id_of, stack_of
from epprof_nb.arrays.groups import sum_by_group
from epprof_nb.util.format import duration, percent, plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epprof_nb.analysis.base.index import ProfileIndex

_NAMES = re.compile(
    r"(?:nchw|nhwc|ncdhw|ndhwc)_?(?:to|2)_?\w*(?:nchw|nhwc|ncdhw|ndhwc)", re.IGNORECASE
)
"""Names of kernels of cuDNN and of other libraries, such as ``nchwToNhwcKernel``."""
_LEFT = 0.4
"""Part of these kernels that may remain: at the first input, and where an operator needs it."""


def layout_changes(index: ProfileIndex) -> Iterator[Finding]:
    """Yield a finding on the kernels that transpose between NCHW and NHWC."""
    activities, places = index.profile.tables["activities"], index.cached(Places)
    rows = kernels_named(index, _NAMES)
    # A single input has to be converted once.
    if len(rows) < 2:
        return
    time = np.maximum(activities["end_ns"][rows] - activities["start_ns"][rows], 0)
    total, device_ns = int(time.sum()), device_kinds_ns(activities, index.kinds)
    place = places.of_activities(rows)
    top = place == int(sum_by_group(place, time, places.count + 1).argmax())
    longest = int(rows[top][int(time[top].argmax())])
    op, stack = int(index.activity_op[longest]), stack_of(index, "activities", longest)
    where = launcher_name(index, stack, op)
    gain = saving_without(index, Removed(activities=rows))
    yield Finding(
        f"{plural(len(rows), 'kernel')} with {percent(total / max(device_ns, 1))} of the GPU time "
        f"({duration(total)}) only change the layout between NCHW and NHWC"
        f"{f', most of them in {where}' if where else ''}: convolutions on tensor cores need NHWC.",
        gain,
        int(activities["start_ns"][longest]),
        int(activities["end_ns"][longest]),
        kind="layout",
        remedy="Keep the model and its input in NHWC: in PyTorch, "
        "`.to(memory_format=torch.channels_last)` of both.",
        gain_low_ns=int((1 - _LEFT) * gain),
        op_id=op_id_of(index, op),
        stack_id=stack,
        rows=lambda: rows,
    )
