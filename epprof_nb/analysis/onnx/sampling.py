"""Times of ONNX Runtime's nodes in all runs, of which only some were recorded node by node."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epprof_nb.analysis.onnx.overhead import (
    CAPTURED,
    RECORDED,
    call_durations,
    node_events,
    run_rows,
    slowdown_of,
    slowdown_of_nodes,
)
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray


class Sample(NamedTuple):
    """The runs of a session that were recorded node by node.

    Attributes
    ----------
    recorded, runs
        Their number, and that of all runs.
    factor
        Time of a node in all runs without the profiler, relative to that recorded.
    """

    recorded: int
    runs: int
    factor: float


def samples(index: ProfileIndex) -> dict[int, Sample]:
    """Return the recorded runs of each session that ran."""
    return index.cached(_samples)


def _samples(index: ProfileIndex) -> dict[int, Sample]:
    ops, info = index.profile.tables["ops"], index.profile.info
    rows = run_rows(ops)
    state = np.array(node_events(ops, rows), object)
    call, unprofiled = call_durations(ops, rows)
    call = np.where(call == MISSING, ops["duration_ns"][rows], call)
    found = {}
    for session in np.unique(ops["session"][rows]).tolist():
        of_session = (ops["session"][rows] == session) & (state != CAPTURED)
        is_recorded = of_session & (state == RECORDED)
        recorded, runs = int(is_recorded.sum()), int(of_session.sum())
        if not 0 < recorded < runs:
            found[session] = Sample(recorded, runs, 1 / slowdown_of(info, session))
            continue
        estimate = np.where(is_recorded, call / slowdown_of_nodes(info, session), call)
        without = np.where(unprofiled == MISSING, estimate, unprofiled)
        took = max(float(call[is_recorded].sum()), 1.0)
        found[session] = Sample(recorded, runs, float(without[of_session].sum()) / took)
    return found


def in_all_runs_ns(index: ProfileIndex, sessions: IntArray, host_ns: IntArray) -> int:
    """Return the time of nodes in all runs of their sessions, without the slowdown by profiling.

    Parameters
    ----------
    index
        Index of the profile.
    sessions, host_ns
        int64 arrays of the same length: session and recorded host time of each node.

    Returns
    -------
    host_ns
        Of a session of which only some runs were recorded, this is an estimate: in the others the
        nodes are taken to have the same share of the time.
    """
    known, info = samples(index), index.profile.info
    factors = {
        number: known[number].factor if number in known else 1 / slowdown_of(info, number)
        for number in np.unique(sessions).tolist()
    }
    return int(sum(int(host_ns[sessions == n].sum()) * factor for n, factor in factors.items()))


def sampled_runs(index: ProfileIndex, sessions: IntArray) -> tuple[int, int] | None:
    """Return how many runs of some sessions were recorded, and of how many; None if all were."""
    known = samples(index)
    of_sessions = [known[number] for number in np.unique(sessions).tolist() if number in known]
    recorded = sum(sample.recorded for sample in of_sessions)
    runs = sum(sample.runs for sample in of_sessions)
    return (recorded, runs) if recorded < runs else None
