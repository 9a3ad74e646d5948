"""Runs with arrays in sessions that capture graphs: copied into buffers of the graph, and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.ep import types
from epprof_nb.ep.graphs import SKIP, GraphSlot, SessionGraphs, graph_id

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

_DEVICE = ("gpu", 0)


@dataclass(slots=True)
class _Buffers:
    """Device buffers of all inputs and outputs of a run, bound."""

    inputs: dict[str, Any]
    outputs: list[Any]
    binding: Any


def run(
    graphs: SessionGraphs,
    session: Any,  # noqa: ANN401
    *,
    eager: Callable[[], Sequence[Any]],
    run_bound: Callable[[Any], object],
    output_names: Sequence[str] | None,
    feed: Mapping[str, Any],
    run_options: Any,  # noqa: ANN401
) -> tuple[Sequence[Any] | None, list[Any]]:
    """Make a run with arrays or OrtValues, by the replay of a graph if that is possible.

    Parameters
    ----------
    graphs, session
        The session and its graphs.
    eager
        Makes the run without a graph.
    run_bound
        Makes a run with an ``IOBinding``.
    output_names, feed, run_options
        Arguments of the run.

    Returns
    -------
    results
        The results of an eager run; None if a graph was replayed.
    outputs
        The buffers that hold the results of the replay. They are the graph's.
    """
    number = graph_id(run_options)
    names = list(output_names or [output.name for output in session.get_outputs()])
    key = None if number == SKIP else _signature(session, names, feed)
    if key is None:
        return eager(), []
    slot = graphs.slot(number, key)
    if slot is not None and slot.refused:
        graphs.check_current(slot)
    if slot is None or slot.refused or slot.graph is None:
        results = eager()  # the first of the runs that warm up
        if slot is None:
            slot = _new_slot(session, number, names, feed, results)
            graphs.add(slot, key)
        if slot.refused:
            return results, []
        _copy_in(slot.buffers, feed)
        graphs.run(slot, lambda: run_bound(slot.buffers.binding), graphs.warm_ups - 1)
        return results, []
    _copy_in(slot.buffers, feed)
    if graphs.run(slot, lambda: run_bound(slot.buffers.binding), graphs.warm_ups):
        return None, slot.buffers.outputs
    return eager(), []


def _signature(session: Any, names: list[str], feed: Mapping[str, Any]) -> Hashable | None:  # noqa: ANN401
    """Return what identifies runs that can share buffers; None if a run can have none."""
    inputs = session.get_inputs()
    if len(feed) != len(inputs):
        return None
    parts: list[Hashable] = []
    for described in inputs:
        value = feed.get(described.name)
        dtype = types.dtype_of(described.type)
        if dtype is None or value is None:
            return None
        if isinstance(value, np.ndarray):
            if value.dtype != dtype:
                return None  # ONNX Runtime says what is wrong
            parts.append(value.shape)
        elif hasattr(value, "is_tensor") and value.is_tensor() and value.has_value():
            if value.data_type() != described.type:
                return None
            parts.append(tuple(value.shape()))
        else:
            return None
    return (tuple(parts), tuple(names))


def _new_slot(
    session: Any,  # noqa: ANN401
    number: int,
    names: list[str],
    feed: Mapping[str, Any],
    results: Sequence[Any],
) -> GraphSlot:
    """Return the place for a graph, with buffers for inputs and outputs like these."""
    import onnxruntime

    slot = GraphSlot(number, None)
    made = onnxruntime.OrtValue.ortvalue_from_shape_and_type
    outputs = []
    for result in results:
        array = result if isinstance(result, np.ndarray) else _array(result)
        if array is None or array.dtype.name not in types.NUMBERS:
            slot.refused = True  # strings, sequences and sparse tensors are not on the device
            return slot
        outputs.append(made(array.shape, array.dtype.type, *_DEVICE))
    inputs = {name: _buffer_like(value) for name, value in feed.items()}
    binding = session.io_binding()
    for name, buffer in inputs.items():
        binding.bind_ortvalue_input(name, buffer)
    for name, buffer in zip(names, outputs, strict=True):
        binding.bind_ortvalue_output(name, buffer)
    slot.buffers = _Buffers(inputs, outputs, binding)
    return slot


def _buffer_like(value: Any) -> Any:  # noqa: ANN401
    import onnxruntime

    dtype = value.dtype if isinstance(value, np.ndarray) else types.dtype_of(value.data_type())
    shape = value.shape if isinstance(value, np.ndarray) else value.shape()
    return onnxruntime.OrtValue.ortvalue_from_shape_and_type(shape, np.dtype(dtype).type, *_DEVICE)


def _array(value: Any) -> Any:  # noqa: ANN401
    return value.numpy() if hasattr(value, "is_tensor") and value.is_tensor() else None


def _copy_in(buffers: _Buffers, feed: Mapping[str, Any]) -> None:
    for name, buffer in buffers.inputs.items():
        value = feed[name]
        if isinstance(value, np.ndarray):
            buffer.update_inplace(np.ascontiguousarray(value))
        else:
            import onnxruntime

            onnxruntime.copy_tensors([value], [buffer])
