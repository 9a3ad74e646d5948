"""Attach the observer to ONNX Runtime sessions when they are created.

The observer is an execution provider that claims no node. As the last entry of a session's
provider list, or the last device in its options, it changes neither the graph nor the provider of
any node. Sessions that it would change are not observed.
"""

from __future__ import annotations

import weakref
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from epprof_nb import _native
from epprof_nb.core.added_providers import add_observer, added_to
from epprof_nb.core.errors import CaptureError
from epprof_nb.core.ort_binding import PROVIDER, register_library
from epprof_nb.onnxruntime.cuda_graphs import captures, profiled_from_the_start
from epprof_nb.recording.onnxruntime import sessions, unprofiled_runs
from epprof_nb.recording.onnxruntime.session_titles import session_title
from epprof_nb.recording.onnxruntime.sessions import ObservedSession

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

NAME = "EpprofObserver"

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

_default_providers: list[str] = []
# Originally requested providers, kept while ONNX Runtime retries with fallback providers.
_requested_providers: weakref.WeakKeyDictionary[Any, list[Any]] = weakref.WeakKeyDictionary()


def register() -> None:
    """Register the observer with ONNX Runtime, unless it is registered.

    Raises
    ------
    CaptureError
        If ONNX Runtime does not load it. The message says why.
    """
    register_library(NAME, "the observer", lambda device: device.ep_name == NAME)


def is_observer(provider: object) -> bool:
    """Whether an entry of a provider list is the observer."""
    return provider == NAME or (isinstance(provider, tuple) and provider[:1] == (NAME,))


def create_observed_session(
    original: Callable[..., None],
    session: Any,  # noqa: ANN401
    providers: Sequence[Any] | None,
    provider_options: Sequence[Any] | None,
    more: tuple[Any, ...],
) -> None:
    """Create the native session of an ``InferenceSession``, observed if that changes nothing.

    Parameters
    ----------
    original
        ``InferenceSession._create_inference_session``.
    session
        The Python session.
    providers, provider_options, more
        Arguments of the call.

    Notes
    -----
    If the observed session cannot be created, the call is repeated with the user's exact
    arguments. It then either raises the user's own error or creates an unobserved session.
    """
    name = session_title(getattr(session, "_model_path", None))
    session_options = session._sess_options  # noqa: SLF001 - read by the original
    by_options = not providers and session_options is not None and session_options.has_providers()
    given = added_to(session_options).providers if by_options else list(providers or ())
    requested = _requested_providers.setdefault(session, given)
    _native.ort_begin_session()
    try:
        if has_own_profiler(given):
            arguments = providers, provider_options
        else:
            register()
            if by_options:
                _add_observer(session_options)
                arguments = providers, provider_options
            else:
                arguments = _with_observer(providers, provider_options)
        user_profile = session_options is not None and session_options.enable_profiling
        graphs = not user_profile and captures(given, provider_options)
        with profiled_from_the_start(session) if graphs else nullcontext():
            original(session, *arguments, *more)
        number = _native.ort_end_session() or None
    except Exception as error:  # noqa: BLE001 - the call is repeated without the observer
        reason = (
            str(error)
            if isinstance(error, _NotObserved | CaptureError)
            else (f"ONNX Runtime did not create it with the observer ({error})")
        )
        _native.ort_end_session()
        session._sess_options = session_options  # noqa: SLF001
        original(session, providers, provider_options, *more)
        _requested_providers.pop(session, None)
        _hide_observer(session)  # which options may hold from an earlier session
        sessions.register(session, ObservedSession(name, reason=reason))
        return
    _requested_providers.pop(session, None)
    _hide_observer(session)
    names = [str(_name(p)) for p in requested if not is_observer(p)]
    made = observed_session(
        session,
        number,
        reason=None if number else "ONNX Runtime created it without the observer",
        missing_providers=tuple(p for p in names if p not in session._providers),  # noqa: SLF001
        session_profile=user_profile or graphs,
        captures_graphs=graphs,
        has_own_profiler=has_own_profiler(given),
    )
    sessions.register(session, made)
    if user_profile:
        from epprof_nb.onnxruntime import json_profile

        json_profile.begin(session)


