"""Finding on the same variable that is copied to a device again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.copies import LARGE_BYTES, copied_bytes, is_pageable
from epprof_nb.analysis.base.device_work import MEMCPY
from epprof_nb.analysis.base.devices import device_word, devices_phrase
from epprof_nb.analysis.base.lines_of_work import Places, lines_at
from epprof_nb.analysis.findings.finding import (
    Finding,
    capitalised,
    code,
    launcher_name,
    op_id_of,
    stack_of,
)
from epprof_nb.analysis.findings.unchanged_in_loop import unchanged_copy
from epprof_nb.analysis.utilisation.exposed_copies import exposed
from epprof_nb.util.format import duration, plural, size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray

_MIN_COPIES = 3
"""Minimum number of copies of one size at one line."""
_LEAST, _SPREAD = 0.5, 1.25
"""Bounds of the time of copies in other runs, relative to that in the profile."""


def repeated_copies(index: ProfileIndex) -> Iterator[Finding]:
    """Yield findings on large copies of one size, of a variable that nothing around assigns.

    Records have no contents: the source says that it is the same variable.
    """
    activities, places = index.profile.tables["activities"], index.cached(Places)
    rows = np.flatnonzero((index.kinds == MEMCPY) & activities.names("copy_kind").equals("HtoD"))
    # A buffer of pinned memory is there to be filled again.
    rows = rows[(copied_bytes(index, rows) >= LARGE_BYTES) & is_pageable(index, rows)]
    place, sizes = places.of_activities(rows), copied_bytes(index, rows)
    for number in np.unique(place).tolist():
        of_place = place == number
        if of_place.sum() < _MIN_COPIES or len(np.unique(sizes[of_place])) > 1:
            continue
        copies = rows[of_place]
        source = _unchanged(index, int(copies[0]))
        if source:
            yield _finding(index, copies, source)


def _unchanged(index: ProfileIndex, row: int) -> str:
    """Return the source of a copy if its loop or function does not assign what it copies."""
    stack = stack_of(index, "activities", row)
    cells, line = lines_at(index, np.array([stack]), index.activity_op[[row]])
    text = index.profile.sources.get(cells.to_list()[0] or "", "")
    return unchanged_copy(text, int(line[0])) if line[0] >= 0 else ""


def _finding(index: ProfileIndex, rows: IntArray, source: str) -> Finding:
    activities = index.profile.tables["activities"]
    target = devices_phrase(index, activities["device_id"][rows].tolist())
    target = f"the {target}" if target == device_word(index.profile.info) else target
    time = exposed(index, rows)
    total = int(time.sum())
    # The first copy remains.
    gain = total - total // len(rows)
    op, stack = int(index.activity_op[rows[0]]), stack_of(index, "activities", int(rows[0]))
    where = launcher_name(index, stack, op) or "the code"
    each = size(int(copied_bytes(index, rows)[0]))
    longest = int(rows[int(time.argmax())])
    return Finding(
        f"{capitalised(where)} copies the same variable to {target} "
        f"{plural(len(rows), 'time')}, {each} each, for {duration(total)}: no code around it "
        f"assigns the variable that {code(source)} copies. Whether its elements change is not "
        "recorded.",
        gain,
        int(activities["start_ns"][longest]),
        int(activities["end_ns"][longest]),
        kind="repeated copies",
        remedy="Copy it once, before the loop, and keep it there, unless its elements change.",
        gain_low_ns=int(_LEAST * gain),
        gain_high_ns=int(_SPREAD * total),
        op_id=op_id_of(index, op),
        stack_id=stack,
        rows=lambda: rows,
        spans=lambda: (activities["start_ns"][rows], activities["end_ns"][rows]),
    )
