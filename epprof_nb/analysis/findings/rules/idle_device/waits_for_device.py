"""Findings on lines that make the host wait, so that it launches the next work late."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.device_work import MEMCPY
from epprof_nb.analysis.base.devices import device_word
from epprof_nb.analysis.base.first_calls import preparation_within
from epprof_nb.analysis.base.lines_of_work import Places, lines_at
from epprof_nb.analysis.base.source_text import source_line
from epprof_nb.analysis.base.wall_time import wall_of
from epprof_nb.analysis.critical_path.changed_durations import Removed
from epprof_nb.analysis.findings.asked_savings import together
from epprof_nb.analysis.findings.finding import (
    MIN_GAIN_SHARE,
    Finding,
    capitalised,
    computed_later,
    launcher_name,
    op_id_of,
    stack_of,
)
from epprof_nb.analysis.utilisation.blocking_reads import read_text, reads_of
from epprof_nb.analysis.utilisation.waiting_visits import visits
from epprof_nb.analysis.utilisation.waits import delay_launches, find_waits
from epprof_nb.arrays.chunks import chunks
from epprof_nb.arrays.groups import sum_by_group
from epprof_nb.arrays.ids import unique_values
from epprof_nb.arrays.intervals import clip_times, complement, union, union_of
from epprof_nb.arrays.positions import positions
from epprof_nb.arrays.stable_order import in_order
from epprof_nb.arrays.types import MISSING
from epprof_nb.util.format import duration, plural

if TYPE_CHECKING:
    from collections.abc import Generator

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.findings.asked_savings import Asking
    from epprof_nb.analysis.utilisation.waiting_visits import Visits
    from epprof_nb.analysis.utilisation.waits import Waits
    from epprof_nb.arrays.types import BoolArray, IntArray

_REMEDY = (
    "Read the value later, or less often, so that the next work is launched while the {word} is "
    "busy."
)
_REMEDY_OF_CALL = "Remove this wait, or wait less often: reading a result waits for it anyway."
_REMEDY_OF_SIZE = (
    "Do without the value on the host: use a mask or `where` in place of boolean indexing. Its "
    "size is known, so nothing waits for the {word}."
)
_REMEDY_OF_RETURN = "Compute this on the {word}, so that nothing is copied to the host and back."
_REMEDY_OF_RUNS = (
    "Keep the outputs on the {word} (`run_with_iobinding`) and read them later, or run the session "
    "from several threads, so that the next work is launched while the {word} is busy."
)
"""A run of an ONNX Runtime session waits for the outputs that it returns as NumPy arrays."""
_BETWEEN_RUNS = 1.05
"""The idle time of another run can be as many times as long."""
_SPREAD = 1.5
"""Maximum ratio of the host's time at a line in other runs to its time in the profile."""
_LEAST, _LEAST_OF_WAITS = 0.5, 0.75
"""Minimum of this ratio; and for waits alone, the last of which may remain."""
_SYNCHRONISING = (
    # A dict also has a method `get`, but it takes a key.
    re.compile(r"\.(?:item|cpu|numpy|tolist|synchronize|block_until_ready)\(|\.get\(\)"),
    re.compile(r"\b(?:to_host|asnumpy|synchronize)\("),
    re.compile(r"\b(?:float|int|bool|print)\("),
)
"""Calls that copy a value to the host and wait for it, the most specific ones first."""


def waiting_lines(index: ProfileIndex) -> Asking:
    """Yield a finding on each place whose waits make the code slower."""
    found, places = index.cached(find_waits), index.cached(Places)
    place = places.of_calls(found.call)
    is_read = ~_of_inputs(index, found.call)
    late = sum_by_group(place[is_read], _at_stake(found)[is_read], places.count + 1)[:-1]
    least = MIN_GAIN_SHARE * wall_of(index.profile)
    ends = index.profile.tables["api_calls"]["end_ns"][found.call]
    places_waiting = (
        np.flatnonzero((place == top) & is_read) for top in np.flatnonzero(late >= least).tolist()
    )
    yield from together(
        _finding(index, of_place)
        for of_place in places_waiting
        if delay_launches(index, ends[of_place])
    )


def _at_stake(found: Waits) -> IntArray:
    """Return the time of each wait and the idle time after it: more than it can save."""
    return found.wait + found.idle_after


