"""Graphs that cuda-python makes: executables, clones, updates, child graphs, conditional nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cupy as cp
from cuda.bindings import runtime

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

MODE = runtime.cudaStreamCaptureMode.cudaStreamCaptureModeThreadLocal
ASSIGN_DEFAULT = 1  # cudaGraphCondAssignDefault: a replay begins with the default of the condition


def check(result: tuple[Any, ...]) -> Any:
    """Return the values of a call; raise if it failed."""
    status, *values = result
    if int(status):
        raise RuntimeError(f"CUDA failed with {status}")
    return values[0] if len(values) == 1 else values


class Graphs:
    """Graphs of some work, captured on a stream.

    Parameters
    ----------
    work
        Launches the work on CuPy's current stream.
    around
        Launches a kernel of its own for each number.
    """

    def __init__(self, work: Callable[[], None], around: Callable[[int], None]) -> None:
        self.stream = check(runtime.cudaStreamCreateWithFlags(1))
        self._work, self._around = work, around

    def captured(self) -> Any:
        """Capture the work."""
        check(runtime.cudaStreamBeginCapture(self.stream, MODE))
        with cp.cuda.ExternalStream(int(self.stream)):
            self._work()
        return check(runtime.cudaStreamEndCapture(self.stream))

    def _capture_to(self, graph: Any, after: Sequence[Any], launch: Callable[[], None]) -> None:
        check(
            runtime.cudaStreamBeginCaptureToGraph(
                self.stream, graph, list(after), None, len(after), MODE
            )
        )
        with cp.cuda.ExternalStream(int(self.stream)):
            launch()
        check(runtime.cudaStreamEndCapture(self.stream))

    def _last_node(self, graph: Any) -> Any:
        nodes, count = check(runtime.cudaGraphGetNodes(graph, 0))
        nodes, count = check(runtime.cudaGraphGetNodes(graph, count))
        return nodes[count - 1]

    def _between(self, add: Callable[[Any, list[Any]], Any]) -> Any:
        """Return a graph of two kernels with the nodes of `add` between them."""
        graph = check(runtime.cudaGraphCreate(0))
        self._capture_to(graph, [], lambda: self._around(0))
        added = add(graph, [self._last_node(graph)])
        self._capture_to(graph, [added], lambda: self._around(1))
        return graph

    def with_child(self, child: Any) -> Any:
        """Return a graph with a child graph between two kernels."""
        return self._between(lambda graph, after: self._add_child(graph, after, child))

    @staticmethod
    def _add_child(graph: Any, after: list[Any], child: Any) -> Any:
        return check(runtime.cudaGraphAddChildGraphNode(graph, after, len(after), child))

    def with_children(self, child: Any) -> Any:
        """Return a graph with one child graph twice."""
        graph = check(runtime.cudaGraphCreate(0))
        first = self._add_child(graph, [], child)
        self._add_child(graph, [first], child)
        return graph

    def with_condition(self) -> Any:
        """Return a graph with the work in the body of a conditional node, between two kernels."""

        def add(graph: Any, after: list[Any]) -> Any:
            node, body = self._condition(graph, after)
            self._capture_to(body, [], self._work)
            return node

        return self._between(add)

    def with_nested_condition(self) -> Any:
        """Return a graph with a condition in a condition, which has a child graph, too."""
        child = self.captured()

        def add(graph: Any, after: list[Any]) -> Any:
            node, body = self._condition(graph, after)
            inner_node, inner = self._condition(body, [])
            self._capture_to(inner, [], lambda: self._around(2))
            self._add_child(body, [inner_node], child)
            return node

        return self._between(add)

    def with_condition_in_capture(self) -> Any:
        """Return a captured graph to which a conditional node was added during the capture."""
        check(runtime.cudaStreamBeginCapture(self.stream, MODE))
        with cp.cuda.ExternalStream(int(self.stream)):
            self._around(0)
        _, _, graph, nodes, _, count = check(runtime.cudaStreamGetCaptureInfo(self.stream))
        node, body = self._condition(graph, list(nodes[:count]))
        set_dependencies = 1  # cudaStreamSetCaptureDependencies
        check(
            runtime.cudaStreamUpdateCaptureDependencies(
                self.stream, [node], None, 1, set_dependencies
            )
        )
        other = Graphs(self._work, self._around)
        other._capture_to(body, [], self._work)
        with cp.cuda.ExternalStream(int(self.stream)):
            self._around(1)
        return check(runtime.cudaStreamEndCapture(self.stream))

    @staticmethod
    def _condition(graph: Any, after: list[Any]) -> tuple[Any, Any]:
        """Add a conditional node that is true by default; return it and its body."""
        handle = check(runtime.cudaGraphConditionalHandleCreate(graph, 1, ASSIGN_DEFAULT))
        params = runtime.cudaGraphNodeParams()
        params.type = runtime.cudaGraphNodeType.cudaGraphNodeTypeConditional
        params.conditional.handle = handle
        params.conditional.type = runtime.cudaGraphConditionalNodeType.cudaGraphCondTypeIf
        params.conditional.size = 1
        node = check(runtime.cudaGraphAddNode(graph, after, None, len(after), params))
        return node, params.conditional.phGraph_out[0]

    def made(self) -> Iterator[tuple[str, Callable[[], Any]]]:
        """Yield a title and a function for each executable graph."""
        instantiate = runtime.cudaGraphInstantiate
        yield "executable", lambda: check(instantiate(self.captured(), 0))
        graph = self.captured()
        yield "first executable of a graph", lambda: check(instantiate(graph, 0))
        yield "second executable of a graph", lambda: check(instantiate(graph, 0))
        yield "clone", lambda: check(instantiate(check(runtime.cudaGraphClone(graph)), 0))
        yield "child graph", lambda: check(instantiate(self.with_child(graph), 0))
        yield "child graph twice", lambda: check(instantiate(self.with_children(graph), 0))
        nested = self.with_child(self.with_child(graph))
        yield "child of a child", lambda: check(instantiate(nested, 0))
        yield (
            "clone with a child",
            lambda: check(instantiate(check(runtime.cudaGraphClone(self.with_child(graph))), 0)),
        )
        yield "updated", lambda: self._updated(graph, self.captured())
        yield (
            "updated, with a child",
            lambda: self._updated(self.with_child(graph), self.with_child(self.captured())),
        )
        yield "conditional node", lambda: check(instantiate(self.with_condition(), 0))
        yield (
            "nested conditional nodes",
            lambda: check(instantiate(self.with_nested_condition(), 0)),
        )
        yield (
            "conditional node, captured",
            lambda: check(instantiate(self.with_condition_in_capture(), 0)),
        )

    @staticmethod
    def _updated(graph: Any, other: Any) -> Any:
        executable = check(runtime.cudaGraphInstantiate(graph, 0))
        check(runtime.cudaGraphExecUpdate(executable, other))
        return executable

    def launch(self, executable: Any) -> None:
        """Launch a graph."""
        check(runtime.cudaGraphLaunch(executable, self.stream))
