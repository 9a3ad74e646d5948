"""Finding on arrays that grow by concatenation, which copies all their elements each time."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.device_work import kernels_named
from epprof_nb.analysis.base.devices import device_word
from epprof_nb.analysis.base.lines_of_work import Places
from epprof_nb.analysis.critical_path.changed_durations import Removed
from epprof_nb.analysis.critical_path.saving_without_work import saving_without
from epprof_nb.analysis.findings.finding import (
    Finding,
    capitalised,
    launcher_name,
    op_id_of,
    stack_of,
)
from epprof_nb.util.format import duration, plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray

_NAMES = re.compile(r"CatArray|concat", re.IGNORECASE)
"""Names of kernels that concatenate: of PyTorch, CuPy and others."""
_MIN_TIMES = 10
"""Minimum number of concatenations at one line: with fewer, noise can look like growth."""
_LONGER = 0.75
"""Minimum share of pairs of an early and a late concatenation in which the late one takes longer.

Without growth it is a half on average, and below this bound in 99 of 100 cases with 20
concatenations.
"""
_LEFT = 0.3
"""Part of the time that writing the new elements may take."""


def growing_arrays(index: ProfileIndex) -> Iterator[Finding]:
    """Yield a finding on the lines whose concatenations take longer and longer."""
    activities, places = index.profile.tables["activities"], index.cached(Places)
    rows = kernels_named(index, _NAMES)
    rows = rows[np.argsort(activities["start_ns"][rows], kind="stable")]
    place = places.of_activities(rows)
    growing = [
        rows[place == number]
        for number in np.unique(place).tolist()
        if _grows(_times(index, rows[place == number]))
    ]
    if growing:
        yield _finding(index, growing)


def _times(index: ProfileIndex, rows: IntArray) -> IntArray:
    activities = index.profile.tables["activities"]
    times: IntArray = np.maximum(activities["end_ns"][rows] - activities["start_ns"][rows], 0)
    return times


def _grows(times: IntArray) -> bool:
    """Return whether later times are longer, by the probability that one of a pair is."""
    if len(times) < _MIN_TIMES:
        return False
    early, late = np.array_split(times, 2)
    shorter = np.searchsorted(np.sort(early), late, "left")
    not_longer = np.searchsorted(np.sort(early), late, "right")
    wins = float((shorter + not_longer).sum()) / 2
    return wins >= _LONGER * len(early) * len(late)


def _finding(index: ProfileIndex, places: list[IntArray]) -> Finding:
    activities = index.profile.tables["activities"]
    places = sorted(places, key=lambda rows: -int(_times(index, rows).sum()))
    rows = np.sort(np.concatenate(places))
    times = _times(index, rows)
    last = int(places[0][-1])
    op, stack = int(index.activity_op[last]), stack_of(index, "activities", last)
    where = launcher_name(index, stack, op) or "the code"
    also = f" (and {plural(len(places) - 1, 'other line')})" if len(places) > 1 else ""
    first, final = (duration(int(times_)) for times_ in _times(index, places[0])[[0, -1]])
    gain = saving_without(index, Removed(activities=rows))
    return Finding(
        f"{capitalised(where)}{also} concatenates arrays {plural(len(rows), 'time')} for "
        f"{duration(int(times.sum()))} of {device_word(index.profile.info)} time, and takes longer "
        f"each time (from {first} to {final}), because it copies all elements again.",
        gain,
        int(activities["start_ns"][rows[0]]),
        int(activities["end_ns"][last]),
        kind="growing array",
        remedy="Allocate the array once at its final size, and write the new elements into a slice "
        "of it; or collect the parts in a list and concatenate once.",
        gain_low_ns=int((1 - _LEFT) * gain),
        op_id=op_id_of(index, op),
        stack_id=stack,
        rows=lambda: rows,
    )
