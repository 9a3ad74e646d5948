"""Findings on idle gaps: host work while a device was idle, or the cause of held work."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.between_lines import awaits
from epprof_nb.analysis.base.devices import device_word, devices_phrase
from epprof_nb.analysis.base.first_calls import FIRST_WORK_NS, is_measured
from epprof_nb.analysis.base.lines_of_work import Places, lines_at
from epprof_nb.analysis.base.stack_lines import StackLines
from epprof_nb.analysis.base.tasks_of_ops import task_rows, threads_in_tasks
from epprof_nb.analysis.base.wall_time import wall_of
from epprof_nb.analysis.findings.asked_savings import together
from epprof_nb.analysis.findings.finding import (
    MIN_GAIN_SHARE,
    Finding,
    capitalised,
    code,
    launcher_name,
    op_id_of,
    own_line_name,
    place_name,
    stack_of,
    unread_line_name,
)
from epprof_nb.analysis.findings.host_code_name import host_code_name
from epprof_nb.analysis.findings.host_waits import CALL_REMEDY
from epprof_nb.analysis.findings.idle_remedy import idle_remedy
from epprof_nb.analysis.frameworks.training_phases import is_of_type
from epprof_nb.analysis.onnx.profiler_slowdown import NOTABLE_SLOWDOWN, slowdown_at
from epprof_nb.analysis.utilisation.host_idle import held_time_of_host, host_idle
from epprof_nb.analysis.utilisation.idle_causes import LEAST_HELD_NS, launch_latency, split_by_cause
from epprof_nb.analysis.utilisation.idle_intervals import BEFORE, BETWEEN, idle_intervals
from epprof_nb.analysis.utilisation.late_launches import counted_as_launching
from epprof_nb.analysis.utilisation.sampled_host import sampled_host
from epprof_nb.analysis.utilisation.waiting_calls import waiting_call
from epprof_nb.analysis.utilisation.waits import find_waits
from epprof_nb.arrays.ancestors import nearest_ancestor
from epprof_nb.arrays.groups import group_codes, sum_by_group
from epprof_nb.arrays.ids import unique_values
from epprof_nb.arrays.intervals import covered_before, intersection, union
from epprof_nb.arrays.types import MISSING
from epprof_nb.util.format import duration, plural, three_digits

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.findings.asked_savings import Asking
    from epprof_nb.analysis.utilisation.host_idle import HostIdle
    from epprof_nb.analysis.utilisation.idle_intervals import IdleIntervals
    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.data.table import Table

_LEAST_NS = 10_000
"""Least idle time of a line: time stamps are not exact enough for less."""
_LEAST_ONCE_NS, _ONCE = 500_000, 3
"""Minimum idle time, ns, of a line with at most `_ONCE` gaps.

