"""The execution provider with kernels in Python, as an entry of a session's provider list."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from epprof_nb import _native
from epprof_nb.core.errors import KernelError
from epprof_nb.core.ort_binding import PROVIDER, register_library
from epprof_nb.ep import (
    context,
    cuda,
    cuda_capture,
    devices,
    kernel_sets,
    kernels,  # noqa: F401 - defines the built-in kernels
    sessions,
)
from epprof_nb.ep.graphs import creation, session_graphs
from epprof_nb.ep.kernel import REGISTRY
from epprof_nb.util.suggestions import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable

_GRAPHS = "enable_cuda_graph"
_WARM_UPS = "min_num_runs_before_cuda_graph_capture"
_OPTIONS = ("device", "device_id", "stream", "only", "nodes", "prefer_nhwc", _GRAPHS, _WARM_UPS)
_SESSION_ARGUMENTS = (
    "sess_options", "disabled_optimizers", "enable_fallback", "read_config_from_model",
)  # fmt: skip
_CONTROL_FLOW = ("If", "Loop", "Scan")


def provider(
    device: str = "host",
    *,
    only: Iterable[str] | None = None,
    nodes: Iterable[str] | None = None,
    stream: int | None = None,
    prefer_nhwc: bool = False,
    enable_cuda_graph: bool = False,
    min_num_runs_before_cuda_graph_capture: int = session_graphs.DEFAULT_WARM_UPS,
) -> tuple[str, dict[str, str]]:
    """Return an entry for the ``providers`` of an ``onnxruntime.InferenceSession``.

    Parameters
    ----------
    device
        ``"host"``: the host device, in NumPy. ``"cuda:0"``: a CUDA device, in CuPy (experimental);
        ``"cuda"`` is the first one.
    only
        Types of operators to take over; by default, all with a kernel.
    nodes
        Names of nodes to take over; all by default. With `only`, both must hold. Creating a session
        whose model lacks one of them raises KernelError.
    stream
        Address of a CUDA stream on which the session runs, such as ``cupy.cuda.Stream().ptr``. It
        must outlive the session. By default, each session has its own streams.
    prefer_nhwc
        Whether ONNX Runtime converts convolutions, pooling and similar operators to channels as the
        last axis, and transposes tensors between both layouts.
    enable_cuda_graph
        Capture the launches of a run in a graph and replay it in later runs with inputs of the same
        shapes. All nodes must run on the provider. Needs ONNX Runtime 1.26.
    min_num_runs_before_cuda_graph_capture
        Number of eager runs before the capture, 1 to 7. They happen inside the first run.

    Returns
    -------
    name, options
        An entry of a provider list. If the provider is first, it takes each node for which it has a
        kernel, and leaves the other nodes to the later providers.

    Raises
    ------
    KernelError
        If the device is not supported, no kernel exists for a type in `only`, or the value of an
        option is wrong.
    CaptureError
        If ONNX Runtime is missing or older than 1.25.

    Examples
    --------
    >>> from epprof_nb import ep
    >>> ep.provider("host", only=["Softmax"])
    ('EpprofExecutionProvider', {'device': 'host', 'only': '["Softmax"]'})
    """
    for name, value in (("prefer_nhwc", prefer_nhwc), (_GRAPHS, enable_cuda_graph)):
        # Every non-empty text is true, also "0".
        if value not in (True, False):
            raise KernelError(f"{name}={value!r} is neither True nor False.")
    options = devices.options_of(device, stream)
    if only is not None:
        options["only"] = json.dumps(_names(only, "only"))
    if nodes is not None:
        options["nodes"] = json.dumps(_names(nodes, "nodes"))
    if prefer_nhwc:
        options["prefer_nhwc"] = "1"
    if enable_cuda_graph:
        options[_GRAPHS] = "1"
        options[_WARM_UPS] = str(min_num_runs_before_cuda_graph_capture)
    _check(options)
    context.connect(_open_session, session_graphs.release)
    # The host device comes first: without device_id, ONNX Runtime takes the first device.
    register_library(PROVIDER, "the provider of Python kernels")
    if "device_id" in options:
        cuda_capture.connect()
        register_library(cuda.LIBRARY, "the provider of Python kernels on CUDA devices")
    sessions.patch()
    return PROVIDER, options


def session(
    model: object,
    *,
    device: str = "host",
    only: Iterable[str] | None = None,
    nodes: Iterable[str] | None = None,
    stream: int | None = None,
    prefer_nhwc: bool = False,
    enable_cuda_graph: bool = False,
    min_num_runs_before_cuda_graph_capture: int = session_graphs.DEFAULT_WARM_UPS,
    **options: Any,
) -> Any:  # noqa: ANN401
    """Create an ``onnxruntime.InferenceSession`` whose nodes run on kernels in Python.

    Parameters
    ----------
    model
        Path of the model, or the model as bytes or an ``onnx.ModelProto``.
    device, only, nodes, stream, prefer_nhwc, enable_cuda_graph, \
    min_num_runs_before_cuda_graph_capture
        See `provider`. Nodes without a kernel run on ONNX Runtime's CPU provider.
    **options
        Further arguments of ``InferenceSession``: ``sess_options``, ``disabled_optimizers``,
        ``enable_fallback``, ``read_config_from_model``.

    Returns
    -------
    onnxruntime.InferenceSession
        The session.

    Raises
    ------
    KernelError
        If an option is unknown or its value is wrong, the device is not supported, no kernel exists
        for a type in `only`, or the model lacks a name in `nodes`.
    CaptureError
        If ONNX Runtime is missing or older than 1.25.
    """
    unknown = [name for name in options if name not in _SESSION_ARGUMENTS]
    if unknown:
        known = [name for name in _OPTIONS if name != "device_id"]
        raise KernelError(
            f"epprof_nb.ep.session() has no option {', '.join(map(repr, unknown))}. Its options "
            f"are {', '.join(known)}; it passes on {', '.join(_SESSION_ARGUMENTS)}."
        )
    entry = provider(
        device,
        only=only,
        nodes=nodes,
        stream=stream,
        prefer_nhwc=prefer_nhwc,
        enable_cuda_graph=enable_cuda_graph,
        min_num_runs_before_cuda_graph_capture=min_num_runs_before_cuda_graph_capture,
    )
    import onnxruntime

    if hasattr(model, "SerializeToString"):
        model = model.SerializeToString()
    if enable_cuda_graph:
        # Otherwise ONNX Runtime would continue without the provider and without graphs.
        options.setdefault("enable_fallback", 0)
    return onnxruntime.InferenceSession(model, providers=[entry, "CPUExecutionProvider"], **options)


def _names(names: Iterable[str], option: str) -> list[str]:
    listed = [names] if isinstance(names, str) else list(names)
    if not all(isinstance(name, str) for name in listed):
        raise KernelError(f"{option}= takes names, not {listed!r}.")
    return listed


def _check(options: dict[str, str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the selected types and nodes; raise KernelError if an option is wrong."""
    unknown = [name for name in options if name not in _OPTIONS]
    if unknown:
        raise KernelError(
            f"{PROVIDER} has no option {', '.join(map(repr, unknown))}. Its options are "
            f"{', '.join(_OPTIONS)}; epprof_nb.ep.provider() returns them."
        )
    devices.check(options)
    selected = []
    for option in ("only", "nodes"):
        names = selected_names(options, option)
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise KernelError(f"{option}={options[option]!r} is not a JSON list of names.")
        if option in options and not names:
            raise KernelError(f"{option}= is empty, so no node would be taken over. Leave it out.")
        selected.append(tuple(names))
    if options.get("prefer_nhwc", "0") not in ("0", "1"):
        raise KernelError(f"prefer_nhwc={options['prefer_nhwc']!r} is neither 0 nor 1.")
    only, nodes = selected
    _warm_ups(options)
    if set(only) - {*_CONTROL_FLOW}:
        known = {*_CONTROL_FLOW, *(k.declaration.op_type for k in REGISTRY.kernels())}
        missing = sorted({*only} - known)
        if missing:
            question = did_you_mean(missing[0], known)
            meant = f"; {question} Otherwise define" if question else ". Define"
            raise KernelError(
                f"only={list(only)!r}: there is no kernel for {', '.join(missing)}{meant} it with "
                "@epprof_nb.ep.kernel first."
            )
    return only, nodes


