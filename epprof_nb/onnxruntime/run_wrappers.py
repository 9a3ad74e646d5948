"""Wrappers of the methods of ``InferenceSession`` that run it or end its profiling."""

from __future__ import annotations

import functools
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from epprof_nb import _native
from epprof_nb.core.recording_costs import RUNS
from epprof_nb.onnxruntime import bound_inputs, graph_runs, run_profile_files
from epprof_nb.recording.onnxruntime import failed_runs, sessions, token_inputs, unprofiled_runs

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from epprof_nb.ep.graphs.run_methods import UnprofiledReplays
    from epprof_nb.recording.onnxruntime.run_log import RunInProgress
    from epprof_nb.recording.onnxruntime.sessions import ObservedSession

_NO_CONTEXT = nullcontext()
_FEED_ARGUMENTS = {"run": "input_feed", "run_with_ort_values": "input_dict_ort_values"}
"""Methods that take the inputs as argument 1, and the name of that argument."""


_CALLBACK = 2
"""Position of the callback among the arguments of ``run_async``."""


def wrap_run(original: Callable[..., Any], position: int) -> Callable[..., Any]:
    """Wrap a method of ``InferenceSession`` so that its runs are recorded, or sometimes timed.

    Parameters
    ----------
    original
        A method of ``InferenceSession`` that runs it.
    position
        Position of the run options among the arguments.
    """
    method = _RunMethod(original, position)

    @functools.wraps(original)
    def run(self: object, *args: Any, **kwargs: Any) -> object:
        if not method.returns_early and sessions.has_run_profile_files():
            with run_profile_files.own_profile_file(self, method.run_options(args, kwargs)):
                return method.run(self, args, kwargs)
        return method.run(self, args, kwargs)

    return run


