"""Parts of the elapsed time of each repeat: time in ops, and waits.

Every moment of a repeat counts once. While the code runs, it counts for the innermost open op on
the thread of the code; after that, for the op that launched the device work that still runs. So the
parts of all ops add up to the elapsed time, except for the time outside of all ops.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epprof_nb.analysis.base.op_status import has_host_time
from epprof_nb.analysis.base.whole_repeats import whole_repeats
from epprof_nb.analysis.compare.times_per_repeat import repeats_of
from epprof_nb.analysis.compare.waits_for_core import kept_waiting
from epprof_nb.analysis.utilisation.blocking_calls import is_wait
from epprof_nb.arrays.groups import group_codes, sum_by_group
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.repeats import repeat_bounds

if TYPE_CHECKING:
    import numpy.typing as npt

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.compare.match_ops import Side
    from epprof_nb.arrays.types import BoolArray, IntArray


class Windows(NamedTuple):
    """The repeats to compare, as int64 arrays of times in ns, one value per repeat.

    A repeat counts from the completion of the one before it, or from its start if that is later
    (``begun``), until its code (``ended``) and the device work that it launched are done
    (``done``). So the repeats add up to the whole, and a repeat includes device work that its code
    does not wait for.
    """

    begun: IntArray
    ended: IntArray
    done: IntArray


@dataclass(frozen=True, slots=True)
class ElapsedParts:
    """Elapsed time and waits of each path in each repeat.

    Attributes
    ----------
    own_ns, inclusive_ns
        int64 arrays of shape ``(paths, repeats)``: without and with the paths below.
    launched_ns
        int64 array of shape ``(paths, repeats)``: device time of the work that each path launched.
    waiting, awaited
        int64 arrays, one value per pair of paths: the path that waited, and the path that launched
        the awaited work.
    waited_ns
        int64 array of shape ``(pairs, repeats)``: how long.
    """

    own_ns: IntArray
    inclusive_ns: IntArray
    launched_ns: IntArray
    waiting: IntArray
    awaited: IntArray
    waited_ns: IntArray


def repeat_windows(index: ProfileIndex) -> Windows:
    """Return the times of the repeats to compare; one of a profile without repeats."""
    profile = index.profile
    starts, ends = repeat_bounds(profile.info)
    if not len(starts):
        whole = np.array([max(profile.wall_ns, 1)], np.int64)
        return Windows(np.zeros(1, np.int64), whole, whole)
    activities = profile.tables["activities"]
    done = ends.copy()
    launched = index.is_device_work & (activities["repeat"] >= 0)
    launched &= activities["repeat"] < len(done)
    np.maximum.at(done, activities["repeat"][launched], activities["end_ns"][launched])
    done = np.maximum.accumulate(done)
    begun = np.maximum(starts, np.append(starts[0], done[:-1]))
    return Windows(*(times[index.cached(whole_repeats)] for times in (begun, ends, done)))


def elapsed(index: ProfileIndex) -> npt.NDArray[np.float64]:
    """Return the elapsed time of each repeat; see `Windows`.

    If repeats alternated, the time in which other processes kept them waiting for a core is
    subtracted: it differs between the repeats of a pair and does not depend on the code.
    """
    info = index.profile.info
    if not len(repeat_bounds(info)[0]):
        return np.array([max(int(info.get("code_ns") or index.profile.wall_ns), 1)], np.float64)
    begun, _, done = repeat_windows(index)
    times: npt.NDArray[np.float64] = np.maximum(np.maximum(done - begun, 1) - waited(index), 1.0)
    return times


def waited(index: ProfileIndex) -> npt.NDArray[np.float64]:
    """Return the waits for a core that `elapsed` subtracts from each repeat."""
    repeats = len(repeat_bounds(index.profile.info)[0])
    return kept_waiting(index, repeats)[index.cached(whole_repeats)] if repeats else np.zeros(1)


def measure_elapsed(
    index: ProfileIndex, cells: IntArray, owners: IntArray, of_activity: IntArray, side: Side
) -> ElapsedParts:
    """Divide the elapsed time of each repeat among the paths.

    Parameters
    ----------
    index
        The recording.
    cells
        int64 array: ``path * repeats + repeat`` of each op; `MISSING` for ops that do not count.
    owners
        int64 array: path of each activity.
    of_activity
        int64 array: repeat of each activity; `MISSING` for none.
    side
        The paths.
    """
    windows = repeat_windows(index)
    repeats = len(windows.begun)
    count = len(side.children)
    size = count * repeats
    ops = index.profile.tables["ops"]
    thread = code_thread(index, cells)
    counted = (cells >= 0) & (ops["thread_id"] == thread) & has_host_time(ops)
    own = _own_ns(index, counted, cells % repeats, windows)
    sums = sum_by_group(np.where(counted, cells, MISSING), own, size)[:-1]
    work = _exclusive_work(index)
    after = _clipped(work, windows, of_activity, owners)
    cell = np.where(after.repeat >= 0, after.path * repeats + after.repeat, MISSING)
    sums += sum_by_group(cell, after.length, size)[:-1]
    own_ns = sums.reshape(count, repeats)
    launched = index.is_device_work & (of_activity >= 0)
    launched_ns = sum_by_group(
        np.where(launched, owners * repeats + of_activity, MISSING),
        index.profile.tables["activities"]["duration_ns"],
        size,
    )[:-1]
    return ElapsedParts(
        own_ns,
        _inclusive(own_ns, side),
        launched_ns.reshape(count, repeats),
        *_waits(index, thread, cells, work, owners),
    )


def code_thread(index: ProfileIndex, cells: IntArray) -> int:
    """Return the thread of the repeated code: the cell's, or the one with the most time in ops."""
    ops = index.profile.tables["ops"]
    is_cell = np.flatnonzero(ops.names("op_type").equals("cell") & has_host_time(ops))
    if len(is_cell):
        return int(ops["thread_id"][is_cell[0]])
    rows = np.flatnonzero((cells >= 0) & (index.tree.parent < 0))
    if not len(rows):
        return MISSING
    threads, inverse = np.unique(ops["thread_id"][rows], return_inverse=True)
    return int(threads[np.bincount(inverse, ops["duration_ns"][rows]).argmax()])


