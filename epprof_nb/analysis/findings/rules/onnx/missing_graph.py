"""The finding that a graph would help: adjacent nodes that wait for their launches."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epprof_nb.analysis.base.wall_time import wall_of
from epprof_nb.analysis.findings.finding import Finding
from epprof_nb.analysis.onnx.profiler_slowdown import slowdown_of
from epprof_nb.arrays.groups import group_codes, sum_by_group
from epprof_nb.arrays.intervals import EARLIEST, LATEST, covered_by_group
from epprof_nb.arrays.types import MISSING
from epprof_nb.data import ort_runs
from epprof_nb.util.format import duration, percent, plural, shorten

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray

MIN_NODES, MIN_RUNS = 4, 2
"""Minimum number of adjacent nodes, and of runs with the same nodes, for a graph to pay off."""
GAP_SHARE = 0.05
"""Minimum share of the wall time for the idle time between the kernels of such nodes."""
_HOST_PROVIDER = "CPUExecutionProvider"
_COPIES = ("MemcpyFromHost", "MemcpyToHost")
_NAME_CHARACTERS = 40


class _Stretches(NamedTuple):
    """Runs of adjacent nodes on an accelerator: one element per stretch of each run."""

    of_op: IntArray
    """Stretch of each op, from 0; `MISSING` outside of them."""
    first: IntArray
    """Row of the first node."""
    last: IntArray
    nodes: IntArray
    """Number of nodes."""


def graph_opportunity(index: ProfileIndex) -> list[Finding]:
    """Return the finding on the eager nodes that a graph would help most, if there are any.

    Parameters
    ----------
    index
        Index of the profile.

    Returns
    -------
    findings
        At most one. The saving is the time between the kernels of these nodes in which none of
        them ran: a replay launches them all at once. It is an upper bound, for an unprofiled run.

    Notes
    -----
    The nodes are adjacent in their run, on an execution provider other than the CPU's, without
    copies between them, and ran at least twice. Sessions that replay graphs are left out.

    Examples
    --------
    >>> from epprof_nb.analysis.base.index import ProfileIndex
    >>> from epprof_nb.testing import synthetic_profile
    >>> graph_opportunity(ProfileIndex(synthetic_profile(activities=100)))  # runs no session
    []
    """
    if not index.profile.info.get("onnxruntime_sessions"):
        return []
    found = _stretches(index)
    if not len(found.first):
        return []
    gap_ns, start, end = _gaps(index, found)
    ops = index.profile.tables["ops"]
    names = ops.names("name")
    alike, example = group_codes(
        ops["session"][found.first], names.codes[found.first], names.codes[found.last], found.nodes
    )
    runs = sum_by_group(alike, np.ones(len(alike), np.int64), len(example))[:-1]
    total = sum_by_group(alike, gap_ns, len(example))[:-1]
    span = sum_by_group(alike, end - start, len(example))[:-1]
    total[runs < MIN_RUNS] = 0
    most = int(total.argmax())
    wall_ns = wall_of(index.profile)
    if total[most] == 0 or total[most] < GAP_SHARE * wall_ns:
        return []
    stretch = int(example[most])
    session = int(ops["session"][found.first[stretch]])
    first, last = (
        shorten(names.categories[names.codes[rows[stretch]]], _NAME_CHARACTERS)
        for rows in (found.first, found.last)
    )
    saving = min(int(total[most] / slowdown_of(index.profile.info, session)), wall_ns)
    text = (
        f"{plural(int(found.nodes[stretch]), 'node')} from `{first}` to `{last}` launched one by "
        f"one in {plural(int(runs[most]), 'run')}: between their kernels the device was idle "
        f"{percent(total[most] / span[most])} of the time. A graph (enable_cuda_graph) would save "
        f"up to {duration(saving)}."
    )
    of_these = np.flatnonzero(alike == most)
    longest = of_these[int(gap_ns[of_these].argmax())]
    of_nodes = np.flatnonzero(np.isin(found.of_op, of_these))
    return [
        Finding(
            text,
            saving,
            int(start[longest]),
            int(end[longest]),
            kind="launch-bound",
            remedy="Capture the runs in a graph (enable_cuda_graph), or fuse the nodes.",
            op_id=int(ops["op_id"][found.first[of_these[0]]]),
            table="ops",
            rows=lambda: of_nodes,
            is_unprofiled=True,
        )
    ]


def _stretches(index: ProfileIndex) -> _Stretches:
    """Return the adjacent nodes on accelerators, in runs of sessions that replay no graph."""
    ops, tree = index.profile.tables["ops"], index.tree
    none = np.empty(0, np.int64)
    of_op = np.full(len(ops), MISSING, np.int64)
    is_node = ops.names("category").equals("node") & ~ops.names("status").equals("earlier")
    is_run = ort_runs.is_run(ops)
    run = tree.nearest_ancestor(is_run)
    groups = np.where(is_node, 0, MISSING)
    rows = np.flatnonzero(is_node & (run >= 0) & tree.is_outermost(groups))
    if not len(rows):
        return _Stretches(of_op, none, none, none)
    rows = rows[np.lexsort((ops["start_ns"][rows], run[rows]))]
    replayed = index.profile.tables["graphs"]["session"]
    apart = np.isin(ops["session"][rows], replayed[replayed != MISSING])
    apart |= ops.names("provider").take(rows).equals(_HOST_PROVIDER)
    for op_type in _COPIES:
        apart |= ops.names("op_type").take(rows).equals(op_type)
    begins = np.append(True, (run[rows][1:] != run[rows][:-1]) | apart[1:] | apart[:-1])
    number = np.cumsum(begins) - 1
    nodes = np.bincount(number)
    kept = np.bincount(number, ~apart) >= MIN_NODES
    renumbered = np.where(kept, np.cumsum(kept) - 1, MISSING)[number]
    of_op[rows] = renumbered
    starts = np.flatnonzero(begins)
    ends = np.append(starts[1:], len(rows)) - 1
    return _Stretches(of_op, rows[starts][kept], rows[ends][kept], nodes[kept])


def _gaps(index: ProfileIndex, found: _Stretches) -> tuple[IntArray, IntArray, IntArray]:
    """Return the idle time in each stretch, and the start and end of its device work."""
    activities = index.profile.tables["activities"]
    inside = np.append(found.of_op, MISSING)[_outermost_node(index)]
    stretch = np.append(inside, MISSING)[index.activity_op]
    work = np.flatnonzero(index.is_device_work & (stretch >= 0))
    stretch, count = stretch[work], len(found.first)
    start, end = np.full(count, LATEST), np.full(count, EARLIEST)
    np.minimum.at(start, stretch, activities["start_ns"][work])
    np.maximum.at(end, stretch, activities["end_ns"][work])
    busy = covered_by_group(
        stretch, activities["start_ns"][work], activities["end_ns"][work], count
    )
    has_work = end > start
    start, end = np.where(has_work, start, 0), np.where(has_work, end, 0)
    return end - start - busy, start, end


def _outermost_node(index: ProfileIndex) -> IntArray:
    """Return the row of the outermost node around each op; -1 if there is none."""
    ops, tree = index.profile.tables["ops"], index.tree
    is_node = ops.names("category").equals("node")
    groups = np.where(is_node, 0, MISSING)
    return tree.nearest_ancestor(is_node & tree.is_outermost(groups))
