"""The execution provider with kernels in Python, as an entry of a session's provider list."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from epprof_nb import _native
from epprof_nb.core.errors import KernelError
from epprof_nb.core.ort_binding import PROVIDER
from epprof_nb.ep import (
    context,
    cuda_functions,
    devices,
    kernel_sets,
    kernels,  # noqa: F401 - defines the built-in kernels
    provider_options,
    registration,
    session_patches,
)
from epprof_nb.ep.graphs import session_creation, session_graphs
from epprof_nb.ep.provider_options import GRAPHS, OPTIONS, WARM_UPS

if TYPE_CHECKING:
    from collections.abc import Iterable

_SESSION_ARGUMENTS = (
    "sess_options", "disabled_optimizers", "enable_fallback", "read_config_from_model",
)  # fmt: skip


def provider(
    device: str = "host",
    *,
    only: Iterable[str] | None = None,
    nodes: Iterable[str] | None = None,
    stream: int | None = None,
    prefer_nhwc: bool = False,
    use_tf32: bool | None = None,
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
    use_tf32
        Whether products of float32, convolutions included, round their elements to TF32 on CUDA
        devices: they are several times as fast, with three digits instead of seven. The default is
        whether ``CUPY_TF32=1`` is in the environment; ONNX Runtime's CUDA provider has True.
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
    for name, value in (("prefer_nhwc", prefer_nhwc), (GRAPHS, enable_cuda_graph)):
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
    if use_tf32 is not None:
        if use_tf32 not in (True, False):
            raise KernelError(f"use_tf32={use_tf32!r} is neither True, False nor None.")
        options["use_tf32"] = str(int(use_tf32))
    if enable_cuda_graph:
        options[GRAPHS] = "1"
        options[WARM_UPS] = str(min_num_runs_before_cuda_graph_capture)
    index = devices.cuda_index(device)
    provider_options.check(options, index)
    connect()
    registration.register(index)
    return PROVIDER, options


def session(
    model: object,
    *,
    device: str = "host",
    only: Iterable[str] | None = None,
    nodes: Iterable[str] | None = None,
    stream: int | None = None,
    prefer_nhwc: bool = False,
    use_tf32: bool | None = None,
    enable_cuda_graph: bool = False,
    min_num_runs_before_cuda_graph_capture: int = session_graphs.DEFAULT_WARM_UPS,
    **options: Any,
) -> Any:  # noqa: ANN401
    """Create an ``onnxruntime.InferenceSession`` whose nodes run on kernels in Python.

    Parameters
    ----------
    model
        Path of the model, or the model as bytes or an ``onnx.ModelProto``.
    device, only, nodes, stream, prefer_nhwc, use_tf32, enable_cuda_graph, \
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
        known = [name for name in OPTIONS if name != "device_id"]
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
        use_tf32=use_tf32,
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


def connect() -> None:
    """Connect the native core and ONNX Runtime's sessions to the kernels.

    The core calls this itself if a program registers the library with ONNX Runtime by hand.
    """
    context.connect(_open_session, session_graphs.release, session_patches.domains)
    session_patches.patch()


def _open_session(given: dict[str, str], device: int) -> tuple[Any, ...]:
    """Return the native core's input for a new session; see `ep_set_functions`."""
    try:
        options = provider_options.check(given, None if device < 0 else device)
    except KernelError as error:
        session_creation.note_refused(error)
        raise
    if options.device is not None:
        cuda_functions.connect()
        exactly = -1 if options.extends_exactly is None else int(options.extends_exactly)
        _native.ep_device_configure(options.device, options.memory_limit, exactly)
    name = devices.name_of(options.device)
    found = kernel_sets.kernels_for(
        name, channels_last=options.prefer_nhwc, use_tf32=options.use_tf32
    )
    number, warm_ups = _native.ort_new_session(), options.warm_ups
    selected = bool(options.only or options.nodes)
    session_creation.note_opened(number, warm_ups, options.device, selected=selected)
    return number, warm_ups is not None, options.stream, options.only, options.nodes, found