def _of_inputs(index: ProfileIndex, calls: IntArray) -> BoolArray:
    """Return which waits are for a copy to the device: they end when it has read the memory."""
    tables = index.profile.tables
    is_launch, is_input = np.zeros((2, len(tables["api_calls"])), np.bool_)
    correlation = tables["activities"]["correlation_id"]
    of_input = tables["activities"].names("copy_kind").equals("HtoD")
    for chunk in chunks(len(correlation)):
        call = index.calls.rows(correlation[chunk])
        launched = np.flatnonzero(index.is_device_work[chunk] & (call != MISSING))
        is_launch[call[launched]] = True
        is_input[call[launched]] = of_input[chunk][launched]
    result = np.zeros(len(calls), np.bool_)
    threads, start = tables["api_calls"]["thread_id"], tables["api_calls"]["start_ns"]
    for thread in unique_values(threads[calls]):
        rows = np.flatnonzero(is_launch & (threads == thread))
        rows = in_order(rows, start[rows])
        of_thread = np.flatnonzero(threads[calls] == thread)
        last = positions(start[rows], start[calls[of_thread]], "right") - 1
        result[of_thread[last >= 0]] = is_input[rows[last[last >= 0]]]
    return result


def _finding(index: ProfileIndex, waits: IntArray) -> Asking:
    found, tables = index.cached(find_waits), index.profile.tables
    calls, activities = tables["api_calls"], tables["activities"]
    rows = found.call[waits]
    there = visits(index, rows)
    op, stack = int(index.call_op[rows[0]]), stack_of(index, "api_calls", int(rows[0]))
    word = device_word(index.profile.info)
    call = _call_of(index, op, stack)
    remedy = _remedy(index, rows, there, call)
    low, gain, high = yield from _gains(index, rows, there, reads=remedy != _REMEDY_OF_CALL)
    where = launcher_name(index, stack, op) or "the code"
    read = read_text(index, reads_of(index, rows))
    waited = f"waits for the {word} in `{call}`" if call else f"waits for the {word}"
    text = f"{capitalised(where)} {waited}"
    late = waits[found.next_row[waits] != MISSING]
    idle_end = activities["start_ns"][found.next_row[late]]
    idle_start = idle_end - found.idle_after[late]
    if 2 * len(late) > len(waits):
        idle = duration(int(found.idle_after[late].sum()))
        text += (
            f" {plural(len(late), 'time')}{read}; after that the {word} is idle for {idle} until "
            "the next launch"
        )
        longest = int(found.idle_after[late].argmax())
        end = int(idle_end[longest])
        longest = int(late[longest])
    else:
        wait = duration(int(found.wait[waits].sum()))
        text += f" {plural(len(waits), 'time')}{read}, for {wait}"
        longest = int(waits[int(found.wait[waits].argmax())])
        end = int(calls["end_ns"][found.call[longest]])
    yield Finding(
        f"{text}.",
        gain,
        int(calls["start_ns"][found.call[longest]]),
        end,
        kind="wait",
        remedy=remedy.format(word=word),
        gain_low_ns=low,
        gain_high_ns=high,
        op_id=op_id_of(index, op),
        stack_id=stack,
        table="api_calls",
        rows=lambda: np.sort(rows),
        spans=computed_later(index, _idle_spans, idle_start, idle_end, there),
    )


def _remedy(index: ProfileIndex, rows: IntArray, there: Visits, call: str) -> str:
    op = int(index.call_op[rows[0]])
    # A statement without a waiting call waits for the outputs of its runs.
    if _is_in_run(index, op) or (not call and _has_run(index, op)):
        return _REMEDY_OF_RUNS
    if _most(there.goes_on):
        return _REMEDY_OF_SIZE
    if _most(there.copies_back):
        return _REMEDY_OF_RETURN
    kinds = index.profile.tables["activities"].names("copy_kind")
    copies = bool(kinds.equals("DtoH")[there.activities].any()) or len(reads_of(index, rows)) > 0
    # Memory that the device shares with the host is read without a copy.
    names_read = bool(call) and "synchronize" not in call
    return _REMEDY if copies or names_read else _REMEDY_OF_CALL


