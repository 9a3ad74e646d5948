"""Runs that replay a CUDA graph: recorded as one op each, without a profiler of their own.

A replay fires no node events, so ONNX Runtime's profiling of it says nothing that one op does
not, and costs a third of a short replay (measured: 36 nodes of 1.4 us). Which runs replay is not
guessed: a run of a session that captures graphs, profiled as any other, told of no node.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from epprof_nb import _native, ort_runs

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


def is_known(session: object, run_options: Any) -> bool:  # noqa: ANN401
    """Whether a run of `session` with these options was seen to be a replay before."""
    sight = ort_runs.sight_of(session)
    return (
        sight is not None
        and bool(sight.replayed.graphs)
        and not ort_runs.is_profiled(run_options)
        and graph_of(run_options) in sight.replayed.graphs
    )


def learn(session: object, run_options: Any) -> None:  # noqa: ANN401
    """Note, right after a profiled run on this thread, whether it replayed a graph."""
    sight = ort_runs.sight_of(session)
    if sight is None or not sight.graphs or sight.session_profile:
        return
    if _native.ort_nodes_of_last_run() == 0:
        sight.replayed.graphs.add(graph_of(run_options))


@contextmanager
def run_op(session: object) -> Iterator[None]:
    """Record what happens meanwhile as a run of `session`."""
    sight = ort_runs.sight_of(session)
    op_id = _native.ort_begin_run(sight.number) if sight and sight.number is not None else 0
    try:
        yield
    finally:
        _native.ort_end_run(op_id)
