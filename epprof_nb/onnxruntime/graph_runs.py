"""Runs of sessions that capture CUDA graphs: one op each, and no profiling of replays.

A replay fires no node events, so profiling it would add nothing to that op, at the cost of a third
of a short replay (measured with 36 nodes of 1.4 us). Once a profiled run of a session reports no
node, later runs of that graph are known to replay it.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from epprof_nb import _native
from epprof_nb.core.ort_binding import GRAPH_ID
from epprof_nb.recording.onnxruntime import sessions

if TYPE_CHECKING:
    from collections.abc import Iterator

_DEFAULT_GRAPH = "0"
"""Id that ONNX Runtime gives to the graph of runs that do not name a graph."""


def graph_of(run_options: Any) -> str:  # noqa: ANN401
    """Return the id of the graph that a run with these options captures or replays."""
    if run_options is None:
        return _DEFAULT_GRAPH
    try:
        return str(run_options.get_run_config_entry(GRAPH_ID))
    except RuntimeError:  # no such entry
        return _DEFAULT_GRAPH


@contextmanager
def record_replay(
    observed_session: sessions.ObservedSession | None,
    run_options: Any,  # noqa: ANN401
    *,
    returns_early: bool,
) -> Iterator[bool]:
    """Open an op for a run that may replay a graph; yield whether to profile the run.

    Parameters
    ----------
    observed_session
        The state of the session; None if it is not observed.
    run_options
        The run options passed by the user, or None.
    returns_early
        Whether the run continues on another thread after the call.

    Notes
    -----
    Every run of a session that captures graphs gets its op here, because the first launch of a
    captured graph happens between two events of ONNX Runtime, not inside one.
    """
    if (
        returns_early
        or observed_session is None
        or observed_session.number is None
        or not observed_session.captures_graphs
        or observed_session.session_profile
    ):
        yield True
        return
    replayed = observed_session.replayed.graphs
    is_replay = (
        bool(replayed)
        and graph_of(run_options) in replayed
        and not sessions.is_profiled(run_options)
    )
    op_id = _native.ort_begin_run(observed_session.number)
    try:
        yield not is_replay
    finally:
        _native.ort_end_run(op_id)
    if not is_replay and _native.ort_nodes_of_last_run() == 0:
        replayed.add(graph_of(run_options))
