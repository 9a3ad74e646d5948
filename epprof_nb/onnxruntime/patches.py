"""Patches of ``InferenceSession``, of related functions, and of onnxruntime-genai."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any

from epprof_nb.core import added_providers
from epprof_nb.core.errors import CaptureError
from epprof_nb.core.ort_binding import CREATE_METHOD
from epprof_nb.core.ort_releases import check_release
from epprof_nb.onnxruntime import attach, bound_inputs, genai
from epprof_nb.onnxruntime.replaced_attributes import REPLACED, replace
from epprof_nb.onnxruntime.run_wrappers import wrap_end_profiling, wrap_run
from epprof_nb.recording.onnxruntime import sessions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType

# Methods of a session that run it, and the position of the run options among their arguments.
RUN_METHODS = {
    "run": 2,
    "run_async": 4,
    "run_with_ort_values": 2,
    "run_with_iobinding": 1,
    "run_with_ortvaluevector": 0,
}
_CHECK_FUNCTION = "check_and_normalize_provider_args"  # warns about unknown providers


def patch(module: ModuleType) -> None:
    """Replace the methods of ONNX Runtime that create and run sessions.

    Raises
    ------
    CaptureError
        If the release is older than 1.25, or is not supported by this version.
    """
    check_release(module.__version__)
    kind = module.InferenceSession
    if not hasattr(kind, CREATE_METHOD):
        raise CaptureError(
            f"ONNX Runtime {module.__version__} is not supported by this version of epprof_nb, so "
            "its sessions are not observed. Update epprof_nb."
        )
    sessions.disable_with_reason(None)
    replace(kind, CREATE_METHOD, _wrap_create(getattr(kind, CREATE_METHOD)))
    for name, wrapper in _run_wrappers(kind):
        owner = next(c for c in kind.__mro__ if name in vars(c))
        replace(owner, name, wrapper)
    maker = sys.modules[kind.__module__]
    if hasattr(maker, _CHECK_FUNCTION):
        replace(maker, _CHECK_FUNCTION, _wrap_check(getattr(maker, _CHECK_FUNCTION)))
    for name in bound_inputs.METHODS:
        if hasattr(module.IOBinding, name):
            replace(module.IOBinding, name, bound_inputs.wrap(getattr(module.IOBinding, name)))
    for name, method in added_providers.wrappers(module.SessionOptions).items():
        replace(module.SessionOptions, name, method)
    for name in ("get_available_providers", "get_ep_devices"):
        if hasattr(module, name):
            replace(module, name, _hide_observer(getattr(module, name)))


def patch_genai(module: ModuleType) -> None:
    """Replace the methods of onnxruntime-genai that make models and run them."""
    for owner, name, method in genai.wrappers(module):
        replace(owner, name, method)


def _run_wrappers(kind: type) -> list[tuple[str, Callable[..., Any]]]:
    wrappers: list[tuple[str, Callable[..., Any]]] = [
        (name, wrap_run(getattr(kind, name), position))
        for name, position in RUN_METHODS.items()
        if hasattr(kind, name)
    ]
    wrappers.append(("end_profiling", wrap_end_profiling(kind.end_profiling)))  # type: ignore[attr-defined]
    return wrappers


@functools.cache
def observed_class(kind: type) -> type:
    """Return a subclass of ``InferenceSession`` whose sessions are observed and profiled."""
    if REPLACED:
        return kind
    methods = {
        CREATE_METHOD: _wrap_create(getattr(kind, CREATE_METHOD)),
        **dict(_run_wrappers(kind)),
    }
    return type(kind.__name__, (kind,), {**methods, "__module__": kind.__module__})


def _wrap_create(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def make(
        self: object,
        providers: Sequence[Any] | None,
        provider_options: Sequence[Any] | None,
        *more: Any,
    ) -> None:
        attach.create_observed_session(original, self, providers, provider_options, more)

    return make


def _wrap_check(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def check(
        providers: Sequence[Any] | None,
        provider_options: Sequence[Any] | None,
        available: Sequence[str],
    ) -> tuple[list[Any], list[Any]]:
        known = [p for p in available if p != attach.NAME]
        if not providers or not attach.is_observer(providers[-1]):
            return original(providers, provider_options, known)  # type: ignore[no-any-return]
        if provider_options is not None:
            provider_options = provider_options[:-1]
        names, options = original(list(providers[:-1]), provider_options, known)
        return [*names, attach.NAME], [*options, {}]

    return check


def _hide_observer(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def listed() -> list[Any]:
        return [p for p in original() if attach.NAME not in (p, getattr(p, "ep_name", None))]

    return listed
