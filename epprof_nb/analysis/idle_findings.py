"""Findings on idle gaps: what the host ran while a device was idle."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.findings import MIN_GAIN_SHARE, Finding, capitalised, code
from epprof_nb.analysis.idle import gap_table
from epprof_nb.analysis.ort_overhead import NOTABLE_SLOWDOWN, slowdown_at
from epprof_nb.analysis.summary import device_word, wall_of
from epprof_nb.arrays.intervals import covered_before, union
from epprof_nb.arrays.types import MISSING
from epprof_nb.util.format import duration, plural, three_digits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epprof_nb.analysis.dataframe import ResultTable
    from epprof_nb.analysis.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray

_POSITIONS = {"between": "", "before": " before its first work", "after": " after its last work"}
_REMEDIES = {
    "before": "Start {word} work earlier, or do this work before the cell.",
    "between": "Do this work while the {word} is busy: launch first, or prepare the next input on "
    "a thread of its own.",
    "after": "Do this work while the {word} is busy, if it does not need all results.",
}
_HELD = "Launch what this work waits for earlier: an event or other work held it."


def idle_gaps(index: ProfileIndex) -> Iterator[Finding]:
    """Yield findings on idle intervals of 1 ms or more, by position and by what the host ran."""
    profile = index.profile
    gaps = index.cached(gap_table)
    grouped: dict[tuple[str, int, str, float], list[int]] = {}
    names = ("position", "line", "name", "op_id")
    for row, (position, line, name, op_id) in enumerate(zip(*map(gaps.values, names), strict=True)):
        slowdown = 1.0 if op_id is None else slowdown_at(profile, op_id)
        key = (position, -1 if line is None else line, name or "", slowdown)
        grouped.setdefault(key, []).append(row)
    for (position, line, name, slowdown), rows in grouped.items():
        found = gaps.take(np.array(rows))
        if found["duration_ns"].sum() >= MIN_GAIN_SHARE * wall_of(profile):
            yield _finding(index, found, position, _host_op(line, name), slowdown)


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
    is_held = int(gaps["waiting_ns"].sum()) * 2 > total
    gain = int(total / slowdown)
    return Finding(
        f"{text}.",
        gain,
        int(gaps["start_ns"][longest]),
        int(gaps["end_ns"][longest]),
        kind="idle",
        remedy=_HELD if is_held and not host_op else _REMEDIES[position].format(word=word),
        gain_high_ns=gain,
        op_id=next((op for op in gaps["op_id"].tolist() if op != MISSING), MISSING),
        table="ops" if host_op else "activities",
        rows=(lambda: _host_rows(index, gaps)) if host_op else None,
    )


def _host_op(line: int, name: str) -> str:
    if line < 0:
        return code(name) if name else ""
    # Without its source, a statement is named after its line.
    return f"line {line}" + (f" ({code(name)})" if name and name != f"line {line}" else "")


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
