"""Memory that sessions of ONNX Runtime hold on GPUs, in the arenas of their providers."""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from epprof_nb import _native
from epprof_nb.core.ort_binding import PROVIDER
from epprof_nb.recording.onnxruntime import sessions
from epprof_nb.recording.onnxruntime.session_pointer import session_pointer
from epprof_nb.recording.onnxruntime.session_titles import session_title
from epprof_nb.util.user_errors import USER_ERRORS

if TYPE_CHECKING:
    from collections.abc import Iterator

_SHARED = "session.use_env_allocators"
"""Entry of a session's config: "1" if it uses the arenas of the process."""
_GPU, _NVIDIA = 1, 0x10DE


class _Place(NamedTuple):
    """Memory as ONNX Runtime describes it: its name, the type of the device, and its vendor."""

    memory: str
    device_type: int
    vendor: int


_PLACES = dict.fromkeys(
    ("CUDAExecutionProvider", "TensorrtExecutionProvider", "NvTensorRTRTXExecutionProvider"),
    _Place("Cuda", _GPU, _NVIDIA),
)
"""Providers with arenas on GPUs."""


class Arena(NamedTuple):
    """The arena of a session on a device. Bytes are None if they are unknown.

    Attributes
    ----------
    session
        Name of the session; "" for the arena that sessions share.
    device
        Number of the device.
    in_use, held
        Bytes that tensors use, and that the arena has from the driver.
    reason
        Why they are unknown; "" if they are not.
    """

    session: str
    device: int
    in_use: int | None
    held: int | None
    reason: str = ""


def arenas() -> list[Arena]:
    """Return the arenas of all sessions that exist, without allocating anything."""
    found: dict[tuple[str, int], Arena] = {}
    for session in _all_sessions():
        for arena in _of_session(session):
            key = arena.session, arena.device
            known = found.get(key)
            if known is None or not arena.session:
                found[key] = arena
            else:
                found[key] = _sum(known, arena)
    return list(found.values())


def _all_sessions() -> list[Any]:
    module = sys.modules.get("onnxruntime")
    kind = getattr(module, "InferenceSession", None)
    if not isinstance(kind, type):
        return []
    known = {id(session): session for session in sessions.all_sessions()}
    # Those from before the observer are not registered.
    known |= {id(thing): thing for thing in _native.instances_of(gc.get_objects(), kind)}
    return list(known.values())


def _of_session(session: Any) -> Iterator[Arena]:  # noqa: ANN401
    try:
        providers = session.get_providers()
        options = session.get_provider_options()
        used = [name for name in providers if name in _PLACES]
        # The provider of kernels in Python may serve a session of the CUDA provider.
        if not used or PROVIDER in providers:
            return
        name = _name(session)
        devices = {int(options.get(each, {}).get("device_id", 0)): _PLACES[each] for each in used}
    except USER_ERRORS:  # a session that is being created or was not
        return
    for device, place in devices.items():
        yield _read(session, name, device, place)


def _name(session: Any) -> str:  # noqa: ANN401
    options = session.get_session_options()
    try:
        if options.get_session_config_entry(_SHARED) == "1":
            return ""
    except RuntimeError:  # the entry is absent
        pass
    observed = sessions.observed(session)
    return observed.name if observed else session_title(getattr(session, "_model_path", None))


def _read(session: Any, name: str, device: int, place: _Place) -> Arena:  # noqa: ANN401
    native = getattr(session, "_sess", None)  # kept until the end: its address is used
    pointer = session_pointer(native)
    if pointer is None:
        return Arena(name, device, None, None, "this release of ONNX Runtime hides its sessions")
    try:
        text = _native.ort_allocator_statistics(pointer, *place, device)
    except RuntimeError as error:
        return Arena(name, device, None, None, f"ONNX Runtime does not report it: {error}")
    values = dict(line.split("=", 1) for line in text.splitlines())
    try:
        return Arena(name, device, int(values["InUse"]), int(values["TotalAllocated"]))
    except (KeyError, ValueError):
        return Arena(name, device, None, None, "its allocator has no statistics")


def _sum(one: Arena, other: Arena) -> Arena:
    """Return the sum of the arenas of sessions with one name."""
    if one.held is None or other.held is None or one.in_use is None or other.in_use is None:
        return one if one.held is None else other
    return one._replace(in_use=one.in_use + other.in_use, held=one.held + other.held)
