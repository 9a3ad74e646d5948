"""Findings on copies of pageable memory, and on copies that could overlap."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.copies import LARGE_BYTES, copied_bytes, is_pageable
from epprof_nb.analysis.base.device_work import MEMCPY, device_kinds_ns
from epprof_nb.analysis.base.devices import device_word
from epprof_nb.analysis.base.lines_of_work import Places
from epprof_nb.analysis.base.wall_time import wall_of
from epprof_nb.analysis.base.work_classes import COMPUTE, COPY, class_intervals
from epprof_nb.analysis.findings.finding import Finding, launcher_name, op_id_of, stack_of
from epprof_nb.analysis.peaks.host_link import link_bytes_per_s
from epprof_nb.analysis.utilisation.exposed_copies import exposed
from epprof_nb.arrays.groups import group_codes, sum_by_group
from epprof_nb.arrays.intervals import length, union_of
from epprof_nb.util.format import duration, percent, plural, size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray

COPY_SHARE, COPY_WALL_SHARE = 0.15, 0.01
"""Minimum shares of the device time and of the wall time for copies of pageable memory."""
_MAIN_SHARE = 0.5
"""Minimum share of one line in the time of the copies for the finding to name it."""
MIN_TO_OVERLAP = 4
"""Minimum number of copies at one place that could overlap with kernels."""


def pageable_copies(index: ProfileIndex) -> Iterator[Finding]:
    """Yield a finding on the copies of pageable memory."""
    activities = index.profile.tables["activities"]
    copies = np.flatnonzero(index.kinds == MEMCPY)
    rows = copies[is_pageable(index, copies)]
    time = np.maximum(activities["end_ns"][rows] - activities["start_ns"][rows], 0)
    total, copied = int(time.sum()), int(copied_bytes(index, rows).sum())
    device_ns = device_kinds_ns(activities, index.kinds)
    least = max(COPY_SHARE * device_ns, COPY_WALL_SHARE * wall_of(index.profile))
    if total < least or copied < LARGE_BYTES:
        return
    longest = rows[int(time.argmax())]
    verb = "accounts" if len(rows) == 1 else "account"
    text = (
        f"{plural(len(rows), 'copy', 'copies')} of pageable memory ({size(copied)}) {verb} for "
        f"{percent(total / device_ns)} of the {device_word(index.profile.info)} time"
    )
    where, share = _main_place(index, rows, time)
    if where and share >= _MAIN_SHARE:
        text += f", {where} for {percent(share)} of that" if share < 1 else f", all of {where}"
    pinned = _pinned_ns(index, copies)
    hidden = int((time - exposed(index, rows)).sum())
    # Without a bandwidth to compare with: pinning usually saves half of the time at best.
    gain = max((total // 2 if pinned is None else total - pinned) - hidden, 0)
    yield Finding(
        f"{text}.",
        gain,
        int(activities["start_ns"][longest]),
        int(activities["end_ns"][longest]),
        kind="pageable copies",
        remedy="Copy from and to pinned memory: it is faster and overlaps with kernels.",
        gain_low_ns=0 if pinned is None else gain // 2,
        # Pinned copies can also overlap with computation.
        gain_high_ns=min(gain + _compute_alone(index, rows), max(total - hidden, gain)),
        op_id=op_id_of(index, int(index.activity_op[longest])),
        stack_id=stack_of(index, "activities", int(longest)),
        rows=lambda: rows,
        spans=lambda: (activities["start_ns"][rows], activities["end_ns"][rows]),
    )


def _main_place(index: ProfileIndex, rows: IntArray, time: IntArray) -> tuple[str, float]:
    """Return the name of the place whose copies took longest, and its share of their time."""
    place, first = np.unique(index.cached(Places).of_activities(rows), return_inverse=True)
    by_place = sum_by_group(first, time, len(place))[:-1]
    top = int(by_place.argmax())
    row = int(rows[np.flatnonzero(first == top)[0]])
    stack = stack_of(index, "activities", row)
    name = launcher_name(index, stack, int(index.activity_op[row]))
    return name, float(by_place[top] / max(int(time.sum()), 1))


def _pinned_ns(index: ProfileIndex, copies: IntArray) -> int | None:
    """Return how long the pageable copies would take at the bandwidth of pinned ones.

    This is the bandwidth of large pinned copies in the profile, else of the device's link. None if
    it is unknown for one of the directions.
    """
    activities = index.profile.tables["activities"]
    copied = copied_bytes(index, copies)
    time = np.maximum(activities["end_ns"][copies] - activities["start_ns"][copies], 1)
    is_pinned = ~is_pageable(index, copies) & (copied >= LARGE_BYTES)
    kinds, devices = activities.names("copy_kind").codes, activities["device_id"]
    groups, first = group_codes(kinds[copies], devices[copies])
    pinned_bytes = sum_by_group(groups[is_pinned], copied[is_pinned], len(first))[:-1]
    pinned_ns = sum_by_group(groups[is_pinned], time[is_pinned], len(first))[:-1]
    rest = sum_by_group(groups, np.where(is_pageable(index, copies), copied, 0), len(first))[:-1]
    directions = activities.names("copy_kind").take(copies[first]).to_list()
    total = 0.0
    for group in np.flatnonzero(rest).tolist():
        device, direction = int(devices[copies[first[group]]]), directions[group] or ""
        if pinned_ns[group]:
            bandwidth = pinned_bytes[group] * 1e9 / pinned_ns[group]
        elif (link := link_bytes_per_s(index.profile.info, device, direction)) is not None:
            bandwidth = link
        else:
            return None
        total += rest[group] * 1e9 / bandwidth
    return int(total)


def copies_to_overlap(index: ProfileIndex) -> Iterator[Finding]:
    """Yield a finding on the copies of one place that could run beside kernels."""
    activities, places = index.profile.tables["activities"], index.cached(Places)
    rows = np.flatnonzero(index.kinds == MEMCPY)
    kinds = activities.names("copy_kind")
    # The host launches the next work after its wait, so the two cannot overlap.
    is_input = kinds.equals("HtoD")[rows] & ~is_pageable(index, rows)
    rows = rows[is_input]
    if len(rows) < MIN_TO_OVERLAP:
        return
    time = exposed(index, rows)
    place = places.of_activities(rows)
    by_place = sum_by_group(place, time, places.count + 1)[:-1]
    top = int(by_place.argmax())
    of_top = rows[place == top]
    total = int(by_place[top])
    if len(of_top) < MIN_TO_OVERLAP or not total:
        return
    start, end = int(activities["start_ns"][of_top].min()), int(activities["end_ns"][of_top].max())
    # Nothing runs beside the first copy; another one can run beside the kernels before it.
    first = int(time[place == top][activities["start_ns"][of_top].argmin()])
    alone = _compute_alone(index, of_top)
    gain = max(min(total - first, alone), 0)
    op = int(index.activity_op[of_top[0]])
    stack = stack_of(index, "activities", int(of_top[0]))
    where = launcher_name(index, stack, op)
    yield Finding(
        f"{plural(len(of_top), 'copy', 'copies')} to the {device_word(index.profile.info)}"
        f"{f' in {where}' if where else ''} ran for {duration(total)} while no kernel ran.",
        gain,
        start,
        end,
        kind="copies that could overlap",
        remedy="Copy the next input on a separate stream while the kernels of the current one run.",
        gain_low_ns=gain // 2,
        gain_high_ns=min(total, alone),
        op_id=op_id_of(index, op),
        stack_id=stack,
        rows=lambda: of_top,
    )


def _compute_alone(index: ProfileIndex, copies: IntArray) -> int:
    """Return how long devices only computed after the first of some copies, ns."""
    activities = index.profile.tables["activities"]
    total = 0
    for device in np.unique(activities["device_id"][copies]).tolist():
        parts = index.cached(class_intervals, device)
        starts, ends = union_of([parts[COMPUTE], parts[COPY]])
        begin = int(activities["start_ns"][copies].min())
        total += _length_from(starts, ends, begin) - _length_from(*parts[COPY], begin)
    return total


def _length_from(starts: IntArray, ends: IntArray, begin: int) -> int:
    later = ends > begin
    return length(np.maximum(starts[later], begin), ends[later])
