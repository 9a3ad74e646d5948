"""Findings on idle gaps: host work while a device was idle, or the cause of held work."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.devices import device_word
from epprof_nb.analysis.base.places import Places
from epprof_nb.analysis.base.wall_time import wall_of
from epprof_nb.analysis.findings.finding import (
    LATER_STEPS,
    MIN_GAIN_SHARE,
    Finding,
    capitalised,
    code,
    is_cell,
    launcher_name,
    op_id_of,
    stack_of,
    unread_line_name,
)
from epprof_nb.analysis.frameworks.phases import is_of_type
from epprof_nb.analysis.onnx.overhead import NOTABLE_SLOWDOWN, slowdown_at
from epprof_nb.analysis.utilisation.idle_causes import (
    HELD,
    idle_intervals,
    main_cause,
    split_by_cause,
)
from epprof_nb.analysis.utilisation.idle_gaps import IDLE_GAP_NS, gap_table
from epprof_nb.analysis.utilisation.overlap import length
from epprof_nb.analysis.utilisation.waits import find_waits
from epprof_nb.arrays.intervals import covered_before, union
from epprof_nb.arrays.types import MISSING
from epprof_nb.util.format import duration, plural, three_digits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.base.result_table import ResultTable
    from epprof_nb.analysis.utilisation.idle_causes import IdleIntervals
    from epprof_nb.arrays.types import IntArray

_POSITIONS = {"between": "", "before": " before its first work", "after": " after its last work"}
_OVERLAP = {
    "between": "Do this work while the {word} is busy: launch first, or prepare the next input on "
    "a thread of its own.",
    "after": "Do this work while the {word} is busy, if it does not need all results.",
}
_OVERLAPPED = 0.5
"""Minimum part of the idle time that overlap must save to be the remedy."""


def idle_gaps(index: ProfileIndex) -> Iterator[Finding]:
    """Yield findings on idle intervals of 1 ms or more, by position and by what the host ran."""
    profile = index.profile
    gaps = index.cached(gap_table)
    grouped: dict[tuple[str, int, str, float], list[int]] = {}
    names = ("position", "line", "name", "op_id")
    # The host had already launched held work. Data loaders have findings of their own.
    waits_for_data = np.append(is_of_type(index, "data"), np.False_)
    is_other = (gaps.names("cause").codes == HELD) | waits_for_data[index.tree.rows(gaps["op_id"])]
    for row, (position, line, name, op_id) in enumerate(zip(*map(gaps.values, names), strict=True)):
        if is_other[row]:
            continue
        slowdown = 1.0 if op_id is None else slowdown_at(profile, op_id)
        key = (position, -1 if line is None else line, name or "", slowdown)
        grouped.setdefault(key, []).append(row)
    for (position, line, name, slowdown), rows in grouped.items():
        found = gaps.take(np.array(rows))
        if found["duration_ns"].sum() < MIN_GAIN_SHARE * wall_of(profile):
            continue
        host_op = _host_op(line, name)
        # Idle time between work has a known cause only if the host ran one op, or none at all.
        if position != "between" or host_op or not _open_ns(index, found):
            yield _finding(index, found, position, host_op, slowdown)


def held_work(index: ProfileIndex) -> Iterator[Finding]:
    """Yield findings on idle intervals in which launched work was held, by launching place."""
    idle, places = idle_intervals(index, IDLE_GAP_NS), index.cached(Places)
    parts = split_by_cause(index, idle)
    held, found = parts["held"], np.flatnonzero(main_cause(parts).codes == HELD)
    work = idle.next_row[found]
    place = places.of_activities(work)
    for number in np.unique(place).tolist():
        of_place = found[place == number]
        total, longest = int(held[of_place].sum()), int(of_place[held[of_place].argmax()])
        first = int(work[place == number][0])
        launcher, stack = int(index.activity_op[first]), stack_of(index, "activities", first)
        where = launcher_name(index, stack, launcher)
        word = device_word(index.profile.info)
        # Kernels of the host device are Python functions.
        holder = "an event or other work" + (
            "" if word == "GPU" else ", by the GIL or by other threads of the CPU"
        )
        waiting = _waiting_place(index, idle.take(np.array([longest])))
        yield Finding(
            f"{capitalised(word)} idle {duration(total)} in {plural(len(of_place), 'gap')} while "
            f"launched work{f' of {where}' if where else ''} was held by {holder}"
            f"{f'; the host waited in {waiting}' if waiting else ''}.",
            total,
            int(idle.start[longest]),
            int(idle.end[longest]),
            kind="held work",
            remedy="Launch what it waits for earlier, or remove a dependency that is not needed.",
            op_id=op_id_of(index, launcher),
            stack_id=stack,
            rows=partial(np.unique, idle.next_row[of_place]),
        )


def _waiting_place(index: ProfileIndex, gap: IdleIntervals) -> str:
    """Return where the host waited for most of an idle interval; empty if it did not."""
    waits, calls = index.cached(find_waits), index.profile.tables["api_calls"]
    start = np.maximum(calls["start_ns"][waits.call], gap.start[0])
    inside = np.minimum(calls["end_ns"][waits.call], gap.end[0]) - start
    if not len(inside) or 2 * inside.max() <= gap.end[0] - gap.start[0]:
        return ""
    call = int(waits.call[int(inside.argmax())])
    return launcher_name(index, stack_of(index, "api_calls", call), int(index.call_op[call]))


def _finding(
    index: ProfileIndex, gaps: ResultTable, position: str, host_op: str, slowdown: float
) -> Finding:
    total, word = int(gaps["duration_ns"].sum()), device_word(index.profile.info)
    text = f"{capitalised(word)} idle {duration(total)}"
    if position == "between" and len(gaps) > 1:
        text += f" in {plural(len(gaps), 'gap')}"
    text += _POSITIONS[position]
    if host_op:
        text += f" while the host ran {host_op}"
    elif not _open_ns(index, gaps):
        text += " while no op was open on the host"
    if slowdown >= NOTABLE_SLOWDOWN:
        text += f"; profiling slowed its run by {three_digits(slowdown)}x"
    longest = int(gaps["duration_ns"].argmax())
    remedy, gain = _change(index, position, int(total / slowdown))
    return Finding(
        f"{text}.",
        gain,
        int(gaps["start_ns"][longest]),
        int(gaps["end_ns"][longest]),
        kind="idle",
        remedy=remedy,
        op_id=next((op for op in gaps["op_id"].tolist() if op != MISSING), MISSING),
        table="ops" if host_op else "activities",
        rows=(lambda: _host_rows(index, gaps)) if host_op else None,
        spans=lambda: (gaps["start_ns"], gaps["end_ns"]),
    )


def _change(index: ProfileIndex, position: str, total_ns: int) -> tuple[str, int]:
    """Return the remedy for host work in idle time, and its maximum saving.

    Host work can overlap only with device work; the rest must become shorter.
    """
    if position == "before":
        done_before = "Do this work before the cell, or make it faster."
        later = f"Make this work faster, keep its result, or {LATER_STEPS}."
        return (done_before if is_cell(index.profile.info) else later), total_ns
    word = device_word(index.profile.info)
    overlap_ns = min(length(*index.busy()), total_ns)
    if overlap_ns >= _OVERLAPPED * total_ns:
        return _OVERLAP[position].format(word=word), overlap_ns
    return (
        f"Make this work faster, or keep its result: the {word} is not busy for long enough to do "
        "much of it meanwhile."
    ), total_ns


def _host_op(line: int, name: str) -> str:
    if line < 0:
        return code(name) if name else ""
    return unread_line_name(line, name)


def _open_ns(index: ProfileIndex, gaps: ResultTable) -> int:
    """Return for how much of the gaps any op was open, ns."""
    ops = index.profile.tables["ops"]
    is_open = union(ops["start_ns"], ops["end_ns"])
    times = np.stack([gaps["start_ns"], gaps["end_ns"]])
    return int(np.diff(covered_before(*is_open, times), axis=0).sum())


def _host_rows(index: ProfileIndex, gaps: ResultTable) -> IntArray:
    """Return the rows of the ops that the host ran in the gaps."""
    rows = index.tree.rows(gaps["op_id"])
    return np.unique(rows[rows != MISSING])
