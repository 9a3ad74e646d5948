"""Finding on device work that is hidden behind the critical path."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.devices import device_word
from epprof_nb.analysis.base.lines_of_work import Places
from epprof_nb.analysis.critical_path.by_line import PathLines
from epprof_nb.analysis.critical_path.chain import ACTIVITY, CriticalPath, ops_below
from epprof_nb.analysis.findings.finding import (
    Finding,
    capitalised,
    launcher_name,
    op_id_of,
    stack_of,
)
from epprof_nb.arrays.chunks import chunks
from epprof_nb.arrays.groups import sum_by_group
from epprof_nb.util.format import duration, percent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray

MIN_SHARE = 0.1
"""Minimum share of the work of one place in the critical path."""
HIDDEN = 0.5
"""Maximum part of the device time of the hottest place that is on the critical path."""


def critical_work(index: ProfileIndex) -> Iterator[Finding]:
    """Yield a finding if the place with the most device time has less time on the critical path."""
    places = index.cached(Places)
    if places.count < 2:
        return
    device_ns = _device_time(index, places)
    path = index.cached(CriticalPath, "launch")
    least = np.partition(device_ns, -2)[-2] / MIN_SHARE
    # The path is no longer than the profile. If that is enough to know, its steps, which are needed
    # then, give its length as well.
    if least < path.span_ns and least < path.length_ns:
        return  # less is on the path, too
    on_path = np.flatnonzero(path.step == ACTIVITY)
    at = places.of_activities(path.row[on_path])
    path_ns = _sum(at, path.duration_ns[on_path], places)
    hottest, critical = int(device_ns.argmax()), int(path_ns.argmax())
    if (
        hottest == critical
        or device_ns[hottest] <= 0  # in a damaged profile
        or path_ns[critical] < MIN_SHARE * path.length_ns
        or path_ns[hottest] > HIDDEN * device_ns[hottest]
    ):
        return
    rows = on_path[at == critical]
    first, stack = int(path.op[rows[0]]), stack_of(index, "activities", int(path.row[rows[0]]))
    is_of = places.of_op[:-1] == critical
    if is_of.any():
        free = ops_below(index, is_of).astype(np.uint8)
        saving = path.length_ns - int(path.input.lengths(np.append(free, np.uint8(0)))[0])
    else:  # no statement marks the line
        lines = PathLines(index)
        saving = int(lines.savings(lines.lines.of_stack[[places.stack(critical)]])[0])
    where, hot = launcher_name(index, stack, first), _name_of(index, places, hottest)
    share = path_ns[critical] / max(path.length_ns, 1)
    text = (
        f"{capitalised(where)} is on the critical path with {duration(int(path_ns[critical]))} of "
        f"{device_word(index.profile.info)} work ({percent(float(share))}). {capitalised(hot)} has "
        f"more such work, {duration(int(device_ns[hottest]))}, but other work hides "
        f"{percent(1 - float(path_ns[hottest] / device_ns[hottest]))} of it."
    )
    yield Finding(
        text,
        saving,
        int(path.start_ns[rows[0]]),
        int(path.end_ns[rows[-1]]),
        kind="critical path",
        remedy=f"Make the work of {where} faster, or split it between streams.",
        op_id=op_id_of(index, first),
        stack_id=stack,
        rows=lambda: np.unique(path.row[rows].astype(np.int64)),
    )


def _device_time(index: ProfileIndex, places: Places) -> IntArray:
    activities = index.profile.tables["activities"]
    total = np.zeros(places.count, np.int64)
    for chunk in chunks(len(activities)):
        time = activities["end_ns"][chunk] - activities["start_ns"][chunk]
        time = np.where(index.is_device_work[chunk], np.maximum(time, 0), 0)
        total += _sum(places.of_activities(chunk), time, places)
    return total


def _sum(place: IntArray, time: IntArray, places: Places) -> IntArray:
    return sum_by_group(place, time, places.count + 1)[: places.count]


def _name_of(index: ProfileIndex, places: Places, place: int) -> str:
    """Return the name of a place, by the first activity that was launched there."""
    for chunk in chunks(len(index.profile.tables["activities"])):
        found = np.flatnonzero(places.of_activities(chunk) == place)
        if len(found):
            row = int(found[0]) + chunk.start
            stack = stack_of(index, "activities", row)
            return launcher_name(index, stack, int(index.activity_op[row]))
    return ""
