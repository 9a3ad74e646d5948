"""Attaching the observer to ONNX Runtime sessions as they are made.

The observer is an execution provider that claims no node. It is named last in a session's
provider list, where it changes neither the graph nor who runs it; a session for which that is
not so is left alone.
"""

from __future__ import annotations

import re
import threading
import weakref
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from epprof_nb import _native
from epprof_nb.core.errors import CaptureError
from epprof_nb.onnxruntime.cuda_graphs import captures, profiled_from_the_start
from epprof_nb.recorders.onnxruntime import unprofiled_runs as ort_pace
from epprof_nb.recorders.onnxruntime.sessions import Sight, describe, see

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

NAME = "EpprofObserver"
FIRST_RELEASE = (1, 25)

# A serialised model with one Identity node: ir_version 8; graph { node { input: "x", output: "y",
# op_type: "Identity" }, name: "g", input x and output y: float[1] }; opset 13. Protobuf wire format
# of onnx.proto's ModelProto.
_VALUE = b"\x0a\x01%b\x12\x0a\x0a\x08\x08\x01\x12\x04\x0a\x02\x08\x01"
_NODE = b"\x0a\x01x\x12\x01y\x22\x08Identity"
_X, _Y = _VALUE % b"x", _VALUE % b"y"
_GRAPH = (
    bytes([0x0A, len(_NODE)]) + _NODE + b"\x12\x01g"
    + bytes([0x5A, len(_X)]) + _X + bytes([0x62, len(_Y)]) + _Y
)  # fmt: skip
_TINY_MODEL = b"\x08\x08" + bytes([0x3A, len(_GRAPH)]) + _GRAPH + b"\x42\x04\x0a\x00\x10\x0d"

_defaults: list[str] = []
_registering = threading.Lock()
# What ONNX Runtime was asked for, while it falls back to other providers after an error.
_asked: weakref.WeakKeyDictionary[Any, list[Any]] = weakref.WeakKeyDictionary()


def check_release(version: str) -> None:
    """Raise `CaptureError` for a release of ONNX Runtime that cannot be observed."""
    numbers = tuple(int(n) for n in re.findall(r"\d+", version)[:2])
    if numbers < FIRST_RELEASE:
        raise CaptureError(
            f"ONNX Runtime {version} is installed, but 1.25 is the first release that tells "
            "execution providers about its events, so its nodes cannot be shown. Run "
            "`pip install -U onnxruntime` (or onnxruntime-gpu) and restart the kernel."
        )


def register() -> None:
    """Have ONNX Runtime load the observer, unless it has.

    Raises
    ------
    CaptureError
        If it refuses; the message says why.
    """
    with _registering:
        if not _native.ort_runtime():
            _register()


def _register() -> None:
    try:
        import onnxruntime
    except ImportError as error:
        raise CaptureError(
            f"ONNX Runtime cannot be imported ({error}), so there are no sessions to observe. Run "
            "`pip install onnxruntime` (or onnxruntime-gpu), 1.25 or newer."
        ) from error
    check_release(onnxruntime.__version__)
    try:
        onnxruntime.register_execution_provider_library(NAME, _native.__file__)
    except Exception as error:
        raise CaptureError(
            f"ONNX Runtime {onnxruntime.__version__} did not load the observer: {error}"
        ) from error


def is_ours(provider: object) -> bool:
    """Whether an entry of a provider list names the observer."""
    return provider == NAME or (isinstance(provider, tuple) and provider[:1] == (NAME,))


def create(
    original: Callable[..., None],
    session: Any,  # noqa: ANN401
    providers: Sequence[Any] | None,
    provider_options: Sequence[Any] | None,
    more: tuple[Any, ...],
) -> None:
    """Make the native session of an ``InferenceSession``, observed where that changes nothing.

    Parameters
    ----------
    original
        ``InferenceSession._create_inference_session``.
    session
        The Python session.
    providers, provider_options, more
        What it was called with.

    Notes
    -----
    If an observed session cannot be made, it is tried with exactly the user's arguments: an error
    is then the user's own, and otherwise the session is there, unobserved.
    """
    name = describe(getattr(session, "_model_path", None))
    given = session._sess_options  # noqa: SLF001 - what the original reads
    asked = _asked.setdefault(session, list(providers or ()))
    try:
        register()
        arguments, number = _with_observer(given, providers, provider_options)
        users_profile = given is not None and given.enable_profiling
        graphs = not users_profile and captures(providers, provider_options)
        with profiled_from_the_start(session) if graphs else nullcontext():
            original(session, *arguments, *more)
    except Exception as error:  # noqa: BLE001 - whatever it was, the user's call is made as it is
        reason = (
            str(error)
            if isinstance(error, _LeftAlone | CaptureError)
            else (f"ONNX Runtime refused it with the observer ({error})")
        )
        session._sess_options = given  # noqa: SLF001
        original(session, providers, provider_options, *more)
        _asked.pop(session, None)
        see(session, Sight(name, reason=reason))
        return
    _asked.pop(session, None)
    session._providers = [p for p in session._providers if p != NAME]  # noqa: SLF001
    session._provider_options.pop(NAME, None)  # noqa: SLF001
    names = [p[0] if isinstance(p, tuple) else p for p in asked if not is_ours(p)]
    sight = Sight(
        name,
        number=number,
        providers=tuple(session._providers),  # noqa: SLF001
        refused=tuple(p for p in names if p not in session._providers),  # noqa: SLF001
        session_profile=users_profile or graphs,
        graphs=graphs,
    )
    see(session, sight)
    if not sight.session_profile:
        ort_pace.follow(session)
    if users_profile:
        from epprof_nb.onnxruntime import json_profile as ort_device_events

        ort_device_events.begin(session)


class _LeftAlone(Exception):  # noqa: N818 - no error: a reason
    """The session is not observed, because that would change what it does."""


def _with_observer(
    session_options: Any,  # noqa: ANN401
    providers: Sequence[Any] | None,
    provider_options: Sequence[Any] | None,
) -> tuple[tuple[Any, Any], int]:
    if not providers and session_options is not None and session_options.has_providers():
        raise _LeftAlone(
            "its SessionOptions choose the execution providers (devices or a selection policy), "
            "and naming the observer beside them would drop that choice. Pass providers=[...] to "
            "InferenceSession instead"
        )
    number = _native.ort_new_session()
    names: list[Any]
    if not providers:
        names = [*default_providers()]
        options = None
    else:
        names = [p for p in providers if not is_ours(p)]
        options = None if provider_options is None else list(provider_options)
    token = {"token": str(number)}
    if options is None:
        return ([*names, (NAME, token)], None), number
    kept = [o for p, o in zip(providers or (), options, strict=True) if not is_ours(p)]
    return ([*names, NAME], [*kept, token]), number


def default_providers() -> list[str]:
    """Return the providers of a session made without naming any, as this build chooses them."""
    if not _defaults:
        from onnxruntime.capi import _pybind_state as binding

        probe = binding.InferenceSession(
            binding.get_default_session_options(),
            _TINY_MODEL,
            False,  # noqa: FBT003
            False,  # noqa: FBT003
        )
        probe.initialize_session([], [], set())
        _defaults[:] = probe.get_providers()
    return list(_defaults)
