"""Runs with a user's ``IOBinding`` in sessions that capture graphs.

A replay uses the buffers of the captured binding. ONNX Runtime does not report the buffers of a
binding, so wrappers note them when they are bound.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from epprof_nb import _native
from epprof_nb.ep.graphs.session_graphs import SKIP, GraphSlot, SessionGraphs, graph_id

if TYPE_CHECKING:
    from collections.abc import Callable

METHODS = (
    "bind_cpu_input", "bind_input", "bind_ortvalue_input", "bind_output", "bind_ortvalue_output",
    "clear_binding_inputs", "clear_binding_outputs",
)  # fmt: skip
_ATTRIBUTE = "_epprof_buffers"
_BOUND = "_epprof_bound"
_CHECKED = "_epprof_checked_buffers"
_KEY = "binding"
_HOST_DEVICE = -1
"""Number of the host device for `ep_device_of`."""
_UNKNOWN = -1
_GPUS = ("gpu", "cuda")
"""ONNX Runtime's names of the devices whose memory may be on a CUDA device."""

# Address, shape, type and number of the GPU of a buffer; None: not fixed, or in host memory.
_Buffer = tuple[int, tuple[int, ...], str, int] | None


def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a method of ``IOBinding`` so that it notes the bound buffers; see `METHODS`."""
    kind = "input" if "input" in original.__name__ else "output"
    describe = _DESCRIBE.get(original.__name__)
    clears = original.__name__.startswith("clear")

    @functools.wraps(original)
    def bind(self: Any, *args: Any, **kwargs: Any) -> object:  # noqa: ANN401
        result = original(self, *args, **kwargs)
        self.__dict__.pop(_CHECKED, None)
        noted = self.__dict__.setdefault(_ATTRIBUTE, {"input": {}, "output": {}})[kind]
        bound = self.__dict__.setdefault(_BOUND, {})
        if clears:
            for name in noted:
                bound.pop((kind, name), None)
            noted.clear()
            return result
        name = args[0] if args else kwargs["name"]
        noted[name] = describe(*args, **kwargs) if describe else None
        bound[kind, name] = (args[1:], kwargs) if describe else None
        return result

    return bind


def _of_value(name: str, ortvalue: Any) -> _Buffer:  # noqa: ANN401, ARG001
    if not ortvalue.is_tensor():
        return None
    if ortvalue.device_name() not in _GPUS:
        return None
    # ONNX Runtime does not report its device.
    return ortvalue.data_ptr(), tuple(ortvalue.shape()), ortvalue.data_type(), _UNKNOWN


def _of_address(  # noqa: PLR0917 - as in ONNX Runtime
    name: str,  # noqa: ARG001
    device_type: str = "cpu",
    device_id: int = 0,
    element_type: Any = None,  # noqa: ANN401
    shape: Any = None,  # noqa: ANN401
    buffer_ptr: int | None = None,
) -> _Buffer:
    if buffer_ptr is None or device_type not in _GPUS:
        return None
    return buffer_ptr, tuple(shape), str(element_type), device_id


_DESCRIBE: dict[str, Callable[..., _Buffer]] = {
    "bind_input": _of_address,
    "bind_output": _of_address,
    "bind_ortvalue_input": _of_value,
    "bind_ortvalue_output": _of_value,
}


def run(
    graphs: SessionGraphs,
    session: Any,  # noqa: ANN401
    binding: Any,  # noqa: ANN401
    run_options: Any,  # noqa: ANN401
    call: Callable[[bool], object],
) -> object:
    """Make a run with a binding. If all its buffers are fixed, replay its graph.

    Parameters
    ----------
    graphs, session
        The session and its graphs.
    binding
        The ``IOBinding``.
    run_options
        The options of the run.
    call
        Makes the run; its argument says whether it is a replay.
    """
    number = graph_id(run_options)
    if number == SKIP:
        return call(False)  # noqa: FBT003
    unfixed, buffers = _checked(session, graphs, binding)
    if unfixed is not None:
        device = '"gpu"' if graphs.cuda_device is None else f'"cuda", {graphs.cuda_device}'
        graphs.warn_once(
            f"Graph {number} was not captured: {unfixed} of the IOBinding has no permanent buffer "
            f"on the device. Bind it with bind_ortvalue_..., OrtValue on device {device}, or "
            "run the session with run(), which does. Its runs are eager. To request "
            'eager runs, set the run option "gpu_graph_id" to "-1".'
        )
        return call(False)  # noqa: FBT003
    slot = graphs.slot(number, _KEY)
    if slot is None:
        # The graph uses these values even after the binding gets others.
        slot = GraphSlot(number, (buffers, binding, tuple(binding.__dict__[_BOUND].values())))
        graphs.add(slot, _KEY)
    if slot.buffers[0] != buffers and not (slot.graph and graphs.has_other(number, _KEY, buffers)):
        graphs.warn_once(
            f"This IOBinding is not the one of graph {number}, whose replay uses the buffers that "
            "were bound when it was captured, so it ran eagerly. Write new inputs into the "
            "buffers of the captured binding, give this one a graph of its own with the run "
            f'option "gpu_graph_id", or call session.release_captured_graph({number}) first.'
        )
        return call(False)  # noqa: FBT003
    if not graphs.run(slot, call, graphs.warm_ups):
        return call(False)  # noqa: FBT003
    return None


def _checked(
    session: Any,  # noqa: ANN401
    graphs: SessionGraphs,
    binding: Any,  # noqa: ANN401
) -> tuple[str | None, tuple[Any, ...]]:
    """Return `_unfixed` and the buffers of a binding; inspect a binding once after each change."""
    known = binding.__dict__.get(_CHECKED)
    if known is None or known[0] != graphs.number:
        noted = binding.__dict__.get(_ATTRIBUTE, {"input": {}, "output": {}})
        buffers = tuple(tuple(sorted(noted[kind].items())) for kind in ("input", "output"))
        known = (graphs.number, _unfixed(session, graphs, noted), buffers)
        binding.__dict__[_CHECKED] = known
    return known[1], known[2]


def _unfixed(
    session: Any,  # noqa: ANN401
    graphs: SessionGraphs,
    noted: dict[str, dict[str, _Buffer]],
) -> str | None:
    """Describe an input or output without a permanent buffer on the device."""
    for name in [described.name for described in session.get_inputs()]:
        if name in graphs.host_inputs(session):
            return f"input {name!r}, which is read in host memory,"
        if not _is_fixed(graphs, noted["input"].get(name)):
            return f"input {name!r}"
    for name, buffer in noted["output"].items():
        if not _is_fixed(graphs, buffer):
            return f"output {name!r}"
    return None if noted["output"] else "every output"


def _is_fixed(graphs: SessionGraphs, buffer: _Buffer) -> bool:
    if buffer is None:
        return False
    owner, device = _native.ep_device_of(buffer[0]), graphs.cuda_device
    if device is None or owner is not None:
        return owner == (_HOST_DEVICE if device is None else device)
    return buffer[-1] in (device, _UNKNOWN)  # memory of another library, such as CuPy
