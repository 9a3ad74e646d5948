"""Findings on idle gaps: host work while a device was idle, or the cause of held work."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.devices import device_word
from epprof_nb.analysis.base.places import Places
from epprof_nb.analysis.base.wall_time import wall_of
from epprof_nb.analysis.critical_path.events import Removed
from epprof_nb.analysis.critical_path.saving import saving_without
from epprof_nb.analysis.findings.finding import (
    LATER_STEPS,
    MIN_GAIN_SHARE,
    Finding,
    capitalised,
    code,
    is_cell,
    launcher_name,
    op_id_of,
    own_line_name,
    place_name,
    stack_of,
    unread_line_name,
)
from epprof_nb.analysis.findings.host_name import host_name
from epprof_nb.analysis.findings.rules.sampled_host import sampled_host
from epprof_nb.analysis.frameworks.phases import is_of_type
from epprof_nb.analysis.onnx.overhead import NOTABLE_SLOWDOWN, slowdown_at
from epprof_nb.analysis.utilisation.host_idle import host_idle
from epprof_nb.analysis.utilisation.idle_causes import (
    AFTER,
    BEFORE,
    BETWEEN,
    idle_intervals,
    launch_latency,
    split_by_cause,
)
from epprof_nb.analysis.utilisation.launches import counted_as_launching
from epprof_nb.analysis.utilisation.overlap import length
from epprof_nb.analysis.utilisation.waits import find_waits
from epprof_nb.arrays.groups import group_codes, sum_by_group
from epprof_nb.arrays.intervals import covered_before, union
from epprof_nb.arrays.types import MISSING
from epprof_nb.util.format import duration, plural, three_digits

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.utilisation.host_idle import HostIdle
    from epprof_nb.analysis.utilisation.idle_causes import IdleIntervals
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.table import Table

_LEAST_NS = 10_000
"""Least idle time of a line: time stamps are not exact enough for less."""
_LEAST_ONCE_NS, _ONCE = 500_000, 3
"""Least idle time of a line in so few gaps: the first calls of a cell cost that much anyway."""
_LEAST_HELD_NS = 5_000
"""Longest time between two pieces of work of a queue that needs no reason."""
_POSITIONS = (" before its first work", "", " after its last work")
_OVERLAP = (
    "Do this work while the {word} is busy: launch first, or prepare the next input ahead on "
    "another thread."
)
_OVERLAP_ON_SEVERAL = (
    "Do this work while the {word} is busy: prepare the next inputs ahead on several other threads "
    "or processes; one more thread would still be late."
)
_OVERLAP_AFTER = "Do this work while the {word} is busy, if it does not need all results."
_OVERLAPPED = 0.5
"""Minimum part of the idle time that overlap must save to be the remedy."""
_LEAST_OVERLAP, _SPREAD = 0.5, 1.25
"""Bounds of what an overlap saves, relative to its gain: times vary from run to run."""
_MAIN_OP = 0.8
"""Minimum share of one op in the idle time of its line for the finding to name the op."""


def idle_gaps(index: ProfileIndex) -> Iterator[Finding]:
    """Yield findings on idle time before the calls of the host, by its line, else by its op.

    The time counts whatever the length of the gaps. The host had already launched held work;
    launches that come late, and data loaders, have findings of their own.
    """
    ops, found = index.profile.tables["ops"], index.cached(host_idle)
    waits_for_data = np.append(is_of_type(index, "data"), np.False_)
    is_other = waits_for_data[found.op]
    is_other |= np.isin(found.idle.next_row, index.cached(counted_as_launching)) & (
        found.idle.position == BETWEEN
    )
    found = found.take(np.flatnonzero(~is_other))
    least = max(MIN_GAIN_SHARE * wall_of(index.profile), _LEAST_NS)
    slowdown = _slowdowns(index, found.op)
    for rows in _by_place(index, found, slowdown):
        of_place = found.take(rows)
        total = of_place.time.sum()
        if total < least or (len(rows) <= _ONCE and total < _LEAST_ONCE_NS):
            continue
        has_op = bool((of_place.op >= 0).any() or (of_place.line >= 0).any())
        # Idle time between work has a known cause only if the host ran one op, or none at all.
        between = of_place.idle.position == BETWEEN
        if has_op or not between.any() or not _open_ns(of_place, ops):
            yield _finding(index, of_place, float(slowdown[rows[0]]))


def _slowdowns(index: ProfileIndex, op: IntArray) -> npt.NDArray[np.float64]:
    """Return by which factor profiling slowed the run of each op."""
    ids = np.append(index.profile.tables["ops"]["op_id"], MISSING)[op]
    distinct, of_id = np.unique(ids, return_inverse=True)
    known = [
        1.0 if op_id == MISSING else slowdown_at(index.profile, op_id)
        for op_id in distinct.tolist()
    ]
    return np.array(known, np.float64)[of_id]


def _by_place(
    index: ProfileIndex, found: HostIdle, slowdown: npt.NDArray[np.float64]
) -> list[IntArray]:
    """Return the rows of each place: a line, else ops of one name; the first one comes first."""
    ops = index.profile.tables["ops"]
    statement = np.append(index.statement, MISSING)[found.op]
    is_inferred = found.line >= 0
    line = np.append(ops["line"], MISSING)[statement]
    cell = np.append(ops.names("cell").codes, MISSING)[statement]
    name = np.append(ops.names("name").codes, MISSING)[found.op]
    codes, first = group_codes(
        np.where(is_inferred, found.file.codes, MISSING),
        np.where(is_inferred, found.line, line),
        np.where(is_inferred, MISSING, cell),
        np.where(is_inferred | (line >= 0), MISSING, name),
        np.unique(slowdown, return_inverse=True)[1],
        # What precedes the first work of a device has nothing to overlap with.
        np.where(is_inferred | (found.op >= 0), 0, found.idle.position),
    )
    order = np.argsort(codes, kind="stable")
    return np.split(order, np.searchsorted(codes[order], np.arange(1, len(first))))


def held_work(index: ProfileIndex) -> Iterator[Finding]:
    """Yield findings on idle intervals in which launched work was held, by launching place."""
    idle, places = idle_intervals(index), index.cached(Places)
    held = split_by_cause(index, idle)["held"]
    # Work on a queue starts a little after the work before it, which no event explains.
    found = np.flatnonzero(held > max(launch_latency(index), _LEAST_HELD_NS))
    work = idle.next_row[found]
    place = places.of_activities(work)
    for number in np.unique(place).tolist():
        of_place = found[place == number]
        total, longest = int(held[of_place].sum()), int(of_place[held[of_place].argmax()])
        if total < MIN_GAIN_SHARE * wall_of(index.profile):
            continue
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


def _finding(index: ProfileIndex, found: HostIdle, slowdown: float) -> Finding:
    word = device_word(index.profile.info)
    starts, ends = union(found.start, found.end)
    total = min(int(found.time.sum()), int((ends - starts).sum()))  # devices may idle together
    sampled = sampled_host(index, starts, ends)
    host_op = host_name(index, sampled) or _host_op(index, found)
    text = f"{capitalised(word)} idle {duration(total)}{_when(found)}"
    if host_op:
        text += f" while the host ran {host_op}"
    elif not _open_ns(found, index.profile.tables["ops"]):
        text += " while no op was open on the host"
    if slowdown >= NOTABLE_SLOWDOWN:
        text += f"; profiling slowed its run by {three_digits(slowdown)}x"
    longest = int(found.time.argmax())
    remedy, low, gain, high = _change(index, found, total, slowdown)
    ops = np.append(index.profile.tables["ops"]["op_id"], MISSING)[found.op]
    own_ops = np.unique(found.op[found.op >= 0])
    # The work that ends each gap shows it, unless an op was open in this gap only.
    work = np.unique(found.idle.next_row)
    has_ops = len(own_ops) >= len(work)
    at = None
    if sampled < 0 and found.line[longest] >= 0:
        (file,) = found.file.take(np.array([longest])).to_list()
        at = (file or "", int(found.line[longest]))
    return Finding(
        f"{text}.",
        gain,
        int(found.idle.start[longest]),
        int(found.idle.end[longest]),
        kind="idle",
        remedy=remedy,
        gain_low_ns=low,
        gain_high_ns=high,
        op_id=next((op for op in ops.tolist() if op != MISSING), MISSING),
        stack_id=sampled,
        at=at,
        table="ops" if has_ops else "activities",
        rows=lambda: own_ops if has_ops else work,
        spans=lambda: (starts, ends),
    )


def _when(found: HostIdle) -> str:
    """Return the number and median of the gaps, and whether there is idle time around all work."""
    position = found.idle.position
    times = found.time[position == BETWEEN]
    around = [_POSITIONS[code_] for code_ in np.unique(position).tolist() if code_ != BETWEEN]
    text = ""
    if len(times) > 1:
        median = duration(float(np.median(times)))
        text = f" in {plural(len(times), 'gap')} of {median} (median)"
    elif len(times) and around:
        text = " in 1 gap"
    return text + (" and" if text and around else "") + " and".join(around)


def _change(
    index: ProfileIndex, found: HostIdle, total: int, slowdown: float
) -> tuple[str, int, int, int]:
    """Return the remedy for host work in idle time, and its saving with its bounds.

    Host work can overlap only with device work; the rest must become shorter.
    """
    word, position = device_word(index.profile.info), found.idle.position
    saved = saving_without(index, Removed(thread=found.thread, start=found.start, end=found.end))
    saved = int(min(saved, total) / slowdown)
    if (position == BEFORE).all():
        done_before = "Do this work before the cell, or make it faster."
        later = f"Make this work faster, keep its result, or {LATER_STEPS}."
        return (done_before if is_cell(index.profile.info) else later), 0, saved, saved
    overlap = min(
        length(*index.busy()), int(found.time[position != BEFORE].sum() / slowdown), saved
    )
    if overlap >= _OVERLAPPED * saved:
        if (position == AFTER).all():
            return _OVERLAP_AFTER.format(word=word), 0, overlap, overlap
        # One thread takes as long for this work as the host did, also while the device was busy.
        work = int((found.end - found.begun).sum() / slowdown)
        left = wall_of(index.profile) - work
        remedy = _OVERLAP if left >= _OVERLAPPED * overlap else _OVERLAP_ON_SEVERAL
        high = min(int(_SPREAD * overlap), saved)
        gain = min(overlap, left) if remedy == _OVERLAP else overlap
        return remedy.format(word=word), int(_LEAST_OVERLAP * gain), gain, high
    remedy = (
        f"Make this work faster, or keep its result: the {word} is not busy for long enough to do "
        "much of it meanwhile."
    )
    return remedy, 0, saved, saved


def _host_op(index: ProfileIndex, found: HostIdle) -> str:
    """Return the name of the line, or of the op if it took most of the time; empty for none."""
    profile, ops = index.profile, index.profile.tables["ops"]
    if found.line[0] >= 0:
        names = (found.file, found.function)
        file, function = (column.take(slice(0, 1)).to_list()[0] or "" for column in names)
        last = int(found.last_line[0])
        return own_line_name(profile, file, function, int(found.line[0]), last)
    if not (found.op >= 0).any():
        return ""
    codes = ops.names("name").codes
    name = np.append(codes, MISSING)[found.op]
    distinct, of_name = np.unique(name, return_inverse=True)
    time = sum_by_group(of_name, found.time, len(distinct))[:-1]
    statement = int(index.statement[found.op[0]])
    if time.max() >= _MAIN_OP * time.sum() or statement < 0:
        code_ = int(distinct[int(time.argmax())])
        text = ops.names("name").categories[code_] if code_ >= 0 else ""
        if statement < 0:
            return code(text) if text else ""
        line = int(ops["line"][statement])
        if text == f"line {line}":  # its source is not in its name
            return place_name(index, statement)
        return unread_line_name(line, text)
    return place_name(index, statement)


def _open_ns(found: HostIdle, ops: Table) -> int:
    """Return for how much of the gaps any op was open, ns."""
    is_open = union(ops["start_ns"], ops["end_ns"])
    times = np.stack([found.idle.start, found.idle.end])
    return int(np.diff(covered_before(*is_open, times), axis=0).sum())
