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
    devices,
    kernels,  # noqa: F401 - defines the built-in ones
    sessions,
    types,
)
from epprof_nb.ep.kernel import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Iterable

_OPTIONS = ("device", "device_id", "stream", "only", "nodes")
_INTERNAL = ("token",)
_CONTROL_FLOW = ("If", "Loop", "Scan")


def provider(
    device: str = "host",
    *,
    only: Iterable[str] | None = None,
    nodes: Iterable[str] | None = None,
    stream: int | None = None,
) -> tuple[str, dict[str, str]]:
    """Return an entry for the ``providers`` of an ``onnxruntime.InferenceSession``.

    Parameters
    ----------
    device
        ``"host"``: the host device, in NumPy. ``"cuda:0"``: a CUDA device, in CuPy (experimental);
        ``"cuda"`` is the first one.
    only
        Types of operators to take over; all that have a kernel by default.
    nodes
        Names of nodes to take over; all by default. With `only`, both must hold.
    stream
        Address of a CUDA stream on which the session runs, such as ``cupy.cuda.Stream().ptr``. It
        must outlive the session. By default each session has streams of its own.

    Returns
    -------
    name, options
        An entry of a provider list. Named first, the provider takes each node that it has a kernel
        for, and leaves the others to the providers named after it.

    Raises
    ------
    KernelError
        If the device is not supported, or no kernel exists for a type in `only`.
    CaptureError
        If ONNX Runtime is missing or older than 1.25.

    Examples
    --------
    >>> from epprof_nb import ep
    >>> ep.provider("host", only=["Softmax"])
    ('EpprofExecutionProvider', {'device': 'host', 'only': '["Softmax"]'})
    """
    options = devices.options_of(device, stream)
    if only is not None:
        options["only"] = json.dumps(_names(only, "only"))
    if nodes is not None:
        options["nodes"] = json.dumps(_names(nodes, "nodes"))
    _check(options)
    context.connect(_open_session)
    # The host device comes first: without device_id, ONNX Runtime takes the first device.
    register_library(PROVIDER, "the provider of Python kernels")
    if "device_id" in options:
        cuda.connect()
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
    **options: Any,
) -> Any:  # noqa: ANN401
    """Create an ``onnxruntime.InferenceSession`` whose nodes run on kernels in Python.

    Parameters
    ----------
    model
        Path of the model, or the model as bytes.
    device, only, nodes, stream
        See `provider`. Nodes without a kernel run on ONNX Runtime's CPU provider.
    **options
        Further arguments of ``InferenceSession``, such as ``sess_options``.

    Returns
    -------
    onnxruntime.InferenceSession
        The session.

    Raises
    ------
    KernelError
        If the device is not supported, or no kernel exists for a type in `only`.
    CaptureError
        If ONNX Runtime is missing or older than 1.25.
    """
    entry = provider(device, only=only, nodes=nodes, stream=stream)
    import onnxruntime

    return onnxruntime.InferenceSession(model, providers=[entry, "CPUExecutionProvider"], **options)


def _names(names: Iterable[str], option: str) -> list[str]:
    listed = [names] if isinstance(names, str) else list(names)
    if not all(isinstance(name, str) for name in listed):
        raise KernelError(f"{option}= takes names, not {listed!r}.")
    return listed


def _check(options: dict[str, str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the selected types and nodes; raise KernelError if an option is wrong."""
    unknown = [name for name in options if name not in (*_OPTIONS, *_INTERNAL)]
    if unknown:
        raise KernelError(
            f"{PROVIDER} has no option {', '.join(map(repr, unknown))}. Its options are "
            f"{', '.join(_OPTIONS)}; epprof_nb.ep.provider() returns them."
        )
    devices.check(options)
    selected = []
    for option in ("only", "nodes"):
        try:
            names = json.loads(options.get(option, "[]"))
        except ValueError:
            names = [options[option]]
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise KernelError(f"{option}={options[option]!r} is not a JSON list of names.")
        if option in options and not names:
            raise KernelError(f"{option}= is empty, so no node would be taken over. Leave it out.")
        selected.append(tuple(names))
    only, nodes = selected
    known = {k.declaration.op_type for k in REGISTRY.kernels()} | {*_CONTROL_FLOW}
    missing = [name for name in only if name not in known]
    if missing:
        raise KernelError(
            f"only={list(only)!r}: there is no kernel for {', '.join(missing)}. Define it with "
            "@epprof_nb.ep.kernel first."
        )
    return only, nodes


def _open_session(options: dict[str, str]) -> tuple[Any, ...]:
    """Return what the native core needs for a new session; see `ep_set_functions`."""
    only, nodes = _check(options)
    number = int(options["token"]) if "token" in options else _native.ort_new_session()
    device = options.get("device", "host")
    specs = []
    for kernel in REGISTRY.kernels():
        d = kernel.declaration
        for first, last, constraints in d.ranges:
            numbers = {name: tuple(types.NUMBERS[t] for t in ts) for name, ts in constraints}
            specs.append((
                d.op_type, d.domain, first, last, numbers, d.host_inputs, d.host_outputs,
                kernel if device == "host" else context.OnDevice(kernel, device),
            ))  # fmt: skip
    return number, True, only, nodes, tuple(specs)