def _own_ns(
    index: ProfileIndex, counted: BoolArray, repeat: IntArray, windows: Windows
) -> IntArray:
    """Return the time of each counted op in its repeat, without the counted ops below."""
    ops, parent = index.profile.tables["ops"], index.tree.parent
    inside = np.minimum(ops["end_ns"], windows.ended[repeat])
    inside -= np.maximum(ops["start_ns"], windows.begun[repeat])
    # The executions of a row may take less time than from its start to its end.
    took: IntArray = np.where(counted, np.clip(inside, 0, ops["duration_ns"]), 0)
    above = np.append(index.tree.nearest_ancestor(counted), MISSING)[parent]
    inner = np.flatnonzero(counted & (above >= 0))
    own = took.copy()
    np.subtract.at(own, above[inner], took[inner])
    return np.maximum(own, 0)


class _Parts(NamedTuple):
    """Disjoint times, ascending: start, length, and the row of the activity."""

    start: IntArray
    length: IntArray
    row: IntArray


class _OpPathParts(NamedTuple):
    length: IntArray
    path: IntArray
    repeat: IntArray


def _exclusive_work(index: ProfileIndex) -> _Parts:
    """Return the time of each activity in which no earlier activity ran."""
    activities = index.profile.tables["activities"]
    rows = np.flatnonzero(index.is_device_work)
    rows = rows[np.argsort(activities["start_ns"][rows], kind="stable")]
    start, end = activities["start_ns"][rows], activities["end_ns"][rows]
    until = np.maximum.accumulate(np.append(np.iinfo(np.int64).min, end))[:-1]
    start = np.maximum(start, until)
    alone = end > start
    return _Parts(start[alone], (end - start)[alone], rows[alone])


def _clipped(
    work: _Parts, windows: Windows, of_activity: IntArray, owners: IntArray
) -> _OpPathParts:
    """Return the work of each repeat after the end of its code."""
    repeat = of_activity[work.row]
    begin = np.maximum(windows.begun, windows.ended)[repeat]
    end = np.minimum(work.start + work.length, windows.done[repeat])
    length = np.maximum(end - np.maximum(work.start, begin), 0)
    return _OpPathParts(length, owners[work.row], repeat)


def _inclusive(own_ns: IntArray, side: Side) -> IntArray:
    """Add the time of each path to the paths above."""
    total = own_ns.copy()
    depth, parent = side.depths_and_parents()
    for level in range(int(depth.max(initial=0)), 0, -1):
        here = np.flatnonzero(depth == level)
        np.add.at(total, parent[here], total[here])
    return total


def _waits(
    index: ProfileIndex, thread: int, cells: IntArray, work: _Parts, owners: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Return the pairs of waiting and awaited paths, and the time of each in each repeat."""
    calls = index.profile.tables["api_calls"]
    repeats = repeats_of(index)
    op = np.append(cells, MISSING)[index.call_op]
    rows = np.flatnonzero(index.cached(is_wait)[: len(calls)] & (op >= 0))
    rows = rows[calls["thread_id"][rows] == thread]
    rows = rows[np.argsort(calls["start_ns"][rows], kind="stable")]
    start, end = calls["start_ns"][rows], calls["end_ns"][rows]
    # Calls may be nested, such as runtime and driver calls: the outer one counts.
    until = np.maximum.accumulate(np.append(np.iinfo(np.int64).min, end))[:-1]
    start = np.maximum(start, until)
    kept = end > start
    rows, start, end = rows[kept], start[kept], end[kept]
    work_end = work.start + work.length
    edges = np.unique(np.concatenate([start, end, work.start, work_end]))
    wait = np.searchsorted(start, edges[:-1], side="right") - 1
    done = np.searchsorted(work.start, edges[:-1], side="right") - 1
    both = (wait >= 0) & (done >= 0)
    both &= np.append(end, 0)[wait] > edges[:-1]
    both &= np.append(work_end, 0)[done] > edges[:-1]
    lengths = np.diff(edges)[both]
    cell = op[rows[wait[both]]]
    waiting, awaited = cell // repeats, owners[work.row[done[both]]]
    groups, first = group_codes(waiting, awaited)
    waited = sum_by_group(groups * repeats + cell % repeats, lengths, len(first) * repeats)[:-1]
    return waiting[first], awaited[first], waited.reshape(len(first), repeats)
