"""Wrappers of the methods of ``InferenceSession`` that run it or end its profiling."""

from __future__ import annotations

import functools
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from epprof_nb.onnxruntime import graph_replays, run_profile_files
from epprof_nb.recorders.onnxruntime import sessions, unprofiled_runs

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

_NO_CONTEXT = nullcontext()


def wrap_run(original: Callable[..., Any], position: int) -> Callable[..., Any]:
    """Wrap a method of ``InferenceSession`` so that its runs are recorded, or sometimes timed.

    Parameters
    ----------
    original
        A method of ``InferenceSession`` that runs it.
    position
        Position of the run options among the arguments.
    """
    method = original.__name__
    returns_early = method == "run_async"

    @functools.wraps(original)
    def run(self: object, *args: Any, **kwargs: Any) -> object:
        if not returns_early and sessions.has_run_profile_files():
            with run_profile_files.own_profile_file(self, run_options_in(args, kwargs)):
                return run_observed(self, args, kwargs)
        return run_observed(self, args, kwargs)

    def run_options_in(args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
        return args[position] if len(args) > position else kwargs.get("run_options")

    def run_observed(self: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
        baseline = None if returns_early else getattr(self, unprofiled_runs.ATTRIBUTE, None)
        if sessions.recording():
            begin = unprofiled_runs.now()
            result = run_recorded(self, args, kwargs)
            if baseline is not None:
                key = unprofiled_runs.input_key(args, kwargs, method)
                unprofiled_runs.add_call(begin, baseline, key)
            return result
        if baseline is None:
            with active_run(self):
                return original(self, *args, **kwargs)
        if baseline.wait:
            baseline.wait -= 1
            return original(self, *args, **kwargs)
        timer = unprofiled_runs.Timer()
        try:
            result = original(self, *args, **kwargs)
        finally:
            duration = timer.stop()
        run_options = run_options_in(args, kwargs)
        if timer.ran_alone and not sessions.recording() and not sessions.is_profiled(run_options):
            baseline.add(unprofiled_runs.input_key(args, kwargs, method), duration)
        return result

    def run_recorded(self: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
        given = run_options_in(args, kwargs)
        with graph_replays.record_replay(self, given, returns_early=returns_early) as profiled:
            if profiled:
                options = sessions.run_options_for(self, given)
                if len(args) > position:
                    args = (*args[:position], options, *args[position + 1 :])
                else:
                    kwargs = {**kwargs, "run_options": options}
            with active_run(self):
                return original(self, *args, **kwargs)

    def active_run(session: object) -> AbstractContextManager[None]:
        if not sessions.counts_runs():
            return _NO_CONTEXT
        return sessions.active_run(session, returns_early=returns_early)

    return run


def wrap_end_profiling(original: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``end_profiling`` so that it adds the device work to ONNX Runtime's profile."""

    @functools.wraps(original)
    def end_profiling(self: object) -> object:
        observed_session = sessions.observed(self)
        if observed_session is None or observed_session.number is None:
            return original(self)
        if observed_session.session_profile and not observed_session.captures_graphs:
            from epprof_nb.onnxruntime import json_profile

            json_profile.end(self, observed_session.number)
        try:
            return original(self)
        finally:
            sessions.end_session_profile(self)

    return end_profiling
