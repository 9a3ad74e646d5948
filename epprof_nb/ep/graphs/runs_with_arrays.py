"""Runs with arrays in sessions that capture graphs, copied to buffers of the graph and back.

Each set of input shapes has a graph; `SessionGraphs` keeps those that were used last.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from epprof_nb.core.ort_binding import PROVIDER
from epprof_nb.ep import types
from epprof_nb.ep.graphs.session_graphs import SKIP, GraphSlot, SessionGraphs, graph_id

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

_Result = TypeVar("_Result")

_MAX_HOST_BYTES = 1024
"""Maximum size of an input in host memory, a constant of its graph; larger ones run eagerly."""


@dataclass(slots=True)
class _Buffers:
    """Bound device buffers of the inputs and outputs of a run; host inputs are constants."""

    inputs: dict[str, Any]
    outputs: list[Any]
    binding: Any
    constants: list[Any]
    """Kept alive, because the binding refers to their memory without owning it."""


def run(
    graphs: SessionGraphs,
    session: Any,  # noqa: ANN401
    *,
    eager: Callable[[], Sequence[Any]],
    run_bound: Callable[[Any, bool], object],
    output_names: Sequence[str] | None,
    feed: Mapping[str, Any],
    run_options: Any,  # noqa: ANN401
) -> tuple[Sequence[Any] | None, list[Any]]:
    """Make a run with arrays or OrtValues, if possible by replaying a graph.

    Parameters
    ----------
    graphs, session
        The session and its graphs.
    eager
        Makes the run without a graph.
    run_bound
        Makes a run with an ``IOBinding``; its second argument says whether it is a replay.
    output_names, feed, run_options
        Arguments of the run.

    Returns
    -------
    results
        The results of an eager run; None if a graph was replayed.
    outputs
        The buffers with the results of the replay, which belong to the graph.
    """
    number = graph_id(run_options)
    names = list(output_names or [output.name for output in session.get_outputs()])
    host_inputs = graphs.host_inputs(session)
    key = None if number == SKIP else _key_of_inputs(session, host_inputs, names, feed)
    if key is None:
        return eager(), []
    slot = graphs.slot(number, key)
    if slot is not None and slot.refused:
        graphs.check_current(slot)
    if slot is None or slot.refused or slot.graph is None:

        def captured() -> Sequence[Any]:
            results = eager()  # the first of the runs that warm up
            place = slot
            if place is None:
                place = _with_memory(
                    graphs, _new_slot, graphs, session, host_inputs, number, names, feed, results
                )
                if place is None:
                    return results
                graphs.add(place, key)
            if not place.refused and _with_memory(graphs, _copy_in, place.buffers, feed):
                graphs.run(place, partial(run_bound, place.buffers.binding), graphs.warm_ups - 1)
            return results

        return graphs.as_one_run(captured), []
    if not _with_memory(graphs, _copy_in, slot.buffers, feed):
        return eager(), []
    if graphs.run(slot, partial(run_bound, slot.buffers.binding), graphs.warm_ups):
        return None, slot.buffers.outputs
    return eager(), []


def _key_of_inputs(
    session: Any,  # noqa: ANN401
    host_inputs: frozenset[str],
    names: list[str],
    feed: Mapping[str, Any],
) -> Hashable | None:
    """Return a key that is equal for runs that can share buffers; None if a run cannot use any."""
    inputs = session.get_inputs()
    if len(feed) != len(inputs):
        return None
    parts: list[Hashable] = []
    for described in inputs:
        value = feed.get(described.name)
        shape = _shape(value, described.type)
        if shape is None:
            return None
        parts.append(shape)
        if described.name in host_inputs:
            array = _array(value)
            if array.nbytes > _MAX_HOST_BYTES:
                return None
            parts.append(array.tobytes())
    return (tuple(parts), tuple(names))


def _shape(value: Any, onnx_type: str) -> tuple[int, ...] | None:  # noqa: ANN401
    """Return the shape of an input; None for anything but a tensor of this type."""
    dtype = types.dtype_of(onnx_type)
    if isinstance(value, np.ndarray):
        return value.shape if dtype is not None and value.dtype == dtype else None
    is_tensor = dtype is not None and hasattr(value, "is_tensor") and value.is_tensor()
    if not is_tensor or not value.has_value() or value.data_type() != onnx_type:
        return None
    return tuple(value.shape())


def _new_slot(  # noqa: PLR0917
    graphs: SessionGraphs,
    session: Any,  # noqa: ANN401
    host_inputs: frozenset[str],
    number: int,
    names: list[str],
    feed: Mapping[str, Any],
    results: Sequence[Any],
) -> GraphSlot:
    """Return a slot for a graph, with buffers for such inputs and outputs."""
    import onnxruntime

    slot = GraphSlot(number, None)
    outputs = []
    for result in results:
        array = _array(result)
        if array is None or array.dtype.name not in types.ALL:
            slot.refused = True  # strings, sequences and sparse tensors are not on the device
            return slot
        outputs.append(_new_buffer(graphs, array.shape, array.dtype.type))
    inputs, constants = {}, []
    binding = session.io_binding()
    for name, value in feed.items():
        array = _array(value)
        if name in host_inputs:
            constants.append(onnxruntime.OrtValue.ortvalue_from_numpy(array.copy()))
            binding.bind_ortvalue_input(name, constants[-1])
        else:
            inputs[name] = _new_buffer(graphs, array.shape, array.dtype.type)
            binding.bind_ortvalue_input(name, inputs[name])
    for name, buffer in zip(names, outputs, strict=True):
        binding.bind_ortvalue_output(name, buffer)
    slot.buffers = _Buffers(inputs, outputs, binding, constants)
    return slot


def _array(value: Any) -> Any:  # noqa: ANN401
    """Return a tensor as an array; None if the value is not a tensor."""
    if isinstance(value, np.ndarray):
        return value
    return value.numpy() if hasattr(value, "is_tensor") and value.is_tensor() else None


def _copy_in(buffers: _Buffers, feed: Mapping[str, Any]) -> bool:
    for name, buffer in buffers.inputs.items():
        value = feed[name]
        if isinstance(value, np.ndarray):
            buffer.update_inplace(np.ascontiguousarray(value))
        else:
            import onnxruntime

            onnxruntime.copy_tensors([value], [buffer])
    return True


def _with_memory(
    graphs: SessionGraphs,
    step: Callable[..., _Result],
    *args: Any,
) -> _Result | None:
    """Return the result of a step that uses memory of the device; None if it is unavailable.

    A session may outlive the registration of its library, which ONNX Runtime needs to find memory.
    """
    try:
        return step(*args)
    except RuntimeError:
        try:
            _new_buffer(graphs, (1,), np.uint8)
        except RuntimeError:
            graphs.warn_once(
                f"A library of {PROVIDER} was unregistered, so ONNX Runtime cannot reach the "
                "memory of the device for runs with arrays. They are eager. Register it again for "
                "graphs."
            )
            graphs.release_all()  # no buffer outlives the registration of its memory
            return None
        raise


def _new_buffer(graphs: SessionGraphs, shape: Sequence[int], dtype: Any) -> Any:  # noqa: ANN401
    import onnxruntime

    device = ("gpu", 0) if graphs.cuda_device is None else ("cuda", graphs.cuda_device)
    return onnxruntime.OrtValue.ortvalue_from_shape_and_type(shape, dtype, *device)
