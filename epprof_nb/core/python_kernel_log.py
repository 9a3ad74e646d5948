"""Log of the kernels in Python and copies of ONNX Runtime sessions on the host device.

The recorder of the host device collects it.
"""

from __future__ import annotations

import os
import threading
import weakref
from dataclasses import dataclass
from typing import Any, NamedTuple

from epprof_nb import _native

_COMPUTE = _native.intern("hostLaunchKernel")
_COPY = _native.intern("hostMemcpyAsync")


class KernelRun(NamedTuple):
    """One execution of a kernel, or a copy; times are CLOCK_MONOTONIC nanoseconds."""

    name: str
    stream_id: int
    correlation_id: int
    start_ns: int
    end_ns: int
    kind: str = "kernel"
    """``kernel``, ``memcpy``, or ``graph_launch`` for the replay of a graph as a whole."""
    copy_kind: str | None = None
    """``HtoD`` or ``DtoH`` for a copy."""
    bytes: int = 0
    graph_id: int = -1
    """Id of the replayed graph that it belongs to; -1 for none."""
    graph_node_id: int = -1


class Replay(NamedTuple):
    """The replay of a graph in which a kernel or copy ran, and its node in the graph."""

    correlation_id: int
    stream_id: int
    graph_id: int
    graph_node_id: int


class GraphNode(NamedTuple):
    """A node of a graph, with the times of its capture."""

    graph_node_id: int
    op_id: int
    name: str
    op_type: str
    node_index: int
    start_ns: int
    end_ns: int
    launches: int = 1
    """Number of nodes of CUDA's graph that it captured."""


class CapturedGraph(NamedTuple):
    """A graph that was captured or replayed in a recording, with the times of its capture."""

    graph_id: int
    session: int
    gpu_graph_id: int
    op_id: int
    parent_op_id: int
    """The op in which it was captured; 0 if none was open."""
    captured_in: str
    """The line of code that captured it."""
    start_ns: int
    end_ns: int
    nodes: tuple[GraphNode, ...]


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class NotedGraph:
    """A graph on a CUDA device. The log keeps it as long as this object exists."""

    graph: CapturedGraph


class KernelLog:
    """Bounded log that any thread can write to."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: list[KernelRun] = []
        self._limit = 0
        self._streams: dict[int, int] = {}
        self._graphs: dict[int, CapturedGraph] = {}
        self._cuda_graphs: weakref.WeakValueDictionary[int, NotedGraph] = (
            weakref.WeakValueDictionary()
        )
        self._cuda_graphs_of_recording: list[NotedGraph] = []
        self.dropped = 0

    def start(self, limit: int) -> None:
        """Start recording at most `limit` runs; 0 stops it."""
        with self._lock:
            self._runs = []
            self._limit = limit
            self._streams = {}
            self._graphs = {}
            # A graph that was replayed may be released before the recording ends.
            self._cuda_graphs_of_recording = list(self._cuda_graphs.values()) if limit else []
            self.dropped = 0

    def add(
        self,
        name: str,
        start_ns: int,
        end_ns: int,
        *,
        copy_kind: str | None = None,
        nbytes: int = 0,
        replay: Replay | tuple[int, int, int, int] | None = None,
    ) -> None:
        """Record a kernel or copy of a replay, or one of the calling thread with its launch."""
        if not self._limit:
            return
        if replay is None:
            correlation = _native.next_correlation()
            _native.launch(_COPY if copy_kind else _COMPUTE, start_ns, end_ns, correlation)
            replay = (correlation, self._stream(), -1, -1)
        correlation, stream, graph, node = replay
        kind = "memcpy" if copy_kind else "kernel"
        self._append(
            KernelRun(
                name, stream, correlation, start_ns, end_ns, kind, copy_kind, nbytes, graph, node
            )
        )

    def add_replay(
        self, replay: Replay | tuple[int, int, int, int], start_ns: int, end_ns: int
    ) -> None:
        """Record the replay of a graph as a whole."""
        correlation, stream, graph_id, _ = replay
        graph = self._graphs.get(graph_id)
        name = f"graph {graph.gpu_graph_id}" if graph is not None else "graph"
        self._append(
            KernelRun(
                name, stream, correlation, start_ns, end_ns, "graph_launch", graph_id=graph_id
            )
        )

    def _append(self, run: KernelRun) -> None:
        with self._lock:
            if len(self._runs) < self._limit:
                self._runs.append(run)
            elif self._limit:
                self.dropped += 1

    def begin_replay(self, graph: tuple[Any, ...]) -> int:
        """Note a graph that the calling thread replays; return the thread's stream."""
        self.add_graph(graph)
        return self._stream()

    def add_graph(self, graph: tuple[Any, ...]) -> None:
        """Note a graph, as `_native.ep_describe_graph` describes it."""
        with self._lock:
            if self._limit and graph[0] not in self._graphs:
                self._graphs[graph[0]] = _captured(graph)

    def add_cuda_graph(self, graph: tuple[Any, ...]) -> NotedGraph:
        """Note a graph on a CUDA device, for recordings of its replays.

        Returns
        -------
        noted
            Hold it as long as the graph can be replayed.
        """
        noted = NotedGraph(_captured(graph))
        with self._lock:
            self._cuda_graphs[graph[0]] = noted
            if self._limit:
                self._cuda_graphs_of_recording.append(noted)
        return noted

    def take_replays(self) -> tuple[tuple[int, CapturedGraph], ...]:
        """Take the op and graph of each replay on a CUDA device since the last call."""
        with self._lock:
            replays = [
                (op, self._cuda_graphs.get(graph)) for op, graph in _native.ep_take_replays()
            ]
        return tuple((op, noted.graph) for op, noted in replays if noted is not None)

    def _stream(self) -> int:
        # Kernels run on or for the thread of their session's run. Each thread is a stream.
        with self._lock:
            return self._streams.setdefault(threading.get_ident(), len(self._streams))

    def graphs(self) -> list[CapturedGraph]:
        """Return the graphs captured or replayed since the start."""
        with self._lock:
            return list(self._graphs.values())

    def take(self) -> tuple[list[KernelRun], int]:
        """Take the runs recorded since the last call, and the number of dropped ones."""
        with self._lock:
            taken, self._runs = self._runs, []
            dropped, self.dropped = self.dropped, 0
            return taken, dropped


def _captured(graph: tuple[Any, ...]) -> CapturedGraph:
    return CapturedGraph._make((*graph[:-1], tuple(GraphNode(*node) for node in graph[-1])))


KERNELS = KernelLog()
os.register_at_fork(after_in_child=KERNELS.__init__)  # type: ignore[misc]