def _gains(
    index: ProfileIndex, rows: IntArray, there: Visits, *, reads: bool
) -> Generator[list[Removed], list[int], tuple[int, int, int]]:
    """Return the gain if a place does not wait, ns: its lower bound, estimate and upper bound.

    Without the waits, the work of the host or of the device limits the speed. If the place only
    computes and reads a value, its other time on the host and its copies are saved, too; if it uses
    the value, a part of its work is still needed. The kernels that it launches are needed: a line
    may hold the work itself beside the wait. So at most the idle time and the copies are saved.
    """
    copies = _copies_of_value(index, there) if reads else there.activities[:0]
    removed = Removed(there.calls, copies, there.thread, there.start, there.end)
    waits, whole = yield [Removed(calls=rows), removed]
    whole = max(whole - int(preparation_within(index, there.start, there.end).sum()), waits)
    if _most(there.goes_on):
        gain = (waits + whole) // 2
        return max(int(_LEAST_OF_WAITS * waits), int(_LEAST * gain)), gain, whole
    low = max(int(_LEAST_OF_WAITS * waits), int(_LEAST * whole))
    most = int(_BETWEEN_RUNS * _most_to_win(index, copies))
    return low, whole, min(int(_SPREAD * whole), max(most, whole), wall_of(index.profile))


def _copies_of_value(index: ProfileIndex, there: Visits) -> IntArray:
    """Return the copies of some visits to the host; all copies if the value is copied back."""
    rows = there.activities
    kinds = index.profile.tables["activities"].names("copy_kind")
    is_copy = index.kinds == MEMCPY if _most(there.copies_back) else kinds.equals("DtoH")
    copies: IntArray = rows[is_copy[rows]]
    return copies


def _most_to_win(index: ProfileIndex, copies: IntArray) -> int:
    """Return how long no device did anything but some copies."""
    is_work = index.is_device_work.copy()
    is_work[copies] = False
    activities = index.profile.tables["activities"]
    times = clip_times(activities["start_ns"][is_work], activities["end_ns"][is_work])
    start, end = union(*times)
    return max(wall_of(index.profile) - int((end - start).sum()), 0)


def _idle_spans(
    index: ProfileIndex, idle_start: IntArray, idle_end: IntArray, there: Visits
) -> tuple[IntArray, IntArray]:
    """Return the idle time after waits, and in the visits if the place does nothing else."""
    after = union(idle_start, idle_end)
    if _most(there.goes_on):
        return after
    visited = union(there.start, there.end)
    if not len(visited[0]):  # in a damaged profile
        return after
    span = int(visited[0][0]), int(visited[1][-1])
    elsewhere = complement(*visited, *span)
    idle = complement(*union_of([index.busy(), elsewhere]), *span)
    return union_of([after, idle])


def _most(mask: BoolArray) -> bool:
    return 2 * int(mask.sum()) > len(mask)


def _is_in_run(index: ProfileIndex, op: int) -> bool:
    """Return whether the op at row `op` is in an ONNX Runtime session, or is one."""
    of_session = index.profile.tables["ops"].names("category").equals("session")
    return op >= 0 and bool(index.tree.nearest_ancestor(of_session)[op] >= 0)


def _has_run(index: ProfileIndex, op: int) -> bool:
    """Return whether the statement of the op at row `op` ran an ONNX Runtime session."""
    statement = int(index.statement[op]) if op >= 0 else MISSING
    of_session = index.profile.tables["ops"].names("category").equals("session")
    of_statement = index.statement[: len(of_session)] == statement
    return statement >= 0 and bool((of_session & of_statement).any())


def _call_of(index: ProfileIndex, op: int, stack: int) -> str:
    """Return the waiting call in the source of a stack's or an op's line, such as ``.item()``."""
    text = _line_of(index, op, stack)
    for pattern in _SYNCHRONISING:
        if match := pattern.search(text):
            end = "" if match[0].endswith(")") else ")" if match[0].startswith(".") else "...)"
            return match[0] + end
    return ""


def _line_of(index: ProfileIndex, op: int, stack: int) -> str:
    """Return the source of a stack's or an op's line."""
    cells, lines = lines_at(index, np.array([stack]), np.array([op]))
    if lines[0] < 0:
        return ""
    text = source_line(index.profile, cells.to_list()[0], int(lines[0]))
    if text or stack >= 0:
        return text
    name = index.profile.tables["ops"].names("name")
    return name.take(index.statement[[op]]).to_list()[0] or ""
