"""Finding on a first step that is slow, where too few follow for statistics of a warm-up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.findings.finding import Finding, op_id_of, place_name
from epprof_nb.analysis.findings.host_waits import waits_for_others
from epprof_nb.analysis.findings.rules.iterations.unsteady_iterations import without_warm_up
from epprof_nb.analysis.steps.iterations import MIN_ITERATIONS, iterations
from epprof_nb.util.format import duration, plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.findings.finding import EvidenceTable

MIN_STEPS = 3
"""Minimum number of steps: two of them show what a step takes later."""
_SLOWER = 2.0
"""Minimum ratio of the first step to the slowest other one."""
_LEAST_EXCESS_NS = 20_000_000
"""Minimum excess: the first calls that are recorded take some milliseconds longer."""


def slow_first_step(index: ProfileIndex) -> Iterator[Finding]:
    """Yield a finding if the first of a few steps took much longer than each other one."""
    found = index.cached(iterations, MIN_STEPS)
    wall = found.end - found.start
    if not MIN_STEPS <= len(wall) < MIN_ITERATIONS or wall[0] < _SLOWER * wall[1:].max():
        return
    usual = int(np.median(wall[1:]))
    excess = int(wall[0]) - usual
    if excess < _LEAST_EXCESS_NS:
        return
    if waits_for_others(index, found.start[:1], found.end[:1], excess):
        return
    loop = f" of {place_name(index, found.loop)}" if found.loop >= 0 else ""
    table: EvidenceTable = "activities" if index.is_device_work.any() else "ops"
    start, end = int(found.start[0]), int(found.end[0])
    times = index.profile.tables[table]["start_ns"]
    yield Finding(
        f"The first of {plural(len(wall), found.unit)}{loop} took {duration(int(wall[0]))}, the "
        f"others {duration(usual)} (median).",
        excess,
        start,
        end,
        kind="warm-up",
        remedy=without_warm_up(index),
        op_id=op_id_of(index, found.loop),
        table=table,
        rows=lambda: np.flatnonzero((times >= start) & (times < end)),
    )
