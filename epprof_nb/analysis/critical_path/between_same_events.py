"""Time between the same events of a thread, in which it does the same.

Samples may miss a short time, such as an execution of an op, but not each time of its kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epprof_nb.arrays.groups import group_codes
from epprof_nb.arrays.intervals import covered_between, union

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.critical_path.thread_joins import Intervals
    from epprof_nb.arrays.types import BoolArray, IntArray


class Pieces(NamedTuple):
    """The time of a thread from each begin or end of an op to the next.

    Attributes
    ----------
    start, end
        Ascending times.
    kind
        The same number for the time between events of the same names.
    """

    start: IntArray
    end: IntArray
    kind: IntArray


def pieces_of(index: ProfileIndex, own: BoolArray) -> Pieces:
    """Return the pieces of the time of a thread with the ops `own`."""
    ops = index.profile.tables["ops"]
    times = np.append(ops["end_ns"][own], ops["start_ns"][own])
    names = ops.names("name").codes[own].astype(np.int64)
    order = np.argsort(times, kind="stable")  # at one time, ends come first
    event = np.append(2 * names, 2 * names + 1)[order]
    start, end = times[order][:-1], times[order][1:]
    return Pieces(start, end, group_codes(event[:-1], event[1:])[0])


def with_alike(
    found: Intervals, index: ProfileIndex, own: BoolArray, known: Intervals
) -> Intervals:
    """Return times of a thread with those between the same events as most of one of these times.

    `own` are the ops of the thread, and `known` are times of which it is known what it did.
    """
    start, end, kind = pieces_of(index, own)
    free = end - start - covered_between(*known, start, end)
    is_kind = np.zeros(len(kind), np.bool_)
    is_kind[kind[2 * covered_between(*found, start, end) > free]] = True
    alike = is_kind[kind] & (free > 0)
    return union(np.append(found[0], start[alike]), np.append(found[1], end[alike]))
