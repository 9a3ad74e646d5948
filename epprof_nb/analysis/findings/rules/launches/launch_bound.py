"""Finding on launches that keep a device waiting; `utilisation.late_launches` finds these."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.devices import device_word
from epprof_nb.analysis.base.lines_of_work import Places
from epprof_nb.analysis.critical_path.changed_durations import Removed
from epprof_nb.analysis.findings.finding import Finding, launcher_name, op_id_of, stack_of
from epprof_nb.analysis.utilisation.late_launches import (
    LAUNCH_HOST_NS,
    is_launch_bound,
    launch_gaps,
)
from epprof_nb.arrays.groups import sum_by_group
from epprof_nb.arrays.intervals import length, union
from epprof_nb.arrays.types import MISSING
from epprof_nb.util.format import duration, percent, plural

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.findings.asked_savings import Asking
    from epprof_nb.analysis.utilisation.late_launches import LaunchGaps
    from epprof_nb.arrays.types import IntArray

_NONE = np.empty(0, np.int64)
_SPREAD = 1.5
"""Ratio of the launches' time in other runs to that in the profile, at most."""
_MAIN_SHARE = 0.5
"""Minimum share of one place in the idle time for the finding to name it."""


def launch_bound(index: ProfileIndex) -> Asking:
    """Yield a finding if kernels that are launched one by one keep a device waiting."""
    gaps = index.cached(launch_gaps)
    if not is_launch_bound(index):
        return
    # Devices may wait together.
    total = min(int(gaps.length.sum()), length(*union(*_spans(gaps))))
    activities, calls = (index.profile.tables[name] for name in ("activities", "api_calls"))
    call = index.calls.rows(activities["correlation_id"][gaps.idle.next_row])
    # Waits remain, and bound what fewer launches save.
    without = Removed(call, _NONE, calls["thread_id"][call], _host_starts(index, gaps, call),
                      calls["end_ns"][call])  # fmt: skip
    (saving,) = yield [without]
    gain = min(int(gaps.saving.sum()), saving)
    rows = gaps.idle.next_row
    kernel_ns = activities["end_ns"][rows] - activities["start_ns"][rows]
    start, end = int(gaps.idle.start.min()), int(gaps.idle.end.max())
    word = device_word(index.profile.info)
    in_call = int(gaps.in_call.sum())
    text = (
        f"Launch-bound: the {word} waited {duration(total)} for launches, in "
        f"{plural(len(rows), 'gap')} of {duration(float(np.median(gaps.length)))} (median) between "
        f"kernels of {duration(float(np.median(kernel_ns)))}"
    )
    if in_call:
        text += f", {duration(in_call)} of it after their API calls had begun"
    main, stack, share = _main_launcher(index, rows, gaps.length)
    if share >= _MAIN_SHARE:
        text += f"; {launcher_name(index, stack, main)} launched {percent(share)} of them"
    graph = "capture them in a CUDA graph, or " if word == "GPU" else ""
    yield Finding(
        f"{text}.",
        gain,
        start,
        end,
        kind="launch-bound",
        remedy=f"Launch fewer, larger kernels: {graph}fuse or batch them.",
        # The Python code between two launches may be needed; the API calls are not.
        gain_low_ns=min(int(np.maximum(gaps.in_call - gaps.node_gap_ns, 0).sum()), gain),
        # Calls take longer or shorter from run to run.
        gain_high_ns=int(_SPREAD * max(total, gain)),
        spans=lambda: _spans(gaps),
        op_id=op_id_of(index, main),
        stack_id=stack,
        rows=lambda: np.unique(rows),
    )


def _host_starts(index: ProfileIndex, gaps: LaunchGaps, call: IntArray) -> IntArray:
    """Return since when the host prepared each launch: from the end of the thread's call before.

    The device may have been busy then. A longer time before the call is other work.
    """
    calls = index.profile.tables["api_calls"]
    order = np.lexsort((calls["start_ns"], calls["thread_id"]))
    before = np.full(len(calls), MISSING, np.int64)
    same = calls["thread_id"][order[1:]] == calls["thread_id"][order[:-1]]
    before[order[1:]] = np.where(same, order[:-1], MISSING)
    start = calls["start_ns"][call]
    before = before[call]
    ended = np.where(before >= 0, calls["end_ns"][before], gaps.idle.start)
    is_short = (ended <= start) & (start - ended <= LAUNCH_HOST_NS)
    return np.where(is_short, ended, start)


def _spans(gaps: LaunchGaps) -> tuple[IntArray, IntArray]:
    """Return when devices waited for launches: from their calls on, or from the work before."""
    before = gaps.idle.start
    return np.where(gaps.length > gaps.in_call, before, gaps.idle.end - gaps.in_call), gaps.idle.end


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
