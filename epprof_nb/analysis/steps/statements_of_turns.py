"""Statements that each iteration ran: an iteration that ran more of them may take longer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.steps.iterations import iterations
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray

_LEAST_NUMBERS = 1 / 3
"""Minimum part of the iterations that differ in their number of statements: in a first iteration,
a branch of its own may run, which is the warm-up."""
_LEAST_CORRELATION = 0.7
"""Minimum correlation of the ranks of times and numbers of statements."""


def statements_of_turns(index: ProfileIndex) -> IntArray | None:
    """Return how many statements each iteration ran, if that explains their times; else None.

    It does in nested loops over pairs, whose inner loop becomes shorter or longer.
    """
    found, ops = index.cached(iterations), index.profile.tables["ops"]
    if not len(found.start):
        return None
    is_around = (ops["start_ns"] <= found.start[0]) & (ops["end_ns"] >= found.end[-1])
    rows = np.flatnonzero((ops["line"] != MISSING) & ~is_around)
    at = np.searchsorted(found.start, ops["start_ns"][rows], "right") - 1
    rows, at = rows[at >= 0], at[at >= 0]
    inside = ops["start_ns"][rows] < found.end[at]
    rows, at = rows[inside], at[inside]
    if not len(rows) or (ops["end_ns"][rows] > found.end[at]).any():
        return None  # one row has the executions of several iterations
    counts: IntArray = np.bincount(at, ops["count"][rows], len(found.start)).astype(np.int64)
    if len(np.unique(counts)) < max(_LEAST_NUMBERS * len(counts), 2):
        return None
    # By rank: a single iteration that was interrupted is of no account.
    times = found.end - found.start
    ranks = np.array([np.argsort(np.argsort(values)) for values in (counts, times)])
    return counts if np.corrcoef(ranks)[0, 1] >= _LEAST_CORRELATION else None
