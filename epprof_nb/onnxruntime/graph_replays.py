"""Runs that replay a CUDA graph: recorded as one op each, without a profiler of their own.

A replay fires no node events, so ONNX Runtime's profiling of it says nothing that one op does
not, and costs a third of a short replay (measured: 36 nodes of 1.4 us). Which runs replay is not
guessed: a run of a session that captures graphs, profiled as any other, told of no node.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from epprof_nb import _native
from epprof_nb.recorders.onnxruntime import sessions as ort_runs

if TYPE_CHECKING:
    from collections.abc import Iterator

_GRAPH = "gpu_graph_id"
_FIRST_GRAPH = "0"
"""The graph of a run that names none, as ONNX Runtime numbers them."""


def graph_of(run_options: Any) -> str:  # noqa: ANN401
    """Return the id of the graph that a run with these options captures or replays."""
    if run_options is None:
        return _FIRST_GRAPH
    try:
        return str(run_options.get_run_config_entry(_GRAPH))
    except RuntimeError:  # no such entry
        return _FIRST_GRAPH


@contextmanager
def run_of(session: object, run_options: Any, *, returns_early: bool) -> Iterator[bool]:  # noqa: ANN401
    """Record a run of `session` made meanwhile on this thread; give whether to profile it.

    Parameters
    ----------
    session
        An ``InferenceSession``.
    run_options
        The run options the user passed, or None.
    returns_early
        The run goes on after the call, on another thread.

    Notes
    -----
    A run of a session that captures graphs gets its op here: where a graph is captured, it is
    launched for the first time between two of ONNX Runtime's events, inside of none.
    """
    sight = ort_runs.sight_of(session)
    if (
        returns_early
        or sight is None
        or sight.number is None
        or not sight.graphs
        or sight.session_profile
    ):
        yield True
        return
    seen = sight.replayed.graphs
    known = bool(seen) and graph_of(run_options) in seen and not ort_runs.is_profiled(run_options)
    op_id = _native.ort_begin_run(sight.number)
    try:
        yield not known
    finally:
        _native.ort_end_run(op_id)
    if not known and _native.ort_nodes_of_last_run() == 0:
        seen.add(graph_of(run_options))
