"""Finding on launches that keep a device waiting."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.devices import device_word
from epprof_nb.analysis.base.places import Places
from epprof_nb.analysis.findings.finding import Finding, launcher_name, op_id_of, stack_of
from epprof_nb.analysis.utilisation.launches import launch_gaps
from epprof_nb.arrays.groups import sum_by_group
from epprof_nb.arrays.types import MISSING
from epprof_nb.util.format import duration, percent, plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray

MIN_LAUNCHES = 100
"""Minimum number of launches that kept a device waiting."""
_MAIN_SHARE = 0.5
"""Minimum share of one place in the idle time for the finding to name it."""


def launch_bound(index: ProfileIndex) -> Iterator[Finding]:
    """Yield a finding if kernels that are launched one by one keep a device waiting."""
    gaps = index.cached(launch_gaps)
    total, gain = int(gaps.length.sum()), int(gaps.saving.sum())
    if len(gaps.length) < MIN_LAUNCHES or not gain:
        return
    activities = index.profile.tables["activities"]
    rows = gaps.idle.next_row
    kernel_ns = activities["end_ns"][rows] - activities["start_ns"][rows]
    start, end = int(gaps.idle.start.min()), int(gaps.idle.end.max())
    word = device_word(index.profile.info)
    text = (
        f"Launch-bound: the {word} waited {duration(total)} for launches, in "
        f"{plural(len(rows), 'gap')} of {duration(float(np.median(gaps.length)))} (median) between "
        f"kernels of {duration(float(np.median(kernel_ns)))}"
    )
    main, stack, share = _main_launcher(index, rows, gaps.length)
    if share >= _MAIN_SHARE:
        text += f"; {launcher_name(index, stack, main)} launched {percent(share)} of them"
    graph = "capture them in a CUDA graph, or " if word == "GPU" else ""
    # The Python code between two launches may be needed; the API calls are not.
    in_call = int(np.maximum(gaps.in_call - gaps.node_gap_ns, 0).sum())
    yield Finding(
        f"{text}.",
        gain,
        start,
        end,
        kind="launch-bound",
        remedy=f"Launch fewer, larger kernels: {graph}fuse or batch them.",
        gain_low_ns=min(in_call, gain),
        gain_high_ns=total,
        op_id=op_id_of(index, main),
        stack_id=stack,
        rows=lambda: np.unique(rows),
    )


def _main_launcher(index: ProfileIndex, rows: IntArray, time: IntArray) -> tuple[int, int, float]:
    """Return the op and the stack that launched most, and their share of the time.

    `MISSING` for none of them.
    """
    places = index.cached(Places)
    place = places.of_activities(rows)
    by_place = sum_by_group(place, time, places.count + 1)[:-2]
    if not by_place.any():
        return MISSING, MISSING, 0.0
    top = int(by_place.argmax())
    first = int(rows[np.flatnonzero(place == top)[0]])
    share = float(by_place[top] / max(int(time.sum()), 1))
    return int(index.activity_op[first]), stack_of(index, "activities", first), share