The first and last calls of a cell cost 60 to 565 us in 28 recorded cells, independent of what these
compute and of their duration. Without this bound, two of 28 cells without a cause have no finding;
with it, nine.
"""
_LONGER = 2
"""Minimum time before the first work, relative to the host's before later work of its line, to
count as time of first calls."""
_HOLDS_GIL = (
    "Make this work faster, or do it in another process: kernels of the host device are Python "
    "functions and wait for the GIL while it runs."
)
_POSITIONS = (" before its first work", "", " after its last work")
_MAIN_OP = 0.8
"""Minimum share of one op in the idle time of its line for the finding to name the op."""


def idle_gaps(index: ProfileIndex) -> Asking:
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
    is_other &= ~found.is_held | waits_for_data[found.op]
    found = found.take(np.flatnonzero(~is_other))
    least = max(MIN_GAIN_SHARE * wall_of(index.profile), _LEAST_NS)
    slowdown = _slowdowns(index, found.op)
    asking = []
    for of_line in _by_place(index, found, slowdown):
        rows = of_line[~_is_first_call(index, found.take(of_line))]
        of_place = found.take(rows)
        total = of_place.time.sum()
        if total < least or (len(rows) <= _ONCE and total < _LEAST_ONCE_NS):
            continue
        has_op = bool((of_place.op >= 0).any() or (of_place.line >= 0).any())
        # Idle time between work has a known cause only if the host ran one op, or none at all.
        between = of_place.idle.position == BETWEEN
        if has_op or not between.any() or not _open_ns(of_place, ops):
            asking.append(_finding(index, of_place, float(slowdown[rows[0]])))
    yield from together(asking)


def _is_first_call(index: ProfileIndex, found: HostIdle) -> BoolArray:
    """Return the mask of the gaps of a line that the first calls of a profile explain.

    Code that runs once has to make them. Before later work of the line, the host worked less.
    """
    is_first: BoolArray = found.idle.position == BEFORE
    # Of later gaps, the host worked for a part while the device was busy.
    later = (found.end - found.begun)[~is_first]
    usual = float(np.median(later)) if len(later) else 0.0
    is_first = is_first & (found.time < FIRST_WORK_NS) & (found.time > _LONGER * usual)
    if not is_first.any() or index.cached(is_measured):
        return np.zeros(len(is_first), np.bool_)
    return is_first


def _slowdowns(index: ProfileIndex, op: IntArray) -> npt.NDArray[np.float64]:
    """Return by which factor profiling slowed the run of each op."""
    if not index.profile.info.get("onnxruntime_stretch"):
        return np.ones(len(op))
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
    # What the host held by its own work is idle time of its line.
    held = np.where(index.cached(held_time_of_host), 0, split_by_cause(index, idle)["held"])
    # Work on a queue starts a little after the work before it, which no event explains.
    found = np.flatnonzero(held > max(launch_latency(index), LEAST_HELD_NS))
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
        devices = devices_phrase(index, idle.device[of_place].tolist())
        # Kernels of the host device are Python functions.
        holder = "an event or other work" + (
            "" if word == "GPU" else ", by the GIL or by other threads of the CPU"
        )
        waiting = _waiting_place(index, idle.take(np.array([longest])))
        # While the thread that launched waits, others may hold the GIL.
        spans = idle.end[of_place] - held[of_place], idle.end[of_place]
        sampled = MISSING if word == "GPU" else sampled_host(index, *spans)
        ran = f" while the host ran {host_code_name(index, sampled)}" if sampled >= 0 else ""
        yield Finding(
            f"{capitalised(devices)} idle {duration(total)} in {plural(len(of_place), 'gap')} "
            f"while launched work{f' of {where}' if where else ''} was held by {holder}"
            f"{ran}{f'; the host waited in {waiting}' if waiting else ''}.",
            total,
            int(idle.start[longest]),
            int(idle.end[longest]),
            kind="held work",
            remedy="Launch what it waits for earlier, or remove a dependency that is not needed."
            if sampled < 0
            else _HOLDS_GIL,
            op_id=op_id_of(index, launcher),
            stack_id=stack if sampled < 0 else sampled,
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


def _finding(index: ProfileIndex, found: HostIdle, slowdown: float) -> Asking:
    devices = devices_phrase(index, found.idle.device.tolist())
    starts, ends = _host_times(index, found)
    total = min(int(found.time.sum()), int((ends - starts).sum()))  # devices may idle together
    held = min(int(found.time[found.is_held].sum()), total)
    longest = int(found.time.argmax())
    sampled = sampled_host(index, starts, ends)
    awaited = 2 * held < total and _is_awaited(index, found, longest)
    if awaited and _calls(index, sampled, int(found.idle.next_row[longest])):
        sampled = MISSING  # the event loop ran there, while the coroutine was suspended
    awaited &= sampled == MISSING
    host_op = host_code_name(index, sampled) or _host_op(index, found)
    call = waiting_call(index, starts, ends, sampled) if sampled >= 0 else None
    text = f"{capitalised(devices)} idle {duration(total)}{_when(found)}"
    if call:
        text += f" while {host_op} waited in {code(call)}"
    elif host_op:
        text += f" while the host {'waited in' if awaited else 'ran'} {host_op}"
    elif not _open_ns(found, index.profile.tables["ops"]):
        text += " while no op was open on the host"
    if slowdown >= NOTABLE_SLOWDOWN:
        text += f"; profiling slowed it by {three_digits(slowdown)}x"
    remedy, low, gain, high = _HOLDS_GIL, 0, 0, 0
    if not found.is_held.all():
        own = found.take(np.flatnonzero(~found.is_held))
        told = yield from idle_remedy(index, own, total - held, slowdown, awaited=awaited)
        remedy, low, gain, high = told if held < told.gain else (_HOLDS_GIL, *told[1:])
    if call:
        remedy = CALL_REMEDY
    gain, high = gain + held, high + held
    ops = np.append(index.profile.tables["ops"]["op_id"], MISSING)[found.op]
    own_ops = np.unique(found.op[found.op >= 0])
    # The work that ends each gap shows it, unless an op was open in this gap only.
    work = np.unique(found.idle.next_row)
    has_ops = len(own_ops) >= len(work)
    at = None
    if sampled < 0 and found.line[longest] >= 0:
        (file,) = found.file.take(np.array([longest])).to_list()
        at = (file or "", int(found.line[longest]))
    yield Finding(
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


def _host_times(index: ProfileIndex, found: HostIdle) -> tuple[IntArray, IntArray]:
    """Return when the host worked: disjoint, ascending starts and ends, ns."""
    times = []
    for thread in unique_values(found.thread):
        rows = found.thread == thread
        of_thread = union(found.start[rows], found.end[rows])
        tasks = index.cached(threads_in_tasks).get(thread)
        times.append(intersection(of_thread, tasks) if tasks else of_thread)
    return union(*map(np.concatenate, zip(*times, strict=True)))


def _is_awaited(index: ProfileIndex, found: HostIdle, longest: int) -> bool:
    """Return whether a coroutine was suspended at the line of the longest interval."""
    rows = np.array([longest])
    if found.line[longest] >= 0:
        (file,), line = found.file.take(rows).to_list(), found.line[rows]
    else:
        cells, line = lines_at(index, np.array([MISSING]), found.op[rows])
        (file,) = cells.to_list()
    return bool(line[0] >= 0) and awaits(index.profile.sources.get(file or "", ""), int(line[0]))


def _calls(index: ProfileIndex, frame: int, work: int) -> bool:
    """Return whether a frame called, over others, the user's line that launched some work."""
    lines = index.cached(StackLines)
    launcher = int(lines.own[lines.of_activities()[work]])
    is_frame = np.arange(len(lines)) == frame
    return frame not in (MISSING, launcher) and bool(
        launcher >= 0 and nearest_ancestor(lines.parent, is_frame)[launcher] >= 0
    )