class _RunMethod:
    """A method of ``InferenceSession`` that runs it."""

    def __init__(self, original: Callable[..., Any], position: int) -> None:
        self._original = original
        self._position = position
        self._name = original.__name__
        self.returns_early = self._name == "run_async"
        """Whether the run continues on another thread after the call."""

    def run_options(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
        """Return the run options among the arguments, or None."""
        return args[self._position] if len(args) > self._position else kwargs.get("run_options")

    def run(self, session: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
        """Run a session. Record it during a recording, otherwise time it if that is due."""
        baseline = None if self.returns_early else getattr(session, unprofiled_runs.ATTRIBUTE, None)
        if sessions.recording():
            cost = _native.cost_begin(RUNS)
            feed = self._inputs(args, kwargs)
            key = unprofiled_runs.input_key(feed, self._name)
            _native.cost_end(RUNS, cost)
            begin = unprofiled_runs.now()
            if self.returns_early:
                args, kwargs = _with_noted_errors(args, kwargs)
            try:
                result = self._run_recorded(session, args, kwargs, key)
            except BaseException as error:
                self._end_refused(session, begin)
                failed_runs.add_call(begin, error)
                raise
            cost = _native.cost_resume(cost)
            if baseline is not None:
                unprofiled_runs.add_call(begin, baseline, key)
            if not self.returns_early:
                token_inputs.add_call(session, begin, feed)
            _native.cost_end(RUNS, cost)
            return result
        if sessions.delays_nodes():
            args, kwargs = self._with_profiling(session, args, kwargs)
            return self._original(session, *args, **kwargs)
        if baseline is None:
            with self._counted(session):
                return self._original(session, *args, **kwargs)
        if baseline.wait:
            baseline.wait -= 1
            return self._original(session, *args, **kwargs)
        return self._run_timed(baseline, session, args, kwargs)

    def _end_refused(self, session: object, begin_ns: int) -> None:
        observed = sessions.observed(session)
        if observed is not None and observed.number is not None:
            _native.ort_end_refused_run(observed.number, begin_ns)

    def _inputs(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
        """Return the inputs of a run by name; None if the arguments do not contain them."""
        if self._name == "run_with_iobinding":
            return bound_inputs.bound_inputs(args[0] if args else kwargs.get("iobinding"))
        name = _FEED_ARGUMENTS.get(self._name)
        return None if name is None else args[1] if len(args) > 1 else kwargs.get(name)

    def _run_timed(
        self,
        baseline: unprofiled_runs.UnprofiledBaseline,
        session: object,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> object:
        timer = unprofiled_runs.Timer()
        try:
            result = self._original(session, *args, **kwargs)
        finally:
            duration = timer.stop()
        options = self.run_options(args, kwargs)
        if timer.ran_alone and not sessions.recording() and not sessions.is_profiled(options):
            key = unprofiled_runs.input_key(self._inputs(args, kwargs), self._name)
            baseline.add(key, duration)
        return result

    def _run_recorded(
        self, session: object, args: tuple[Any, ...], kwargs: dict[str, Any], key: object
    ) -> object:
        given = self.run_options(args, kwargs)
        run = None if self.returns_early else sessions.begin_run(session, given, key)
        if run is not None:
            return self._run_maybe_without_nodes(run, session, args, kwargs)
        observed_session = sessions.observed(session)
        if _has_kernels_in_python(observed_session):
            return self._run_kernels_in_python(session, args, kwargs, given)
        with graph_runs.record_replay(
            observed_session, given, returns_early=self.returns_early
        ) as profiled:
            if profiled:
                args, kwargs = self._with_profiling(session, args, kwargs)
            with self._counted(session):
                return self._original(session, *args, **kwargs)

    def _run_kernels_in_python(
        self, session: object, args: tuple[Any, ...], kwargs: dict[str, Any], given: object
    ) -> object:
        """Run a session with Python kernels; profile its replays only on request."""
        wants_file = sessions.file_prefix(given) is not None
        if _native.ep_is_replaying() and not wants_file:
            args, kwargs = self._with_options(args, kwargs, None)
        else:
            args, kwargs = self._with_profiling(session, args, kwargs)
        # This wrapper may contain the one that replays, which alone knows which runs are replays.
        with self._counted(session), _NO_CONTEXT if wants_file else _unprofiled_replays()():
            return self._original(session, *args, **kwargs)

    def _run_maybe_without_nodes(
        self, run: RunInProgress, session: object, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> object:
        begin = unprofiled_runs.now()
        failed = True
        try:
            if run.records_nodes:
                args, kwargs = self._with_profiling(session, args, kwargs)
            result = self._original(session, *args, **kwargs)
            failed = False
        finally:
            run.end(unprofiled_runs.now() - begin, failed=failed)
        return result

    def _with_profiling(
        self, session: object, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments with run options that enable profiling."""
        options = sessions.run_options_for(session, self.run_options(args, kwargs))
        return self._with_options(args, kwargs, options)

    def _with_options(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        options: Any,  # noqa: ANN401
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        at = self._position
        if len(args) > at:
            return (*args[:at], options, *args[at + 1 :]), kwargs
        return args, {**kwargs, "run_options": options}

    def _counted(self, session: object) -> AbstractContextManager[None]:
        if not sessions.counts_runs():
            return _NO_CONTEXT
        return sessions.active_run(session, returns_early=self.returns_early)


@functools.cache  # an import statement at each replay would take longer than the other lines
def _unprofiled_replays() -> type[UnprofiledReplays]:
    from epprof_nb.ep.graphs.run_methods import UnprofiledReplays

    return UnprofiledReplays


def _with_noted_errors(
    args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return arguments of ``run_async`` with a callback that also notes the error of its run."""
    is_positional = len(args) > _CALLBACK
    callback = args[_CALLBACK] if is_positional else kwargs.get("callback")
    if not callable(callback):
        return args, kwargs

    def noting(results: object, user_data: object, error: str) -> object:
        if error:
            failed_runs.add_ended_run(error)
        return callback(results, user_data, error)

    if is_positional:
        return (*args[:_CALLBACK], noting, *args[_CALLBACK + 1 :]), kwargs
    return args, {**kwargs, "callback": noting}


def _has_kernels_in_python(observed_session: ObservedSession | None) -> bool:
    return (
        observed_session is not None
        and observed_session.has_own_profiler
        and not observed_session.captures_graphs
    )


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
