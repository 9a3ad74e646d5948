"""Finding on the function that takes most of the host's time, in profiles without device work."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epprof_nb.analysis.added_time.added_time import added_time, added_to_ops
from epprof_nb.analysis.base.between_lines import function_lines
from epprof_nb.analysis.base.busiest_line import busiest_line
from epprof_nb.analysis.base.op_status import has_host_time
from epprof_nb.analysis.base.source_text import source_line
from epprof_nb.analysis.base.stack_lines import StackLines, enclosing_function, short_function
from epprof_nb.analysis.base.wall_time import wall_of
from epprof_nb.analysis.findings.finding import (
    Finding,
    capitalised,
    code,
    launcher_name,
    without_added,
)
from epprof_nb.analysis.findings.host_code_name import host_code_name
from epprof_nb.analysis.findings.host_waits import (
    WAITS,
    mostly_waited,
    wait_remedy,
)
from epprof_nb.analysis.findings.hot_shares import HOT_ON_HOST
from epprof_nb.analysis.findings.known_waits import wait_of_function
from epprof_nb.analysis.findings.rules.host_work.imports import import_statements
from epprof_nb.analysis.frameworks.training_phases import is_of_type
from epprof_nb.analysis.utilisation.blocking_calls import is_wait
from epprof_nb.analysis.utilisation.sampled_host import (
    functions_of_host,
    host_activity,
    main_threads,
)
from epprof_nb.arrays.intervals import complement, length, union_of
from epprof_nb.arrays.types import MISSING
from epprof_nb.util.format import base_name, duration, percent, plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import BoolArray, IntArray

_LEAST_SHARE, _ERRORS = 0.2, 3.0
"""Minimum lower bound of the share, and its distance from the share in standard errors: 14 samples
of 30 and 33 of 100 reach it."""
MIN_SAMPLES = 30
"""Minimum number of samples: 95 % of shares of 60 % are within 17 points then, of 3 samples 50."""
_PRECISE, _ERRORS_OF_RANGE = 0.1, 1.96
"""Distance from a share up to which its range, of 95 %, is not stated."""
_REMEDY = (
    "Make this function faster, call it less often, or do its work in parallel, in other processes."
)


def hot_function(index: ProfileIndex) -> Iterator[Finding]:
    """Yield a finding on the innermost function of the user's code with most samples.

    Time that other findings are on does not count: in waits, data loaders, imports and the garbage
    collector. Code outside of functions has findings on its lines.
    """
    wall_ns = wall_of(index.profile)
    start, end = time_without_findings(index)
    found = functions_of_host(index, start, end)
    of_function = are_functions(index, found.stack)
    if not of_function.any():
        return
    top = int(of_function.argmax())  # the first one has most
    stack, part = int(found.stack[top]), length(start, end) / wall_ns
    of_samples, count = float(found.share[top]), int(found.samples.sum())
    share = part * of_samples
    least = part * _interval(of_samples, count, _ERRORS)[0]
    if count < MIN_SAMPLES or share < HOT_ON_HOST or least < _LEAST_SHARE:
        return
    bounds = [part * bound for bound in _interval(of_samples, count, _ERRORS_OF_RANGE)]
    place = _place(index, stack, start, end)
    added = index.cached(added_time)
    more_ns = min(_added_ns(index, stack, share), share * wall_ns)
    unprofiled_ns = wall_ns - (added.total_ns if added else 0)
    ns, low_ns, high_ns = (
        min(max(one * wall_ns - more_ns, 0), unprofiled_ns) for one in (share, *bounds)
    )
    if ns < HOT_ON_HOST * unprofiled_ns:
        return
    shown = percent(ns / unprofiled_ns)
    if max(high_ns - ns, ns - low_ns) > _PRECISE * unprofiled_ns:
        low, high = low_ns / unprofiled_ns, high_ns / unprofiled_ns
        shown = f"about {shown} ({100 * low:.0f} to {percent(high)})"
    known = wait_of_function(index, stack, start, end, share * wall_ns)
    waited = known is None and mostly_waited(index, int(share * wall_ns))
    remedy = wait_remedy(index) if waited else _REMEDY
    yield Finding(
        f"{capitalised(place.name)} took {shown} of the host's time "
        f"({duration(ns)}, in {plural(int(found.samples[top]), 'sample')}"
        f"{without_added(share * wall_ns, more_ns)})"
        f"{place.detail}{known.text if known else WAITS if waited else ''}.",
        int(ns),
        0,
        wall_ns,
        kind="hot function",
        remedy=known.remedy if known else remedy,
        stack_id=stack,
        at=place.at,
        table="ops",
        is_unprofiled=True,
        is_wait=known is not None or waited,
    )


def time_without_findings(index: ProfileIndex) -> tuple[IntArray, IntArray]:
    """Return the intervals of the wall time in which samples count."""
    return complement(*_counted_elsewhere(index), 0, wall_of(index.profile))


def are_functions(index: ProfileIndex, stack: IntArray) -> BoolArray:
    """Return which frames are those of functions; code outside of functions has statements."""
    lines = index.cached(StackLines)
    if not len(lines):
        return np.zeros(len(stack), np.bool_)
    names = lines.function.take(np.maximum(stack, 0)).to_list()
    found = np.array([name not in (None, "", "<module>") for name in names], np.bool_)
    return found & (stack >= 0)


class _Place(NamedTuple):
    """Code to change: the name of the function, where most of its time is, and file and line.

    ``at`` is None if these are those of the stack.
    """

    name: str
    detail: str
    at: tuple[str, int] | None


def _added_ns(index: ProfileIndex, stack: int, share: float) -> float:
    """Return what profiling added to a function: to its statements, or its share of the time."""
    added, lines, ops = (
        index.cached(added_time),
        index.cached(StackLines),
        index.profile.tables["ops"],
    )
    if added is None:
        return 0.0
    file, _ = _file_and_function(lines, stack)
    inside = function_lines(index.profile.sources.get(file, ""), int(lines.line[stack]))
    is_own = ops.names("cell").equals(file) & np.isin(ops["line"], inside)
    if not is_own.any():
        return share * added.total_ns
    is_own = np.append(is_own, False)[index.statement]
    is_own &= np.isin(ops["thread_id"], index.cached(main_threads))
    return float(index.cached(added_to_ops).sum(where=is_own))


def _place(index: ProfileIndex, stack: int, start: IntArray, end: IntArray) -> _Place:
    """Return the busiest line of a function.

    Samples in the line of the ``def`` are of its calls: then it is the line of the caller.
    """
    lines = index.cached(StackLines)
    file, function = _file_and_function(lines, stack)
    text = index.profile.sources.get(file, "")
    found = host_activity(index, start, end)
    shares: dict[int, float] = {}
    for row, share in zip(found.stack.tolist(), found.share.tolist(), strict=True):
        if row >= 0 and _file_and_function(lines, row) == (file, function):
            line = int(lines.line[row])
            shares[line] = shares.get(line, 0.0) + share
    busiest = busiest_line(text, shares)
    short = short_function(function)
    if busiest is None:
        caller = int(lines.own[lines.parent[stack]]) if lines.parent[stack] >= 0 else MISSING
        name = host_code_name(index, stack)
        if caller < 0:
            return _Place(name, "", None)
        where = launcher_name(index, caller, MISSING)
        called = (_file_and_function(lines, caller)[0], int(lines.line[caller]))
        return _Place(name, f", most of it to begin and end its calls, by {where}", called)
    line, loop = busiest
    source = source_line(index.profile, file, line)
    if short == "<module>":
        name = launcher_name(index, stack, MISSING)
        return _Place(name, f", most of it in its {loop.kind}" if loop else "", None)
    name = f"{code(short)} ({base_name(file)}:{line})"
    detail = f", most of it at {code(source)}" if source else ""
    if loop is not None and source:
        detail = f", most of it in the {loop.kind} at {code(source)}"
        if line != loop.line:
            header = code(source_line(index.profile, file, loop.line))
            detail = f", most of it at {code(source)} in the loop at line {loop.line} ({header})"
    return _Place(name, detail, (file, line))


def _file_and_function(lines: StackLines, stack: int) -> tuple[str, str]:
    """Return file and function of a frame; of a loop in an expression, the function around it."""
    at = slice(stack, stack + 1)
    (file,), (function,) = (names.take(at).to_list() for names in (lines.file, lines.function))
    return file or "", enclosing_function(function or "")


def _counted_elsewhere(index: ProfileIndex) -> tuple[IntArray, IntArray]:
    """Return the time of the sampled threads that other findings are on."""
    ops, calls = (index.profile.tables[name] for name in ("ops", "api_calls"))
    # Pauses of the garbage collector that have a row of their own.
    pauses = ops.names("op_type").equals("gc") & (ops["count"] == 1)
    named = np.flatnonzero((is_of_type(index, "data") | pauses) & has_host_time(ops))
    found = []
    for table, anywhere in (
        (calls, np.flatnonzero(index.cached(is_wait))),
        (ops, np.append(named, index.cached(import_statements))),
    ):
        of_thread = np.isin(table["thread_id"][anywhere], index.cached(main_threads))
        rows = anywhere[of_thread]
        found.append((table["start_ns"][rows], table["end_ns"][rows]))
    return union_of(found)


def _interval(share: float, samples: int, errors: float) -> tuple[float, float]:
    """Return the bounds of a share, by Wilson's interval of some standard errors."""
    z = errors**2 / samples
    spread = float(np.sqrt(z * (share * (1 - share) + z / 4)))
    return (share + z / 2 - spread) / (1 + z), (share + z / 2 + spread) / (1 + z)
