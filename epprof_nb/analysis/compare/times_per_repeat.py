"""Measures of a recording in each of its repeats: times of ops and kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.whole_repeats import whole_repeats
from epprof_nb.analysis.onnx.recorded_runs import LEARNED, RECORDED, node_events, run_rows
from epprof_nb.arrays.groups import group_codes, sum_by_group
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.repeats import repeat_bounds

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.compare.match_ops import Side
    from epprof_nb.arrays.types import BoolArray, IntArray


@dataclass(frozen=True, slots=True)
class OpMeasures:
    """Sums over the ops of each path in each repeat.

    Each is an int64 array of shape ``(paths, repeats)``; a path that did not run in a repeat has 0.
    The sums over device work are inclusive.

    ``has_nodes`` is a bool array of shape ``(repeats,)``: whether the nodes of all runs of ONNX
    Runtime sessions in the repeat are known. If not, all ops inside of runs have 0.
    """

    has_nodes: BoolArray
    host_ns: IntArray
    device_ns: IntArray
    bytes: IntArray
    count: IntArray


@dataclass(frozen=True, slots=True)
class KernelMeasures:
    """Sums over the launches of each kernel by each path, in each repeat.

    ``paths`` and ``names`` identify the kernels; ``device_ns`` and ``count`` are int64 arrays of
    shape ``(kernels, repeats)``.
    """

    paths: IntArray
    names: list[str]
    device_ns: IntArray
    count: IntArray


def repeats_of(index: ProfileIndex) -> int:
    """Return the number of a profile's repeats to compare; 1 if the code was not repeated."""
    whole = index.cached(whole_repeats)
    return max(int(whole.stop - whole.start), 1)


def measure_ops(index: ProfileIndex, paths: IntArray, count: int) -> OpMeasures:
    """Sum the measures of the ops by path and repeat.

    Parameters
    ----------
    index
        The recording.
    paths
        int64 array: path of each op; see `epprof_nb.analysis.compare.match_ops.Side.add`.
    count
        Number of paths.
    """
    ops = index.profile.tables["ops"]
    repeats = repeats_of(index)
    has_nodes = _has_nodes(index, repeats)
    cells = counted_cells(index, paths)
    own = index.op_sums("launch")

    def total(values: IntArray) -> IntArray:
        return _matrix(cells, values, count, repeats)

    return OpMeasures(
        has_nodes=has_nodes,
        host_ns=total(ops["duration_ns"]),
        device_ns=total(index.tree.subtree_sum(own["device_ns"][:-1])),
        bytes=total(index.tree.subtree_sum(own["bytes"][:-1])),
        count=total(np.maximum(ops["count"], 1)),
    )


def counted_cells(index: ProfileIndex, paths: IntArray) -> IntArray:
    """Return ``path * repeats + repeat`` of each op, `MISSING` for ops that do not count.

    An op inside of an ONNX Runtime run does not count in a repeat with unknown nodes.
    """
    ops = index.profile.tables["ops"]
    repeats = repeats_of(index)
    cells = _cells(paths[: len(ops)], repeat_numbers(index, ops["repeat"]), repeats)
    # An op of an earlier profile is in the table because it captured a graph; it did not run.
    cells[ops.names("status").equals("earlier")] = MISSING
    cells[inside_run(index) & ~_has_nodes(index, repeats)[cells % repeats]] = MISSING
    return cells


def _has_nodes(index: ProfileIndex, repeats: int) -> BoolArray:
    """Return whether all nodes that ran in a repeat are known."""
    ops = index.profile.tables["ops"]
    runs = run_rows(ops)
    is_known = np.isin(np.array(node_events(ops, runs), object), [RECORDED, LEARNED])
    lacking = repeat_numbers(index, ops["repeat"])[runs[~is_known]]
    has_nodes = np.ones(repeats, np.bool_)
    has_nodes[lacking[lacking >= 0]] = False
    return has_nodes


def inside_run(index: ProfileIndex) -> BoolArray:
    """Return a mask of the ops inside of runs of ONNX Runtime sessions."""
    ops = index.profile.tables["ops"]
    is_run = np.zeros(len(ops), np.bool_)
    is_run[run_rows(ops)] = True
    return (index.tree.nearest_ancestor(is_run) >= 0) & ~is_run


def add_captured_ops(
    index: ProfileIndex, owners: IntArray, side: Side, measures: OpMeasures
) -> None:
    """Add the work of graph replays to the measures of the ops that captured it.

    Parameters
    ----------
    index
        The recording.
    owners, side
        See `epprof_nb.analysis.compare.match_ops.Side.owners`.
    measures
        Measures of the recording, changed in place. An op that captured a graph counts as often as
        the graph was launched.
    """
    if not side.captured:
        return
    activities = index.profile.tables["activities"]
    repeats = measures.count.shape[1]
    repeat = repeat_numbers(index, activities["repeat"])
    inside = index.is_device_work & (repeat >= 0) & np.isin(owners, list(side.captured))
    rows = np.flatnonzero(inside)
    count = len(measures.count)
    cells = _cells(owners[rows], repeat[rows], repeats)
    device_ns = _matrix(cells, activities["duration_ns"][rows], count, repeats)
    sizes = _matrix(cells, np.maximum(activities["bytes"][rows], 0), count, repeats)
    _, first = group_codes(cells, activities["correlation_id"][rows])
    replays = _matrix(cells[first], np.ones(len(first), np.int64), count, repeats)
    for path in np.unique(owners[rows]).tolist():
        for step in (path, *side.above(path)):
            if step in side.captured:
                measures.device_ns[step] += device_ns[path]
                measures.bytes[step] += sizes[path]
                np.maximum(measures.count[step], replays[path], out=measures.count[step])


def measure_kernels(index: ProfileIndex, owners: IntArray) -> KernelMeasures:
    """Sum the device time and launches of the kernels by path, name and repeat.

    `owners` holds the path of each activity.
    """
    activities = index.profile.tables["activities"]
    repeats = repeats_of(index)
    repeat = repeat_numbers(index, activities["repeat"])
    rows = np.flatnonzero(activities.names("kind").equals("kernel") & (repeat >= 0))
    owner = owners[rows]
    names = activities.names("name").take(rows)
    groups, first = group_codes(owner, names.codes)
    cells = _cells(groups, repeat[rows], repeats)
    kernels = len(first)
    return KernelMeasures(
        paths=owner[first],
        names=[name or "" for name in names.take(first).to_list()],
        device_ns=_matrix(cells, activities["duration_ns"][rows], kernels, repeats),
        count=_matrix(cells, np.ones(len(rows), np.int64), kernels, repeats),
    )


def repeat_numbers(index: ProfileIndex, repeat: IntArray) -> IntArray:
    """Return the repeat of each row; 0 for all rows of a profile without repeats."""
    if not len(repeat_bounds(index.profile.info)[0]):
        return np.zeros(len(repeat), np.int64)
    first = index.cached(whole_repeats).start
    # A damaged file may have repeats in its tables that its info lacks.
    is_known = (repeat >= first) & (repeat < repeats_of(index) + first)
    return np.where(is_known, repeat - first, MISSING)


def _cells(rows: IntArray, repeat: IntArray, repeats: int) -> IntArray:
    return np.where((rows >= 0) & (repeat >= 0), rows * repeats + repeat, MISSING)


def _matrix(cells: IntArray, values: IntArray, rows: int, repeats: int) -> IntArray:
    return sum_by_group(cells, values, rows * repeats)[:-1].reshape(rows, repeats)
