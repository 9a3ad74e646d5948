"""Access to ONNX Runtime beyond its Python interface: plugin libraries and C pointers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from epprof_nb import _native
from epprof_nb.core.errors import CaptureError
from epprof_nb.core.ort_releases import check_release
from epprof_nb.util.fork_safe_lock import fork_safe_lock

if TYPE_CHECKING:
    from collections.abc import Callable

PROVIDER = "EpprofExecutionProvider"
"""Name of the execution provider with kernels in Python; see `epprof_nb.ep`."""

ONNX_RUNTIME = "ONNX Runtime"
"""Name of the pool of its sessions' memory; for one session, its name follows."""

CREATE_METHOD = "_create_inference_session"
"""Name of the method of ``InferenceSession`` that creates the session."""

GRAPH_ID = "gpu_graph_id"
"""Name of the run option with the id of the graph that a run captures or replays."""

# pybind11's name of its C++ ABI (PYBIND11_PLATFORM_ABI_ID) in all Linux wheels from 1.25.
_ABI = b"system_libstdcpp_gxx_abi_1xxx_use_cxx11_abi_1"

_registration_lock = fork_safe_lock()


def register_library(name: str, purpose: str, offers: Callable[[Any], bool]) -> None:
    """Register the native core with ONNX Runtime under a name, unless its device is there.

    Parameters
    ----------
    name
        Name of one of the core's execution providers.
    purpose
        The provider in words, for error messages: "the observer".
    offers
        Whether an ``OrtEpDevice`` is the one that the registration is for. The user may have
        registered the library under another name, or have unregistered it.

    Raises
    ------
    CaptureError
        If ONNX Runtime is missing or too old, or does not load the library.
    """
    with _registration_lock:
        try:
            import onnxruntime
        except ImportError as error:
            raise CaptureError(
                f"ONNX Runtime cannot be imported ({error}), so {purpose} cannot be used. Run "
                '`pip install "onnxruntime>=1.25"` (or onnxruntime-gpu).'
            ) from error
        check_release(onnxruntime.__version__)
        # onnxruntime.get_ep_devices may leave out the observer; see epprof_nb.onnxruntime.patches.
        from onnxruntime.capi import _pybind_state

        if any(offers(d) and is_of_this_library(d) for d in _pybind_state.get_ep_devices()):
            return
        try:
            onnxruntime.register_execution_provider_library(name, _native.__file__)
        except Exception as error:
            raise CaptureError(
                f"ONNX Runtime {onnxruntime.__version__} did not load {purpose}: {error}"
            ) from error


def is_of_this_library(device: Any) -> bool:  # noqa: ANN401
    """Whether a device comes from the library that Python has loaded, not from a copy of it."""
    path = Path(device.ep_metadata.get("library_path", _native.__file__))
    return path.exists() and path.samefile(_native.__file__)


def run_options_pointer(run_options: Any) -> Any:  # noqa: ANN401
    """Return a capsule of the ``OrtRunOptions`` inside a Python ``RunOptions``.

    Raises
    ------
    CaptureError
        If the object is something else.
    """
    capsule = _pointer(run_options, _native.ort_run_options_type())
    if capsule is None:
        raise CaptureError(
            f"The runs cannot be profiled: a {type(run_options).__name__} does not give access to "
            "its OrtRunOptions. Pass onnxruntime.RunOptions. If it is one, this version of "
            "epprof_nb does not support this build of ONNX Runtime: please report it."
        )
    return capsule


def run_config_entry(run_options: Any, key: str) -> str | None:  # noqa: ANN401
    """Return an entry of the config of run options; None if they have none.

    Register the provider of Python kernels first.
    """
    capsule = _pointer(run_options, _native.ort_run_options_type())
    if capsule is not None:
        return _native.ep_run_config_entry(capsule, key)
    # A missing entry raises an error, which takes tens of microseconds.
    try:
        return str(run_options.get_run_config_entry(key))
    except RuntimeError:
        return None


def session_options_pointer(session_options: Any) -> Any:  # noqa: ANN401
    """Return a capsule of the ``OrtSessionOptions`` inside a Python ``SessionOptions``.

    Raises
    ------
    CaptureError
        If the object is something else.
    """
    capsule = _pointer(session_options, _native.ep_session_options_type())
    if capsule is None:
        raise CaptureError(
            "Operators of a new domain cannot be added: a "
            f"{type(session_options).__name__} does not give access to its OrtSessionOptions. "
            "Pass onnxruntime.SessionOptions. If it is one, this version of epprof_nb does not "
            "support this build of ONNX Runtime: please report it."
        )
    return capsule


def _pointer(options: Any, kind: object) -> Any:  # noqa: ANN401
    # pybind11's conduit returns the pointer to callers that name the C++ type.
    try:
        return options._pybind11_conduit_v1_(_ABI, kind, b"raw_pointer_ephemeral")
    except AttributeError:
        return None
