"""Findings on iterations that took longer: warm-up, outliers and drift, with the GPU's reasons."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.analysis.base.devices import device_word
from epprof_nb.analysis.base.first_calls import preparation_within
from epprof_nb.analysis.base.missing_records import lacks_records
from epprof_nb.analysis.findings.finding import LATER_STEPS, Finding, is_cell, op_id_of, place_name
from epprof_nb.analysis.findings.rules.garbage_collection import COLLECT_LESS, pauses
from epprof_nb.analysis.steps.iteration_events import collecting, recording
from epprof_nb.analysis.steps.iterations import iterations
from epprof_nb.analysis.steps.steadiness import OUTLIER, STEADY, WARM_UP, drift, steadiness_table
from epprof_nb.analysis.utilisation.overlap import union_of
from epprof_nb.arrays.intervals import complement, union
from epprof_nb.util.format import duration, percent, plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.base.result_table import ResultTable
    from epprof_nb.analysis.findings.finding import EvidenceTable
    from epprof_nb.arrays.types import IntArray

_SLOW_CLOCK = "Lock the clocks to compare runs (`nvidia-smi --lock-gpu-clocks`), and cool the GPU."
_LOOK = "Look for what else runs then: other processes, a clock that changes, other data."
_GROWTH = "Look for what grows: lists of tensors, memory, data that is kept."
_MIN_CLOCK_CHANGE = 0.02
_LEAST_EXCESS_NS = 10_000
"""Minimum mean excess of outlying iterations: below, time stamps and caches are as likely a cause
as other processes."""
_MAIN_REASON = 0.5
"""Minimum part of the excess of outlying iterations that a reason explains."""
_LIMITS = ("power", "thermal", "slowdown")
"""Parts of the names of NVML's clock events that say why a GPU is slow."""


def warm_up(index: ProfileIndex) -> Iterator[Finding]:
    """Yield a finding on the first iterations if they took longer than the steady ones."""
    found = _of_phase(index, WARM_UP)
    if found is None:
        return
    excess = int(found["excess_wall_ns"].sum())
    ends = found["start_ns"] + found["wall_ns"]
    excess -= int(preparation_within(index, found["start_ns"], ends).sum())
    if excess <= 0:
        return
    unit = index.cached(iterations).unit
    subject = f"The first {unit}" if len(found) == 1 else f"The first {len(found)} {unit}s"
    yield _finding(
        index,
        found,
        f"{subject}{_loop(index)} took {duration(excess)} longer than as many steady ones"
        f"{_where(index, found)}.",
        excess,
        kind="warm-up",
        remedy=without_warm_up(index),
    )


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
    if found is None:
        return
    excess = int(found["excess_wall_ns"].sum())
    # Without the profiler, the nodes of these runs are not recorded.
    by_recording = _excess_of(index, index.cached(recording))
    if excess < _LEAST_EXCESS_NS * len(found) or by_recording >= _MAIN_REASON * excess:
        return
    paused = _excess_of(index, index.cached(collecting))
    is_paused = paused >= _MAIN_REASON * excess
    reason = f", {duration(paused)} of it in garbage collection" if is_paused else ""
    unit = index.cached(iterations).unit
    numbers = ", ".join(str(number) for number in found["number"][:3].tolist())
    more = ", ..." if len(found) > 3 else ""
    yield _finding(
        index,
        found,
        f"{plural(len(found), unit)} ({numbers}{more}){_loop(index)} took {duration(excess)} "
        f"longer than as many steady ones{reason or _where(index, found)}.",
        excess,
        kind="outliers",
        remedy=COLLECT_LESS if is_paused else _LOOK,
        spans=partial(pauses, index) if is_paused else _idle_spans(index, found),
    )


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
    reason = gpu_change(index.profile.info) if index.is_device_work.any() else ""
    yield _finding(
        index,
        steady.take(slice(len(steady) // 2, None)),
        f"The {unit}s{_loop(index)} become slower: the last one took {percent(found.change)} "
        f"longer than the first steady one{f'; {reason}' if reason else ''}.",
        gain,
        kind="drift",
        remedy=_SLOW_CLOCK if reason else _GROWTH,
        low=low,
        high=high,
    )


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
    return (lambda: _idle_in(index, found)) if _state(index, found) == "idle" else None


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
    start, loop = int(slow["start_ns"][longest]), index.cached(iterations).loop
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
        op_id=op_id_of(index, loop),
        table=table,
        rows=lambda: _started_in(index, table, slow),
    )


def _started_in(index: ProfileIndex, table: EvidenceTable, slow: ResultTable) -> IntArray:
    """Return the rows of a table that started in some iterations, which do not overlap."""
    times = index.profile.tables[table]["start_ns"]
    at = np.searchsorted(slow["start_ns"], times, "right") - 1
    return np.flatnonzero((at >= 0) & (times < (slow["start_ns"] + slow["wall_ns"])[at]))


def _loop(index: ProfileIndex) -> str:
    """Return the name of the loop of the iterations, as `` of line 3``; empty for repeats."""
    loop = index.cached(iterations).loop
    return f" of {place_name(index, loop)}" if loop >= 0 else ""


def gpu_change(info: dict[str, Any]) -> str:
    """Return how a GPU's clock fell during the profile and why; empty if it did not.

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
        if new < old * (1 - _MIN_CLOCK_CHANGE):
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