def observed_session(
    session: Any,  # noqa: ANN401
    number: int | None,
    **state: Any,
) -> ObservedSession:
    """Return the observation state of a new session, and time its unprofiled runs.

    Parameters
    ----------
    session
        The ``InferenceSession``.
    number
        Its number in the native core; None if it is not observed.
    **state
        Attributes of the state that the session itself does not report.
    """
    if not state.get("session_profile"):
        unprofiled_runs.attach_baseline(session)
    return ObservedSession(
        _title(session),
        number=number,
        providers=tuple(session._providers),  # noqa: SLF001
        uses_pool_threads=_uses_pool_threads(session),
        selected=_selected(session),
        optimization_level=_low_optimization(session),
        **state,
    )


def _hide_observer(session: Any) -> None:  # noqa: ANN401
    session._providers = [p for p in session._providers if p != NAME]  # noqa: SLF001
    session._provider_options.pop(NAME, None)  # noqa: SLF001


def _title(session: Any) -> str:  # noqa: ANN401
    """Name of a session: ``SessionOptions.logid``, else the name of its model's file or graph."""
    path = getattr(session, "_model_path", None)
    given = session.get_session_options().logid
    return session_title(path, given, "" if path else session.get_modelmeta().graph_name)


def _selected(session: Any) -> dict[str, list[str]]:  # noqa: ANN401
    """Return the names of operators and nodes to which kernels in Python are restricted."""
    options = session._provider_options.get(PROVIDER)  # noqa: SLF001
    if not options:
        return {}
    from epprof_nb.ep.provider_options import selected_names

    names = {option: selected_names(options, option) for option in ("only", "nodes")}
    return {option: given for option, given in names.items() if given}


def _uses_pool_threads(session: Any) -> bool:  # noqa: ANN401
    from onnxruntime import ExecutionMode

    options = session.get_session_options()
    return bool(options.execution_mode == ExecutionMode.ORT_PARALLEL)


def _low_optimization(session: Any) -> str:  # noqa: ANN401
    """Name of the session's optimization level if that leaves out fusions, else empty."""
    level = session.get_session_options().graph_optimization_level.name
    return level if level in ("ORT_DISABLE_ALL", "ORT_ENABLE_BASIC") else ""


def has_own_profiler(providers: Sequence[Any] | None) -> bool:
    """Whether a provider (`epprof_nb.ep`'s) reports the session's events itself."""
    return any(_name(provider) == PROVIDER for provider in providers or ())


def _name(provider: object) -> object:
    return provider[0] if isinstance(provider, tuple) and provider else provider


class _NotObserved(Exception):  # noqa: N818 - a reason, not an error
    """The session is not observed, because the observer would change its behaviour."""


def _add_observer(session_options: Any) -> None:  # noqa: ANN401
    """Add the observer's device to options that hold providers."""
    added = added_to(session_options)
    if added.has_policy:
        raise _NotObserved(
            "its SessionOptions hold a policy that selects the execution providers, and adding the "
            "observer would override it. Pass providers=[...] to InferenceSession instead, or "
            "choose the devices with add_provider_for_devices"
        )
    if not added.is_complete:
        raise _NotObserved(
            "execution providers were added to its SessionOptions before "
            "epprof_nb.onnxruntime.install(). Create the options and the session again"
        )
    from onnxruntime.capi import _pybind_state as binding

    devices = [device for device in binding.get_ep_devices() if device.ep_name == NAME]
    add_observer(session_options, devices)


def _with_observer(
    providers: Sequence[Any] | None, provider_options: Sequence[Any] | None
) -> tuple[list[Any], list[Any] | None]:
    """Return the arguments with the observer as the last provider."""
    if not providers:
        return [*default_providers(), NAME], None
    names = [p for p in providers if not is_observer(p)]
    if provider_options is None:
        return [*names, NAME], None
    kept = [o for p, o in zip(providers, provider_options, strict=True) if not is_observer(p)]
    return [*names, NAME], [*kept, {}]


def default_providers() -> list[str]:
    """Return the providers that this build chooses for a session created without any."""
    if not _default_providers:
        from onnxruntime.capi import _pybind_state as binding

        probe = binding.InferenceSession(
            binding.get_default_session_options(),
            _TINY_MODEL,
            False,  # noqa: FBT003
            False,  # noqa: FBT003
        )
        probe.initialize_session([], [], set())
        _default_providers[:] = probe.get_providers()
    return list(_default_providers)