def selected_names(options: dict[str, str], option: str) -> Any:  # noqa: ANN401
    """Return the value of the option ``only`` or ``nodes``, a list of names if valid."""
    try:
        return json.loads(options.get(option, "[]"))
    except ValueError:
        return [options[option]]


def _warm_ups(options: dict[str, str]) -> int | None:
    """Return the number of runs before a capture; None if graphs are off."""
    switch = options.get(_GRAPHS, "0").lower()
    if switch not in ("0", "1", "false", "true"):
        raise KernelError(f"{_GRAPHS}={options[_GRAPHS]!r} is neither 0 nor 1.")
    text = options.get(_WARM_UPS, str(session_graphs.DEFAULT_WARM_UPS))
    try:
        number = int(text)
    except ValueError:
        number = 0
    if not 1 <= number <= session_graphs.MAX_WARM_UPS:
        raise KernelError(
            f"{_WARM_UPS}={text} is out of range. It is 1 to {session_graphs.MAX_WARM_UPS}: ONNX "
            "Runtime gives up if no graph was captured in eight runs."
        )
    return number if switch in ("1", "true") else None


def _open_session(options: dict[str, str]) -> tuple[Any, ...]:
    """Return the native core's input for a new session; see `ep_set_functions`."""
    only, nodes = _check(options)
    device = options.get("device", devices.HOST)
    found = kernel_sets.kernels_for(device, channels_last=options.get("prefer_nhwc") == "1")
    number, warm_ups = _native.ort_new_session(), _warm_ups(options)
    creation.note_opened(number, warm_ups, devices.cuda_index(device), selected=bool(only or nodes))
    return number, warm_ups is not None, only, nodes, found
