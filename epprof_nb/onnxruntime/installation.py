"""Switches for observing ONNX Runtime: patches of ``InferenceSession`` and their removal."""

from __future__ import annotations

import functools
import importlib.abc
import importlib.util
import sys
from typing import TYPE_CHECKING, Any

from epprof_nb.core.errors import CaptureError
from epprof_nb.core.ort_binding import check_release
from epprof_nb.onnxruntime import attach, bound_inputs, genai, session_options
from epprof_nb.onnxruntime.run_wrappers import wrap_end_profiling, wrap_run
from epprof_nb.recording.onnxruntime import sessions
from epprof_nb.util.after_import import after_import, cancel

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

__all__ = ["disable_profiling", "enable_profiling", "install", "session", "uninstall"]

# Methods of a session that run it, and the position of the run options among their arguments.
_RUN_METHODS = {
    "run": 2,
    "run_async": 4,
    "run_with_ort_values": 2,
    "run_with_iobinding": 1,
    "run_with_ortvaluevector": 0,
}
_CREATE_METHOD = "_create_inference_session"
_CHECK_FUNCTION = "check_and_normalize_provider_args"  # warns about unknown providers

_replaced: list[tuple[Any, str, Any]] = []


def install(*, nodes: str | None = None) -> None:
    """Observe all ONNX Runtime sessions created from now on.

    ``InferenceSession`` is patched in place, so subclasses are observed too. If onnxruntime is not
    imported yet, it is patched when it is. Calling this function again only sets the mode.

    Parameters
    ----------
    nodes
        Which runs are recorded node by node in a profile:

        * ``"auto"``, the default: the first runs with each combination of input shapes. The nodes
          of the following runs are identified by their launches on the GPU, which must equal those
          of a recorded run. For sessions without GPU work, further runs are recorded in at most 3 %
          of the time.
        * ``"every"``: each run. ONNX Runtime's own recording of nodes slows runs down.
        * ``"off"``: none. Runs are ops without nodes.

        None does not change the mode.

    Raises
    ------
    CaptureError
        If the imported ONNX Runtime is older than 1.25, or is not supported by this version.
    ValueError
        If `nodes` is unknown.
    """
    if nodes is not None:
        sessions.set_default_mode(nodes)
    if _replaced or _ImportHook.active():
        return
    after_import(genai.MODULE, _patch_genai)
    module = sys.modules.get("onnxruntime")
    if module is None:
        sys.meta_path.insert(0, _ImportHook())
    else:
        _patch(module)


def uninstall() -> None:
    """Restore ONNX Runtime. Existing sessions keep their observer, which stays unused."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _ImportHook)]
    cancel(genai.MODULE, _patch_genai)
    while _replaced:
        owner, name, value = _replaced.pop()
        setattr(owner, name, value)


def installed() -> bool:
    """Whether sessions created now are observed."""
    return bool(_replaced)


def session(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
    """Create one observed ``onnxruntime.InferenceSession``, without `install`.

    Parameters
    ----------
    *args, **kwargs
        Arguments of ``onnxruntime.InferenceSession``.

    Returns
    -------
    onnxruntime.InferenceSession
        A session whose runs are profiled even if `install` was not called.

    Raises
    ------
    CaptureError
        If ONNX Runtime is missing or older than 1.25.
    """
    attach.register()
    import onnxruntime

    kind = _observed_class(onnxruntime.InferenceSession)
    return kind(*args, **kwargs)


def enable_profiling(run_options: object, *, profile_file_prefix: str = "onnxruntime_run") -> None:
    """Have ONNX Runtime write its JSON profile for each run made with these options.

    Parameters
    ----------
    run_options
        An ``onnxruntime.RunOptions``.
    profile_file_prefix
        Prefix of the file names. The process id, the number of the run, the time and ``.json``
        are appended, so each run has its own file.

    Notes
    -----
    On a GPU the file also contains the kernels, copies and memsets of the run, under the nodes
    that launched them. This does not apply to ``run_async`` and to sessions that are not observed,
    whose files have the contents and names that ONNX Runtime gives them.

    Raises
    ------
    CaptureError
        If ONNX Runtime is missing or older than 1.25, or `run_options` has another type.
    """
    attach.register()
    sessions.enable(run_options, profile_file_prefix)


def disable_profiling(run_options: object) -> None:
    """Undo `enable_profiling`."""
    attach.register()
    sessions.disable(run_options)


def _patch(module: ModuleType) -> None:
    check_release(module.__version__)
    kind = module.InferenceSession
    if not hasattr(kind, _CREATE_METHOD):
        raise CaptureError(
            f"ONNX Runtime {module.__version__} is not supported by this version of epprof_nb, so "
            "its sessions are not observed. Update epprof_nb."
        )
    sessions.disable_with_reason(None)
    _replace(kind, _CREATE_METHOD, _wrap_create(getattr(kind, _CREATE_METHOD)))
    for name, wrapper in _run_wrappers(kind):
        owner = next(c for c in kind.__mro__ if name in vars(c))
        _replace(owner, name, wrapper)
    maker = sys.modules[kind.__module__]
    if hasattr(maker, _CHECK_FUNCTION):
        _replace(maker, _CHECK_FUNCTION, _wrap_check(getattr(maker, _CHECK_FUNCTION)))
    for name in bound_inputs.METHODS:
        if hasattr(module.IOBinding, name):
            _replace(module.IOBinding, name, bound_inputs.wrap(getattr(module.IOBinding, name)))
    for name, method in session_options.wrappers(module.SessionOptions).items():
        _replace(module.SessionOptions, name, method)
    for name in ("get_available_providers", "get_ep_devices"):
        if hasattr(module, name):
            _replace(module, name, _hide_observer(getattr(module, name)))


def _patch_genai() -> None:
    for owner, name, method in genai.wrappers():
        _replace(owner, name, method)


def _replace(owner: Any, name: str, value: object) -> None:  # noqa: ANN401
    _replaced.append((owner, name, vars(owner)[name]))
    setattr(owner, name, value)


def _run_wrappers(kind: type) -> list[tuple[str, Callable[..., Any]]]:
    wrappers: list[tuple[str, Callable[..., Any]]] = [
        (name, wrap_run(getattr(kind, name), position))
        for name, position in _RUN_METHODS.items()
        if hasattr(kind, name)
    ]
    wrappers.append(("end_profiling", wrap_end_profiling(kind.end_profiling)))  # type: ignore[attr-defined]
    return wrappers


@functools.cache
def _observed_class(kind: type) -> type:
    """Return a subclass of ``InferenceSession`` whose sessions are observed and profiled."""
    if installed():
        return kind
    methods = {
        _CREATE_METHOD: _wrap_create(getattr(kind, _CREATE_METHOD)),
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


class _ImportHook(importlib.abc.MetaPathFinder):
    """Import hook that patches onnxruntime once it is imported."""

    @staticmethod
    def active() -> bool:
        return any(isinstance(finder, _ImportHook) for finder in sys.meta_path)

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
                sessions.disable_with_reason(str(error))

        loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec
