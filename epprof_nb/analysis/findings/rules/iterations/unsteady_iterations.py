"""Findings on iterations that took longer: warm-up, outliers and drift, with the GPU's reasons."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.analysis.base.devices import device_word, used_gpu
from epprof_nb.analysis.base.first_calls import FIRST_TURNS_NS, is_measured, preparation_within
from epprof_nb.analysis.base.missing_records import lacks_records
from epprof_nb.analysis.base.processor_use import share_kept_from_cores
from epprof_nb.analysis.findings.finding import (
    LATER_STEPS,
    Finding,
    computed_later,
    is_cell,
    launcher_name,
    op_id_of,
    place_name,
)
from epprof_nb.analysis.findings.growing_work import growth_of_work
from epprof_nb.analysis.findings.host_waits import is_wait_for_thread, waits_for_others
from epprof_nb.analysis.findings.rules.memory.garbage_collection import COLLECT_LESS, pauses
from epprof_nb.analysis.steps.causes_of_slow_iterations import collecting, recording
from epprof_nb.analysis.steps.iterations import iterations
from epprof_nb.analysis.steps.queued_work import queued_work
from epprof_nb.analysis.steps.statements_of_turns import statements_of_turns
from epprof_nb.analysis.steps.steadiness import OUTLIER, STEADY, WARM_UP, drift, steadiness_table
from epprof_nb.arrays.intervals import complement, union, union_of
from epprof_nb.arrays.types import MISSING
from epprof_nb.util.format import duration, percent, plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.base.result_table import ResultTable
    from epprof_nb.analysis.findings.finding import EvidenceTable
    from epprof_nb.arrays.types import IntArray

_SLOW_CLOCK = "Lock the clocks to compare runs (`nvidia-smi --lock-gpu-clocks`), and cool the GPU."
_LOOK = "Look for what else runs then: other processes, a clock that changes, other data."
_LOOK_AT_PERIOD = "Look for what the code does once in {period} {unit}s."
_LEAST_PERIODS = 3
"""Number of outlying iterations from which equal distances between them are not chance."""
_GROWTH = (
    "Look for what grows: the data of a loop or comprehension inside, lists of tensors, memory, "
    "stored data."
)
_MORE_STATEMENTS = (
    "A loop inside runs more often in each iteration. If that is meant, an iteration has more work "
    "and is no slower: make the work of the inner loop faster."
)
_REPEATED_WORK = (
    "Look for work of earlier iterations that runs again: detach what an iteration passes on to "
    "the next (`.detach()`), so that its backward pass ends there, and empty lists that grow."
)
_MIN_SETTLING, _LAST = 0.1, 3
"""Minimum change of iterations that become faster, as for a warm-up, and number of last ones."""
_MIN_CLOCK_CHANGE = 0.02
_LEAST_EXCESS_NS = 10_000
"""Minimum mean excess of outlying iterations: below, time stamps and caches are as likely a cause
as other processes."""
_SLOW_STATEMENTS = 2.0
"""Minimum ratio of an iteration's time per statement to the median one, if their number differs."""
_MAIN_REASON = 0.5
"""Minimum part of the excess of outlying iterations that a reason explains."""
_LIMITS = ("power", "thermal", "slowdown")
"""Parts of the names of NVML's clock events that say why a GPU is slow."""


def warm_up(index: ProfileIndex) -> Iterator[Finding]:
    """Yield a finding on the first iterations if they took longer, or if all become faster."""
    found, settling = _of_phase(index, WARM_UP), _settling(index)
    if (found is None and not settling) or index.cached(statements_of_turns) is not None:
        return
    unit, clock = index.cached(iterations).unit, ""
    if found is None:
        found = index.cached(steadiness_table)
        last = int(np.median(found["wall_ns"][-_LAST:]))
        excess = int(np.maximum(found["wall_ns"] - last, 0).sum())
        text = f"The {unit}s{_loop(index)} become faster until the end, by {percent(settling)}"
    else:
        excess = int(found["excess_wall_ns"].sum())
        subject = f"The first {unit}" if len(found) == 1 else f"The first {len(found)} {unit}s"
        text = f"{subject}{_loop(index)} {_took_longer(excess, len(found))}{_where(index, found)}"
        if settling:
            text += f", and the others still become faster, by {percent(settling)}"
    if settling:
        text += ": no steady state was reached"
    if _state(index, found) == "busy" or (settling and index.is_device_work.any()):
        clock = gpu_change(index.profile.info, rising=True)
    ends = found["start_ns"] + found["wall_ns"]
    excess -= int(preparation_within(index, found["start_ns"], ends).sum())
    if excess <= 0 or (not settling and _is_first_call(index, found, excess)):
        return
    if waits_for_others(index, found["start_ns"], ends, excess):
        return
    yield _finding(
        index,
        found,
        f"{text}{f'; {clock}' if clock else ''}.",
        excess,
        kind="warm-up",
        remedy=_SLOW_CLOCK if clock else without_warm_up(index),
    )


