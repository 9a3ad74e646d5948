"""The methods of ``InferenceSession`` that run it, in sessions that capture graphs."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from epprof_nb.ep.graphs import runs_with_arrays, runs_with_bindings
from epprof_nb.ep.graphs.session_graphs import ATTRIBUTE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_EXECUTOR = "_epprof_async_runs"


def _wrap_run(original: Callable[..., Any]) -> Callable[..., Any]:
    def run(
        self: Any,  # noqa: ANN401
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: Any = None,  # noqa: ANN401
    ) -> list[Any]:
        results, outputs = _with_buffers(self, original, output_names, input_feed, run_options)
        return list(results) if results is not None else [output.numpy() for output in outputs]

    return run


def _wrap_run_with_ort_values(original: Callable[..., Any]) -> Callable[..., Any]:
    def run_with_ort_values(
        self: Any,  # noqa: ANN401
        output_names: Sequence[str] | None,
        input_dict_ort_values: Mapping[str, Any],
        run_options: Any = None,  # noqa: ANN401
    ) -> list[Any]:
        import onnxruntime

        results, outputs = _with_buffers(
            self, original, output_names, input_dict_ort_values, run_options
        )
        if results is not None:
            return list(results)
        return [onnxruntime.OrtValue.ortvalue_from_numpy(output.numpy()) for output in outputs]

    return run_with_ort_values


def _with_buffers(
    session: Any,  # noqa: ANN401
    original: Callable[..., Any],
    output_names: Sequence[str] | None,
    feed: Mapping[str, Any],
    run_options: Any,  # noqa: ANN401
) -> tuple[Sequence[Any] | None, list[Any]]:
    return runs_with_arrays.run(
        getattr(session, ATTRIBUTE),
        session,
        eager=lambda: original(session, output_names, feed, run_options),
        run_bound=lambda binding, replays: _run_bound(
            session, binding, _options(run_options, replays=replays)
        ),
        output_names=output_names,
        feed=feed,
        run_options=run_options,
    )


def _run_bound(session: Any, binding: Any, run_options: Any) -> None:  # noqa: ANN401
    import onnxruntime

    # Use the method below our wrapper, which may be the observer's wrapper.
    method = onnxruntime.InferenceSession.run_with_iobinding
    getattr(method, BELOW, method)(session, binding, run_options)


class _Replays(threading.local):
    """Settings of this thread for replays."""

    unprofiled = False


_replays = _Replays()


class UnprofiledReplays:
    """Context in which replays ignore the options of their runs.

    The options enable ONNX Runtime's profiling, which takes longer than a short replay and reports
    nothing, because no node runs. The other options have no effect on a replay.
    """

    __slots__ = ("_outer",)

    def __enter__(self) -> None:
        self._outer, _replays.unprofiled = _replays.unprofiled, True

    def __exit__(self, *_: object) -> None:
        _replays.unprofiled = self._outer


def _options(run_options: Any, *, replays: bool) -> Any:  # noqa: ANN401
    return None if replays and _replays.unprofiled else run_options


BELOW = "_epprof_below"
"""Attribute of a wrapper with the method that it wraps. Outer wrappers have a copy."""


def _wrap_run_with_iobinding(original: Callable[..., Any]) -> Callable[..., Any]:
    def run_with_iobinding(
        self: Any,  # noqa: ANN401
        iobinding: Any,  # noqa: ANN401
        run_options: Any = None,  # noqa: ANN401
    ) -> object:
        return runs_with_bindings.run(
            getattr(self, ATTRIBUTE),
            self,
            iobinding,
            run_options,
            lambda replays: original(self, iobinding, _options(run_options, replays=replays)),
        )

    return run_with_iobinding


def _wrap_run_async(original: Callable[..., Any]) -> Callable[..., Any]:  # noqa: ARG001
    def run_async(  # noqa: PLR0917 - as in ONNX Runtime
        self: Any,  # noqa: ANN401
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        callback: Callable[[Any, Any, str], object],
        user_data: Any,  # noqa: ANN401
        run_options: Any = None,  # noqa: ANN401
    ) -> None:
        executor = self.__dict__.setdefault(_EXECUTOR, None)
        if executor is None:
            # Use one thread for all runs, because a graph belongs to the thread that captured it.
            executor = ThreadPoolExecutor(1, thread_name_prefix="epprof-run-async")
            self.__dict__[_EXECUTOR] = executor

        def run() -> None:
            try:
                results, failed = self.run(output_names, input_feed, run_options), ""
            except Exception as error:  # noqa: BLE001 - reported to the callback
                results, failed = [], str(error)
            callback(results, user_data, failed)

        executor.submit(run)

    return run_async


def _wrap_release(original: Callable[..., Any]) -> Callable[..., Any]:
    def release_captured_graph(self: Any, graph_annotation_id: int = 0) -> None:  # noqa: ANN401
        graphs = getattr(self, ATTRIBUTE)
        graphs.release(graph_annotation_id)
        original(self, graph_annotation_id)
        graphs.warn_unless_used(graph_annotation_id)

    return release_captured_graph


WRAPPERS: dict[str, Callable[..., Any]] = {
    "run": _wrap_run,
    "run_with_iobinding": _wrap_run_with_iobinding,
    "run_with_ort_values": _wrap_run_with_ort_values,
    "run_async": _wrap_run_async,
    "release_captured_graph": _wrap_release,
}
"""Wrappers of methods of ``InferenceSession``, for sessions that capture graphs."""


def add_release(kind: type) -> None:
    """Add ``release_captured_graph`` to ``InferenceSession`` if the release lacks it."""
    if hasattr(kind, "release_captured_graph"):
        return

    def release_captured_graph(self: Any, graph_annotation_id: int = 0) -> None:  # noqa: ANN401
        """Release a captured graph."""
        graphs = getattr(self, ATTRIBUTE, None)
        if graphs is not None:
            graphs.release(graph_annotation_id)
            graphs.warn_unless_used(graph_annotation_id)

    kind.release_captured_graph = release_captured_graph  # type: ignore[attr-defined]
