"""The provider that creates the streams of a session.

ONNX Runtime takes the streams of a device from the provider that is named first. Nodes of its CUDA
provider get their cuBLAS and cuDNN handles from a stream of that provider, and crash the process on
ours. Our nodes need only the address, so the CUDA provider creates the streams if it is present.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from epprof_nb import _native
from epprof_nb.core.added_providers import added_to
from epprof_nb.core.errors import KernelError
from epprof_nb.core.ort_binding import PROVIDER
from epprof_nb.ep import provider_options

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

OTHERS = {
    "CUDAExecutionProvider",
    "NvTensorRTRTXExecutionProvider",
    "TensorrtExecutionProvider",
}
"""Providers of ONNX Runtime that create streams of CUDA devices."""


def _by_name(providers: Sequence[Any] | None) -> dict[str, dict[str, Any]]:
    pairs = (p if isinstance(p, tuple) else (p, {}) for p in providers or ())
    given = {name: dict(options or {}) for name, options in pairs}
    if PROVIDER in given:
        given[PROVIDER] = dict(provider_options.canonical(given[PROVIDER]))
    return given


def _given(providers: Sequence[Any] | None, session_options: Any) -> dict[str, dict[str, Any]]:  # noqa: ANN401
    """Return the providers of a session by name; empty if they are not known."""
    if providers or session_options is None:
        return _by_name(providers)
    added = added_to(session_options)
    return _by_name(added.providers) if added.is_complete and not added.has_policy else {}


def _is_left_to_others(given: dict[str, dict[str, Any]]) -> bool:
    if given:
        return not OTHERS.isdisjoint(given)
    # Our provider may be in SessionOptions whose contents are not known.
    import onnxruntime

    return not OTHERS.isdisjoint(onnxruntime.get_available_providers())


def _check_stream(given: dict[str, dict[str, Any]]) -> None:
    stream = given.get(PROVIDER, {}).get("stream")
    if stream is None:
        return
    for name in OTHERS & given.keys():
        other = given[name].get("user_compute_stream")
        if str(other) != stream:
            raise KernelError(
                f"stream={stream} is not the stream of {name}, on which all nodes of this session "
                f"run. Give it the same one: ({name!r}, {{'user_compute_stream': '{stream}'}})."
            )


def _check_device(given: dict[str, dict[str, Any]]) -> None:
    # ONNX Runtime treats the memory of all CUDA devices as one, and copies nothing between them.
    device = str(given.get(PROVIDER, {}).get("device", ""))
    if not device.startswith("cuda:"):
        return
    number = device.removeprefix("cuda:")
    for name in OTHERS & given.keys():
        other = str(given[name].get("device_id", 0))
        if other != number:
            raise KernelError(
                f"Kernels in Python on {device} cannot share a session with {name} on "
                f"cuda:{other}: ONNX Runtime copies no tensors between CUDA devices. Give both the "
                f"same device: ({name!r}, {{'device_id': '{number}'}}), or "
                f'ep.provider("cuda:{other}").'
            )


def check(providers: Sequence[Any] | None, session_options: Any = None) -> None:  # noqa: ANN401
    """Raise KernelError if another provider uses another CUDA device or another stream."""
    given = _given(providers, session_options)
    _check_device(given)
    _check_stream(given)


@contextmanager
def choosing(
    providers: Sequence[Any] | None,
    session_options: Any = None,  # noqa: ANN401
) -> Iterator[None]:
    """Let another provider create the streams of the new session if it needs to."""
    given = _given(providers, session_options)
    _native.ep_leave_streams_to_others(_is_left_to_others(given))
    try:
        yield
    finally:
        _native.ep_leave_streams_to_others(False)  # noqa: FBT003