def _is_first_call(index: ProfileIndex, found: ResultTable, excess: int) -> bool:
    """Return whether the first iterations only made the first calls of code that runs once."""
    is_short = excess < FIRST_TURNS_NS and _state(index, found) != "busy"
    return is_short and not index.cached(is_measured)


def _settling(index: ProfileIndex) -> float:
    """Return by which share the iterations become faster until the end; 0 if they do not."""
    steady = _of_phase(index, STEADY)
    found = None if steady is None else index.cached(drift)
    return -found.change if found is not None and found.high < -_MIN_SETTLING else 0.0


def without_warm_up(index: ProfileIndex) -> str:
    """Return how to leave a warm-up out of a measurement, and how to avoid it."""
    leave_out = (
        "To leave it out, run the cell before it is measured (`%%gpuprofile --warmup N`)"
        if is_cell(index.profile.info)
        else f"To leave it out, {LATER_STEPS}"
    )
    return f"{leave_out}; to avoid it, keep what is compiled, tuned and allocated."


def outliers(index: ProfileIndex) -> Iterator[Finding]:
    """Yield a finding on single iterations that took longer than the steady ones."""
    found = _of_phase(index, OUTLIER)
    if found is None or not len(found := _without_longer_ones(index, found)):
        return
    excess = int(found["excess_wall_ns"].sum())
    # Without the profiler, the nodes of these runs are not recorded.
    by_recording = _excess_of(index, index.cached(recording))
    if excess < _LEAST_EXCESS_NS * len(found) or by_recording >= _MAIN_REASON * excess:
        return
    queued = _excess_of(index, index.cached(queued_work))
    ends = found["start_ns"] + found["wall_ns"]
    if is_wait_for_thread(index, found["start_ns"], ends, excess):
        return
    if queued >= _MAIN_REASON * excess:
        return  # these iterations wait for what others launched
    paused = _excess_of(index, index.cached(collecting))
    is_paused = paused >= _MAIN_REASON * excess
    apart = np.unique(np.diff(found["number"]))
    is_periodic = len(found) >= _LEAST_PERIODS and len(apart) == 1 and apart[0] > 1
    is_kept = _kept_from_cores(index) >= _MAIN_REASON * excess
    if is_kept and not is_paused and not is_periodic:
        return
    reason = f", {duration(paused)} of it in garbage collection" if is_paused else ""
    unit = index.cached(iterations).unit
    numbers = ", ".join(str(number) for number in found["number"][:3].tolist())
    more = ", ..." if len(found) > 3 else ""
    look = _LOOK_AT_PERIOD.format(unit=unit, period=int(apart[0])) if is_periodic else _LOOK
    yield _finding(
        index,
        found,
        f"{plural(len(found), unit)} ({numbers}{more}){_loop(index)} "
        f"{_took_longer(excess, len(found))}{reason or _where(index, found)}.",
        excess - queued,
        kind="outliers",
        remedy=COLLECT_LESS if is_paused else look,
        spans=computed_later(index, pauses) if is_paused else _idle_spans(index, found),
    )


def _without_longer_ones(index: ProfileIndex, found: ResultTable) -> ResultTable:
    """Return the outlying iterations that did not only run more statements than others."""
    statements = index.cached(statements_of_turns)
    if statements is None:
        return found
    table = index.cached(steadiness_table)
    each = table["wall_ns"] / np.maximum(statements, 1)
    is_slow = each > _SLOW_STATEMENTS * np.median(each)
    return found.take(is_slow[table.names("phase").codes == OUTLIER])


