"""Observing ONNX Runtime: the nodes of its sessions become ops, in every profile.

``%load_ext epprof_nb`` calls `install`; scripts call it themselves. Sessions made from then on
carry an observer: their graph, results and provider lists stay what they are without it.
"""

from __future__ import annotations

import functools
import importlib.abc
import importlib.util
import sys
from typing import TYPE_CHECKING, Any

from epprof_nb.core.errors import CaptureError
from epprof_nb.onnxruntime import attach as ort_attach
from epprof_nb.onnxruntime.run_wrappers import ending, running
from epprof_nb.recorders.onnxruntime import sessions as ort_runs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

__all__ = ["disable_profiling", "enable_profiling", "install", "session", "uninstall"]

# Methods of a session that run it, and where their run options stand among the arguments.
_RUNS = {
    "run": 2,
    "run_async": 4,
    "run_with_ort_values": 2,
    "run_with_iobinding": 1,
    "run_with_ortvaluevector": 0,
}
_MAKE = "_create_inference_session"
_CHECK = "check_and_normalize_provider_args"  # warns of unknown providers, and lists the known

_restore: list[tuple[Any, str, Any]] = []


def install() -> None:
    """Observe the ONNX Runtime sessions that are made from now on.

    ``InferenceSession`` is patched in place, so subclasses are observed too. If onnxruntime is not
    imported yet, this happens when it is. Calling it again does nothing.

    Raises
    ------
    CaptureError
        If the imported ONNX Runtime is older than 1.25, or is not the one this version knows.
    """
    if _restore or _Hook.active():
        return
    module = sys.modules.get("onnxruntime")
    if module is None:
        sys.meta_path.insert(0, _Hook())
    else:
        _patch(module)


def uninstall() -> None:
    """Leave ONNX Runtime as it was. Sessions that carry the observer keep it, unused."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _Hook)]
    while _restore:
        owner, name, value = _restore.pop()
        setattr(owner, name, value)


def installed() -> bool:
    """Whether sessions made now are observed."""
    return bool(_restore)


def session(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
    """Make one observed ``onnxruntime.InferenceSession``, without `install`.

    Parameters
    ----------
    *args, **kwargs
        As for ``onnxruntime.InferenceSession``.

    Returns
    -------
    onnxruntime.InferenceSession
        Its runs are profiled also where `install` was not called.

    Raises
    ------
    CaptureError
        If ONNX Runtime is missing or older than 1.25.
    """
    ort_attach.register()
    import onnxruntime

    kind = _observed_class(onnxruntime.InferenceSession)
    return kind(*args, **kwargs)


def enable_profiling(run_options: object, *, profile_file_prefix: str = "onnxruntime_run") -> None:
    """Have ONNX Runtime write its own JSON profile of each run made with these options.

    Parameters
    ----------
    run_options
        An ``onnxruntime.RunOptions``.
    profile_file_prefix
        Start of the files' names, each of which is one run's alone: the process, the run's number
        in it, the time and ``.json`` are added.

    Notes
    -----
    On a GPU the file has the kernels, copies and sets of the run too, under the nodes that launched
    them. Not so with ``run_async``, nor for a session that is not observed: these have what ONNX
    Runtime writes itself, and its name for it.

    Raises
    ------
    CaptureError
        If ONNX Runtime is missing, older than 1.25, or `run_options` is of another type.
    """
    ort_attach.register()
    ort_runs.enable(run_options, profile_file_prefix)


def disable_profiling(run_options: object) -> None:
    """Undo `enable_profiling`."""
    ort_attach.register()
    ort_runs.disable(run_options)


def _patch(module: ModuleType) -> None:
    ort_attach.check_release(module.__version__)
    kind = module.InferenceSession
    if not hasattr(kind, _MAKE):
        raise CaptureError(
            f"ONNX Runtime {module.__version__} makes its sessions in a way this version of "
            "epprof_nb does not know, so they are not observed. Update epprof_nb."
        )
    ort_runs.refuse(None)
    _replace(kind, _MAKE, _making(getattr(kind, _MAKE)))
    for name, wrapper in _run_wrappers(kind):
        owner = next(c for c in kind.__mro__ if name in vars(c))
        _replace(owner, name, wrapper)
    maker = sys.modules[kind.__module__]
    if hasattr(maker, _CHECK):
        _replace(maker, _CHECK, _checking(getattr(maker, _CHECK)))
    for name in ("get_available_providers", "get_ep_devices"):
        if hasattr(module, name):
            _replace(module, name, _without_observer(getattr(module, name)))


def _replace(owner: Any, name: str, value: object) -> None:  # noqa: ANN401
    _restore.append((owner, name, vars(owner)[name]))
    setattr(owner, name, value)


def _run_wrappers(kind: type) -> list[tuple[str, Callable[..., Any]]]:
    found: list[tuple[str, Callable[..., Any]]] = [
        (name, running(getattr(kind, name), position))
        for name, position in _RUNS.items()
        if hasattr(kind, name)
    ]
    found.append(("end_profiling", ending(kind.end_profiling)))  # type: ignore[attr-defined]
    return found


@functools.cache
def _observed_class(kind: type) -> type:
    """Return a subclass of ``InferenceSession`` whose sessions are observed and profiled."""
    if installed():
        return kind
    methods = {_MAKE: _making(getattr(kind, _MAKE)), **dict(_run_wrappers(kind))}
    return type(kind.__name__, (kind,), {**methods, "__module__": kind.__module__})


def _making(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def make(
        self: object,
        providers: Sequence[Any] | None,
        provider_options: Sequence[Any] | None,
        *more: Any,
    ) -> None:
        ort_attach.create(original, self, providers, provider_options, more)

    return make


def _checking(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def check(
        providers: Sequence[Any] | None,
        provider_options: Sequence[Any] | None,
        available: Sequence[str],
    ) -> tuple[list[Any], list[Any]]:
        known = [p for p in available if p != ort_attach.NAME]
        if not providers or not ort_attach.is_ours(providers[-1]):
            return original(providers, provider_options, known)  # type: ignore[no-any-return]
        if provider_options is None:
            token = providers[-1][1]
        else:
            *provider_options, token = provider_options
        names, options = original(list(providers[:-1]), provider_options, known)
        return [*names, ort_attach.NAME], [*options, token]

    return check


def _without_observer(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def listed() -> list[Any]:
        return [p for p in original() if ort_attach.NAME not in (p, getattr(p, "ep_name", None))]

    return listed


class _Hook(importlib.abc.MetaPathFinder):
    """Patches onnxruntime at the end of its import."""

    @staticmethod
    def active() -> bool:
        return any(isinstance(finder, _Hook) for finder in sys.meta_path)

    def find_spec(
        self,
        fullname: str,
        path: object = None,  # noqa: ARG002
        target: object = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        if fullname != "onnxruntime":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        loader = None if spec is None else spec.loader
        if loader is None:
            return spec
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            try:
                _patch(module)
            except CaptureError as error:
                ort_runs.refuse(str(error))

        loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec
