"""Finding on many small copies at one place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.copies import copied_bytes
from epprof_nb.analysis.base.device_work import MEMCPY
from epprof_nb.analysis.base.lines_of_work import Places
from epprof_nb.analysis.critical_path.changed_durations import Removed
from epprof_nb.analysis.findings.finding import Finding, launcher_name, op_id_of, stack_of
from epprof_nb.analysis.onnx.fallback import FROM_HOST, TO_HOST
from epprof_nb.analysis.utilisation.exposed_copies import exposed
from epprof_nb.arrays.chunks import chunks
from epprof_nb.arrays.groups import sum_by_group
from epprof_nb.arrays.ids import unique_values
from epprof_nb.arrays.types import MISSING
from epprof_nb.util.format import duration, plural, size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.findings.asked_savings import Asking
    from epprof_nb.arrays.types import BoolArray, IntArray

SMALL_BYTES, MANY_COPIES = 65_536, 50
"""Maximum size of a small copy, in bytes, and minimum number of them at one place."""
_GATHERED_BYTES_PER_S = 2e9
"""Minimum rate at which small values are gathered on one side and copied at once."""
_LEAST, _SPREAD = 0.5, 1.25
"""Bounds of the gain in other runs, relative to the gain in the profile."""


def small_copies(index: ProfileIndex) -> Asking:
    """Yield a finding on many small copies at one place."""
    activities, places = index.profile.tables["activities"], index.cached(Places)
    rows = np.flatnonzero(index.kinds == MEMCPY)
    crossing = activities.names("copy_kind")
    rows = rows[(crossing.equals("HtoD") | crossing.equals("DtoH"))[rows]]
    # Copy nodes of ONNX Runtime cannot be gathered: `cpu_fallback` finds what they serve.
    op_type = index.profile.tables["ops"].names("op_type")
    is_node = op_type.equals(TO_HOST) | op_type.equals(FROM_HOST)
    rows = rows[~np.append(is_node, False)[index.activity_op[rows]]]
    rows = rows[copied_bytes(index, rows) <= SMALL_BYTES]
    if len(rows) < MANY_COPIES:
        return
    place = places.of_activities(rows)
    time = exposed(index, rows)
    by_place = sum_by_group(place, time, places.count + 1)[:-1]
    top = int(by_place.argmax())
    of_top = rows[place == top]
    if len(of_top) < MANY_COPIES:
        return
    total = int(by_place[top])
    op = int(index.activity_op[of_top[0]])
    stack = stack_of(index, "activities", int(of_top[0]))
    where = launcher_name(index, stack, op)
    copied = int(copied_bytes(index, of_top).sum())
    # One copy of all bytes takes little longer than one small copy.
    alone = total - total // len(of_top)
    between = _between(index, of_top)
    on_host = int((between.end - between.start).sum())
    (saved,) = yield [between]
    saved -= int(copied / _GATHERED_BYTES_PER_S * 1e9)
    gain = max(alone, saved)
    host = f", {duration(on_host)} on the host" if on_host > total else ""
    yield Finding(
        f"{plural(len(of_top), 'small copy', 'small copies')} ({size(copied)} in all)"
        f"{f' in {where}' if where else ''} took {duration(total)}{host}.",
        gain,
        int(activities["start_ns"][of_top].min()),
        int(activities["end_ns"][of_top].max()),
        kind="small copies",
        remedy="Gather these values and copy them together.",
        gain_low_ns=int(_LEAST * gain),
        gain_high_ns=max(total, int(_SPREAD * saved)),
        op_id=op_id_of(index, op),
        stack_id=stack,
        rows=lambda: of_top,
        spans=lambda: (between.start, between.end),
    )


def _between(index: ProfileIndex, copies: IntArray) -> Removed:
    """Return all but the first of copies that follow each other without other launches between.

    The host's time between the ends of two such calls is removed, too: the host waits, allocates
    and prepares the next copy. One launch of their line may follow each copy, for example one that
    puts a value into its place.
    """
    tables = index.profile.tables
    activities, calls = tables["activities"], tables["api_calls"]
    # The copy of each call; the last element is for copies without a recorded call.
    copy_of = np.full(len(calls) + 1, MISSING, np.int64)
    copy_of[index.calls.rows(activities["correlation_id"][copies])] = copies
    copy_of[-1] = MISSING
    launches = np.zeros(len(calls) + 1, np.bool_)
    for _, of_work in _calls_of_work(index):
        launches[of_work] = True
    is_copy = (copy_of >= 0) & launches
    all_copies = np.flatnonzero(is_copy)
    pairs = [np.empty((2, 0), np.int64)]
    for thread in unique_values(calls["thread_id"][all_copies]):
        rows = index.calls_of_thread(thread)
        launching = rows[launches[rows]]
        at = np.flatnonzero(is_copy[launching])
        follows = np.diff(at) == 1
        has_one = np.flatnonzero(np.diff(at) == 2)
        between = launching[at[has_one] + 1]
        follows[has_one] = _puts_in_place(index, all_copies, between)
        pairs.append(np.stack([launching[at[:-1][follows]], launching[at[1:][follows]]]))
    before, after = np.concatenate(pairs, axis=1)
    return Removed(
        activities=copy_of[after],
        thread=calls["thread_id"][after],
        start=calls["end_ns"][before],
        end=np.maximum(calls["end_ns"][after], calls["end_ns"][before]),
    )


def _calls_of_work(index: ProfileIndex) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield rows of device work, and of their calls."""
    correlation = index.profile.tables["activities"]["correlation_id"]
    for chunk in chunks(len(correlation)):
        rows = np.flatnonzero(index.is_device_work[chunk]) + chunk.start
        yield rows, index.calls.rows(correlation[rows])


def _puts_in_place(index: ProfileIndex, copies: IntArray, calls: IntArray) -> BoolArray:
    """Return which calls launch work at a place from which copies are launched, too.

    `copies` are calls.
    """
    if not len(calls):
        return np.zeros(0, np.bool_)
    is_asked = np.zeros(len(index.profile.tables["api_calls"]) + 1, np.bool_)
    is_asked[copies] = is_asked[calls] = True
    place = np.full(len(is_asked), MISSING, np.int64)
    for rows, of_rows in _calls_of_work(index):
        asked = is_asked[of_rows]
        place[of_rows[asked]] = index.cached(Places).of_activities(rows[asked])
    is_place = np.zeros(index.cached(Places).count + 1, np.bool_)
    is_place[place[copies]] = True
    found: BoolArray = is_place[place[calls]]
    return found