def drifting(index: ProfileIndex) -> Iterator[Finding]:
    """Yield a finding if the iterations become slower and slower."""
    steady = _of_phase(index, STEADY)
    found = None if steady is None else index.cached(drift)
    if steady is None or found is None or found.change <= 0:
        return
    first = float(np.median(steady["wall_ns"])) / (1 + found.change / 2)
    # The time that exceeds the first iteration grows linearly.
    gain, low, high = (int(first * share * len(steady) / 2)
                       for share in (found.change, found.low, found.high))  # fmt: skip
    unit = index.cached(iterations).unit
    more = growth_of_work(index, steady)
    statements = index.cached(statements_of_turns)
    if not more and statements is None and low <= _kept_from_cores(index):
        return
    clock = gpu_change(index.profile.info) if index.is_device_work.any() and not more else ""
    ran = f"it ran {plural(int(statements[-1]), 'statement')}" if statements is not None else ""
    ran += f", the first one {int(statements[0]):,}" if statements is not None else ""
    reason = more or ran or clock
    remedy = (
        _REPEATED_WORK if more else _MORE_STATEMENTS if ran else _SLOW_CLOCK if clock else _GROWTH
    )
    yield _finding(
        index,
        steady.take(slice(len(steady) // 2, None)),
        f"The {unit}s{_loop(index)} become slower: the last one took {percent(found.change)} "
        f"longer than the first steady one{f'; {reason}' if reason else ''}.",
        gain,
        kind="drift",
        remedy=remedy,
        low=low,
        high=min(high, max(int(steady["wall_ns"].sum()), gain)),
    )


def _kept_from_cores(index: ProfileIndex) -> float:
    """Return how long other processes kept the iterations from a core, ns; 0 if a GPU was used.

    They may have done so at any time: in the later iterations only, or in single ones.
    """
    if used_gpu(index):  # it may have worked meanwhile
        return 0.0
    wall_ns = index.cached(steadiness_table)["wall_ns"].sum()
    return share_kept_from_cores(index.profile.info) * float(wall_ns)


def _of_phase(index: ProfileIndex, phase: int) -> ResultTable | None:
    """Return the iterations of a phase; None if there are none."""
    table = index.cached(steadiness_table)
    of_phase = table.names("phase").codes == phase
    return table.take(of_phase) if of_phase.any() else None


def _excess_of(index: ProfileIndex, part: IntArray) -> int:
    """Return how much more of a part of the time outlying iterations have than steady ones, ns."""
    phase = index.cached(steadiness_table).names("phase").codes
    of_outliers = part[phase == OUTLIER]
    typical = int(np.median(part[phase == STEADY])) if (phase == STEADY).any() else 0
    return max(int(of_outliers.sum()) - typical * len(of_outliers), 0)


def _took_longer(excess_ns: int, count: int) -> str:
    """Return how much longer some iterations took than steady ones."""
    if count == 1:
        return f"took {duration(excess_ns)} longer than a steady one"
    return f"took {duration(excess_ns)} longer, in all, than {count:,} steady ones"


def _where(index: ProfileIndex, found: ResultTable) -> str:
    """Return whether the devices were busy or idle in most of the excess; empty if neither."""
    state, word = _state(index, found), device_word(index.profile.info)
    return f", mostly while the {word} was {state}" if state else ""


def _state(index: ProfileIndex, found: ResultTable) -> str:
    """Return ``busy`` or ``idle``, as the devices were in most of the excess.

    Empty without device work, or if records of it are missing.
    """
    if not index.is_device_work.any() or index.cached(lacks_records):
        return ""
    excess = int(found["excess_wall_ns"].sum())
    states = ("busy", "idle")
    return next((s for s in states if 2 * int(found[f"excess_{s}_ns"].sum()) > excess), "")


def _idle_spans(
    index: ProfileIndex, found: ResultTable
) -> Callable[[], tuple[IntArray, IntArray]] | None:
    """Return a function that computes idle times, if these made the iterations slow, else None."""
    return computed_later(index, _idle_in, found) if _state(index, found) == "idle" else None


def _idle_in(index: ProfileIndex, found: ResultTable) -> tuple[IntArray, IntArray]:
    """Return when no device was busy in some iterations, as starts and ends."""
    starts, ends = union(found["start_ns"], found["start_ns"] + found["wall_ns"])
    span = int(starts[0]), int(ends[-1])
    other = complement(starts, ends, *span)
    return complement(*union_of([index.busy(), other]), *span)


def _finding(
    index: ProfileIndex,
    slow: ResultTable,
    text: str,
    gain: int,
    *,
    kind: str,
    remedy: str,
    low: int = 0,
    high: int | None = None,
    spans: Callable[[], tuple[IntArray, IntArray]] | None = None,
) -> Finding:
    longest = int(slow["wall_ns"].argmax())
    start, loop = int(slow["start_ns"][longest]), index.cached(iterations)
    table: EvidenceTable = "activities" if index.is_device_work.any() else "ops"
    return Finding(
        text,
        gain,
        start,
        start + int(slow["wall_ns"][longest]),
        kind=kind,
        remedy=remedy,
        gain_low_ns=low,
        gain_high_ns=gain if high is None else high,
        spans=spans,
        op_id=op_id_of(index, loop.loop),
        stack_id=loop.stack,
        table=table,
        rows=computed_later(index, _started_in, table, slow),
    )


def _started_in(index: ProfileIndex, table: EvidenceTable, slow: ResultTable) -> IntArray:
    """Return the rows of a table that started in some iterations, which do not overlap."""
    times = index.profile.tables[table]["start_ns"]
    at = np.searchsorted(slow["start_ns"], times, "right") - 1
    return np.flatnonzero((at >= 0) & (times < (slow["start_ns"] + slow["wall_ns"])[at]))


def _loop(index: ProfileIndex) -> str:
    """Return the name of the loop of the iterations, as `` of line 3``; empty for repeats."""
    found = index.cached(iterations)
    if found.stack >= 0:
        return f" of the loop at {launcher_name(index, found.stack, MISSING)}"
    return f" of {place_name(index, found.loop)}" if found.loop >= 0 else ""


def gpu_change(info: dict[str, Any], *, rising: bool = False) -> str:
    """Return how a GPU's clock fell during the profile and why, or how it rose; empty if not.

    Examples
    --------
    >>> before, after = {"sm_clock_mhz": 1980}, {"sm_clock_mhz": 1500, "temperature_c": 88}
    >>> gpu_change({"gpu": {"before": {"gpus": [before]}, "after": {"gpus": [after]}}})
    'the SM clock fell from 1,980 to 1,500 MHz (88 °C)'
    """
    states = info.get("gpu")
    if not isinstance(states, dict):
        return ""
    for before, after in zip(_gpus(states.get("before")), _gpus(states.get("after")), strict=False):
        old, new = before.get("sm_clock_mhz"), after.get("sm_clock_mhz")
        if not isinstance(old, int | float) or not isinstance(new, int | float) or old <= 0:
            continue
        if rising and new * (1 - _MIN_CLOCK_CHANGE) > old:
            return f"the SM clock rose from {old:,.0f} to {new:,.0f} MHz"
        if not rising and new < old * (1 - _MIN_CLOCK_CHANGE):
            return f"the SM clock fell from {old:,.0f} to {new:,.0f} MHz{_reasons(after)}"
    return ""


def _gpus(state: object) -> list[dict[str, Any]]:
    gpus = state.get("gpus") if isinstance(state, dict) else None
    return [gpu for gpu in gpus if isinstance(gpu, dict)] if isinstance(gpus, list) else []


def _reasons(gpu: dict[str, Any]) -> str:
    """Return temperature, power and clock events of a GPU in parentheses; empty for none."""
    parts = []
    for key, unit in (("temperature_c", "°C"), ("power_w", "W")):
        value = gpu.get(key)
        if isinstance(value, int | float):
            parts.append(f"{value:,.0f} {unit}")
    events = gpu.get("clock_events")
    parts += [
        event
        for event in (events if isinstance(events, list) else ())
        if isinstance(event, str) and any(word in event for word in _LIMITS)
    ]
    return f" ({', '.join(parts)})" if parts else ""
