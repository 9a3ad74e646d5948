"""The finding on graphs that are captured again and again, and hardly replayed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.wall_time import wall_of
from epprof_nb.analysis.findings.finding import MIN_GAIN_SHARE, Finding
from epprof_nb.analysis.onnx.profiler_slowdown import slowdown_of
from epprof_nb.arrays.types import MISSING
from epprof_nb.data import ort_runs
from epprof_nb.util.format import duration, plural, shorten

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import BoolArray, IntArray

MIN_CAPTURES = 5
"""Minimum number of captures by a session: the first run with each of a few shapes captures one."""
_NAME_CHARACTERS = 60
_NEW_SHAPES = "The input shapes change with each run, and a graph is for one set of shapes."
_OTHERWISE = (
    "A graph is for runs of one thread with the same input shapes, and the graphs of eight sets of "
    "shapes are kept."
)
_REMEDY = (
    "Keep the input shapes: buffers of a fixed size for past keys and values, with a mask, or "
    "inputs padded to a few sizes. Otherwise leave enable_cuda_graph out."
)


def wasted_captures(index: ProfileIndex) -> Iterator[Finding]:
    """Yield a finding on each session that captures more graphs than it replays.

    The saving is the time of the capturing runs minus one pass over their nodes: each run makes
    several passes, to warm up and to capture.

    Examples
    --------
    >>> from epprof_nb.analysis.base.index import ProfileIndex
    >>> from epprof_nb.testing import synthetic_profile
    >>> list(wasted_captures(ProfileIndex(synthetic_profile(activities=100))))  # runs no session
    []
    """
    graphs, ops, tree = index.profile.tables["graphs"], index.profile.tables["ops"], index.tree
    if not np.any(graphs["session"] != MISSING):
        return
    is_run = ort_runs.is_run(ops)
    run = tree.nearest_ancestor(is_run)
    capture = tree.rows(graphs["capture_op_id"])
    captured_by = np.where(capture >= 0, np.append(run, MISSING)[capture], MISSING)
    in_profile = (captured_by >= 0) & ~np.append(ops.names("status").equals("earlier"), True)[
        captured_by
    ]
    replays = _replays_by_other_runs(index, run, captured_by)
    for session in np.unique(graphs["session"][in_profile]).tolist():
        of_session = in_profile & (graphs["session"] == session)
        captures = int(of_session.sum())
        replayed = int(replays[graphs["session"] == session].sum())
        if session == MISSING or captures < MIN_CAPTURES or replayed >= captures:
            continue
        runs = captured_by[of_session]
        wasted = int(_wasted_ns(index, runs, capture[of_session]).sum())
        gain = int(wasted / slowdown_of(index.profile.info, session))
        gain = min(gain, wall_of(index.profile))
        if gain < MIN_GAIN_SHARE * wall_of(index.profile):
            continue
        name = index.profile.info.get("onnxruntime_sessions", {}).get(str(session), "")
        title = shorten(name.replace("`", "'"), _NAME_CHARACTERS) or "A session"
        why = _NEW_SHAPES if _all_have_own_shapes(index, run, runs) else _OTHERWISE
        longest = int(runs[ops["duration_ns"][runs].argmax()])
        yield Finding(
            f"{title} (session {session}) captured {captures} graphs, and "
            f"{plural(replayed, 'later run') if replayed else 'no later run'} replayed one. {why} "
            f"The captures and their warm-up runs took {duration(gain)}.",
            gain,
            int(ops["start_ns"][longest]),
            int(ops["end_ns"][longest]),
            kind="graph capture",
            remedy=_REMEDY,
            op_id=int(ops["op_id"][longest]),
            table="ops",
            rows=lambda runs=runs: np.unique(runs),  # type: ignore[misc]
        )


def _replays_by_other_runs(index: ProfileIndex, run: IntArray, captured_by: IntArray) -> IntArray:
    """Return how often each graph was replayed, other than in the run that captured it."""
    activities, graphs = index.profile.tables["activities"], index.profile.tables["graphs"]
    rows = np.flatnonzero(index.is_device_work & (activities["graph_id"] != MISSING))
    graph_ids = graphs["graph_id"]
    order = np.argsort(graph_ids, kind="stable")
    place = np.searchsorted(graph_ids[order], activities["graph_id"][rows])
    graph = order[np.minimum(place, len(order) - 1)]
    replayed_by = np.append(run, MISSING)[index.activity_op[rows]]
    other = replayed_by != captured_by[graph]
    replays = np.unique(np.stack([graph[other], activities["correlation_id"][rows][other]]), axis=1)
    return np.bincount(replays[0], minlength=len(graphs))


def _wasted_ns(index: ProfileIndex, runs: IntArray, captures: IntArray) -> IntArray:
    """Return the host time of runs beyond one pass over the nodes that they captured."""
    ops = index.profile.tables["ops"]
    nodes = index.tree.subtree_sum(ops.names("category").equals("node").astype(np.int64))
    passes = np.maximum(nodes[runs] // np.maximum(nodes[captures], 1), 1)
    host_ns: IntArray = ops["duration_ns"][runs]
    return host_ns - host_ns // passes


def _all_have_own_shapes(index: ProfileIndex, run: IntArray, runs: IntArray) -> bool:
    """Return whether the nodes of each run have inputs of different shapes."""
    ops = index.profile.tables["ops"]
    shapes = ops.names("input_shapes").codes
    found = []
    for each in np.unique(runs).tolist():
        inside: BoolArray = run == each
        found.append(frozenset(np.unique(shapes[inside & (shapes >= 0)]).tolist()))
    return all(found) and len(set(found)) == len(found)