def _when(found: HostIdle) -> str:
    """Return the number and median of the gaps, and whether there is idle time around all work."""
    position = found.idle.position
    times = found.time[position == BETWEEN]
    its = "its" if len(unique_values(found.idle.device)) == 1 else "their"
    positions = [code_ for code_ in unique_values(position) if code_ != BETWEEN]
    around = [_POSITIONS[code_].replace("its", its) for code_ in positions]
    text = ""
    if len(times) > 1:
        median = duration(float(np.median(times)))
        text = f" in {plural(len(times), 'gap')} of {median} (median)"
    elif len(times) and around:
        text = " in 1 gap"
    return text + (" and" if text and around else "") + " and".join(around)


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
        main = int(found.op[name == code_][0])
        if index.cached(task_rows)[main] >= 0:
            return place_name(index, main)
        if statement < 0:
            return code(text) if text else ""
        line = int(ops["line"][statement])
        if text != f"line {line}":  # else its source is not in its name
            (cell,) = ops.names("cell").take(slice(statement, statement + 1)).to_list()
            return unread_line_name(profile, cell, line, text)
    return place_name(index, statement)


def _open_ns(found: HostIdle, ops: Table) -> int:
    """Return for how much of the gaps any op was open, ns."""
    is_open = union(ops["start_ns"], ops["end_ns"])
    times = np.stack([found.idle.start, found.idle.end])
    return int(np.diff(covered_before(*is_open, times), axis=0).sum())
