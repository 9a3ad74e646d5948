"""Switches for observing ONNX Runtime.

The patches are imported with ONNX Runtime, because most notebooks never import it.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from epprof_nb.core.errors import CaptureError
from epprof_nb.onnxruntime.replaced_attributes import REPLACED, restore
from epprof_nb.util.after_import import after_import, cancel

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["disable_profiling", "enable_profiling", "install", "session", "uninstall"]

_ONNXRUNTIME, _GENAI = "onnxruntime", "onnxruntime_genai"


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
        from epprof_nb.recording.onnxruntime import sessions

        sessions.set_default_mode(nodes)
    if installed():
        return
    cancel(_GENAI, _patch_genai)
    after_import(_GENAI, _patch_genai)
    module = sys.modules.get(_ONNXRUNTIME)
    if module is None:
        cancel(_ONNXRUNTIME, _patch_imported)
        after_import(_ONNXRUNTIME, _patch_imported)
    else:
        _patch(module)


def uninstall() -> None:
    """Restore ONNX Runtime. Existing sessions keep their observer, which stays unused."""
    cancel(_ONNXRUNTIME, _patch_imported)
    cancel(_GENAI, _patch_genai)
    restore()


def installed() -> bool:
    """Whether sessions created now are observed."""
    return bool(REPLACED)


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
    from epprof_nb.onnxruntime import attach

    attach.register()
    import onnxruntime

    from epprof_nb.onnxruntime.patches import observed_class

    kind = observed_class(onnxruntime.InferenceSession)
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
    from epprof_nb.onnxruntime import attach
    from epprof_nb.recording.onnxruntime import sessions

    attach.register()
    sessions.enable(run_options, profile_file_prefix)


def disable_profiling(run_options: object) -> None:
    """Undo `enable_profiling`."""
    from epprof_nb.onnxruntime import attach
    from epprof_nb.recording.onnxruntime import sessions

    attach.register()
    sessions.disable(run_options)


def _patch(module: ModuleType) -> None:
    from epprof_nb.onnxruntime.patches import patch

    patch(module)


def _patch_imported() -> None:
    try:
        _patch(sys.modules[_ONNXRUNTIME])
    except CaptureError as error:
        from epprof_nb.recording.onnxruntime import sessions

        sessions.disable_with_reason(str(error))


def _patch_genai() -> None:
    from epprof_nb.onnxruntime.patches import patch_genai

    patch_genai(sys.modules[_GENAI])
