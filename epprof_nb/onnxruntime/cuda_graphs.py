"""Sessions that capture CUDA graphs: profiled as a whole from their creation.

ONNX Runtime captures a graph in an inner run that is invisible to the profiler of the run, but
not to the profiler of the session. The session profile is therefore enabled from the start, and
disabled at the end of the first ``epprof_nb`` profile in which the session ran. By then the graph
is captured, and replays fire no node events.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from epprof_nb.core.ort_binding import PROVIDER
from epprof_nb.recording.onnxruntime.sessions import NO_FILE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_OPTION = "enable_cuda_graph"
_OFF = ("", "0", "false", "none")


def captures(providers: Sequence[Any] | None, provider_options: Sequence[Any] | None) -> bool:
    """Whether provider options enable CUDA graphs whose capture only the profile shows.

    The provider of Python kernels reports the nodes that it captures itself.
    """
    listed = list(providers or ())
    names = [p[0] if isinstance(p, tuple) else p for p in listed]
    options = list(zip(names, provider_options or (), strict=False))
    options += [p for p in listed if isinstance(p, tuple) and len(p) == 2]
    return any(
        str(o.get(_OPTION, "")).lower() not in _OFF
        for name, o in options
        if isinstance(o, dict) and name != PROVIDER
    )


@contextmanager
def profiled_from_the_start(session: Any) -> Iterator[None]:  # noqa: ANN401
    """Have the session created in the ``with`` block profiled as a whole, without a file.

    Parameters
    ----------
    session
        An ``InferenceSession`` that is being created. The user's options, and the options that
        the session reports, are restored afterwards.
    """
    options = session._sess_options  # noqa: SLF001 - read by the constructor
    if options is None:
        from onnxruntime.capi import _pybind_state as binding

        options = binding.get_default_session_options()
        session._sess_options = options  # noqa: SLF001
    before = options.enable_profiling, options.profile_file_prefix
    options.enable_profiling, options.profile_file_prefix = True, NO_FILE
    try:
        yield
    finally:
        copied = session._sess_options  # noqa: SLF001 - the copy of the created session
        for each in (options, copied):
            each.enable_profiling, each.profile_file_prefix = before
