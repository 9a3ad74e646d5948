"""Sessions with kernels in Python, which are observed without `epprof_nb.onnxruntime.install`.

Their provider reports the nodes of a run itself. Only their runs are wrapped; other sessions stay
as they are.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from epprof_nb.onnxruntime import attach
from epprof_nb.onnxruntime.installation import installed
from epprof_nb.onnxruntime.patches import RUN_METHODS
from epprof_nb.onnxruntime.run_wrappers import wrap_end_profiling, wrap_run
from epprof_nb.recording.onnxruntime import sessions
from epprof_nb.util.fork_safe_lock import fork_safe_lock

if TYPE_CHECKING:
    from collections.abc import Callable

_MARK = "_epprof_own_sessions"
_lock = fork_safe_lock()


def observe(session: Any, number: int) -> None:  # noqa: ANN401
    """Observe a new session with kernels in Python, unless `install` does.

    Parameters
    ----------
    session
        The ``InferenceSession``.
    number
        Its number in the native core.
    """
    if installed():
        return
    user_profile = bool(session.get_session_options().enable_profiling)
    observed_session = attach.observed_session(
        session,
        number,
        session_profile=user_profile,
        by_own_provider=True,
        has_own_profiler=True,
    )
    sessions.register(session, observed_session)
    _wrap_methods(type(session))
    if user_profile:
        from epprof_nb.onnxruntime import json_profile

        json_profile.begin(session)


def _wrap_methods(kind: type) -> None:
    with _lock:
        for name, position in RUN_METHODS.items():
            _wrap(kind, name, functools.partial(wrap_run, position=position))
        _wrap(kind, "end_profiling", wrap_end_profiling)


def _wrap(kind: type, name: str, wrap: Callable[[Any], Callable[..., Any]]) -> None:
    owner = next((c for c in kind.__mro__ if name in vars(c)), None)
    if owner is None or _is_wrapped(vars(owner)[name]):
        return
    setattr(owner, name, _for_own(vars(owner)[name], wrap))


def _is_wrapped(method: Any) -> bool:  # noqa: ANN401
    while method is not None:
        if hasattr(method, _MARK):
            return True
        method = getattr(method, "__wrapped__", None)
    return False


def _for_own(
    original: Callable[..., Any], wrap: Callable[[Any], Callable[..., Any]]
) -> Callable[..., Any]:
    wrapped = wrap(original)

    @functools.wraps(original)
    def method(self: object, *args: Any, **kwargs: Any) -> object:
        observed = sessions.observed(self)
        own = observed is not None and observed.by_own_provider and not installed()
        return (wrapped if own else original)(self, *args, **kwargs)

    setattr(method, _MARK, True)
    return method
