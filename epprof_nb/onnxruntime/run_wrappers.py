"""What the methods of an ``InferenceSession`` do besides running it."""

from __future__ import annotations

import functools
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from epprof_nb.onnxruntime import graph_replays as ort_replays
from epprof_nb.onnxruntime import run_profile_files as ort_run_files
from epprof_nb.recorders.onnxruntime import sessions as ort_runs
from epprof_nb.recorders.onnxruntime import unprofiled_runs as ort_pace

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

_ALONE = nullcontext()


def running(original: Callable[..., Any], position: int) -> Callable[..., Any]:
    """Return the method `original`, whose runs are recorded, or timed now and then.

    Parameters
    ----------
    original
        A method of ``InferenceSession`` that runs it.
    position
        Where its run options stand among the arguments.
    """
    way = original.__name__
    returns_early = way == "run_async"

    @functools.wraps(original)
    def run(self: object, *args: Any, **kwargs: Any) -> object:
        if not returns_early and ort_runs.any_files():
            given = args[position] if len(args) > position else kwargs.get("run_options")
            with ort_run_files.of(self, given):
                return observed(self, args, kwargs)
        return observed(self, args, kwargs)

    def observed(self: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
        pace = None if returns_early else getattr(self, ort_pace.ATTRIBUTE, None)
        if ort_runs.recording():
            begun = ort_pace.now()
            result = recorded(self, args, kwargs)
            if pace is not None:
                ort_pace.add_call(begun, pace, ort_pace.inputs_of(args, kwargs, way))
            return result
        if pace is None:
            with going(self):
                return original(self, *args, **kwargs)
        if pace.wait:
            pace.wait -= 1
            return original(self, *args, **kwargs)
        timer = ort_pace.Timer()
        try:
            result = original(self, *args, **kwargs)
        finally:
            duration = timer.stop()
        given = args[position] if len(args) > position else kwargs.get("run_options")
        if timer.alone and not ort_runs.recording() and not ort_runs.is_profiled(given):
            pace.add(ort_pace.inputs_of(args, kwargs, way), duration)
        return result

    def recorded(self: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
        given = args[position] if len(args) > position else kwargs.get("run_options")
        with ort_replays.run_of(self, given, returns_early=returns_early) as profiled:
            if profiled:
                options = ort_runs.options_for(self, given)
                if len(args) > position:
                    args = (*args[:position], options, *args[position + 1 :])
                else:
                    kwargs = {**kwargs, "run_options": options}
            with going(self):
                return original(self, *args, **kwargs)

    def going(session: object) -> AbstractContextManager[None]:
        if not ort_runs.count_runs():
            return _ALONE
        return ort_runs.going(session, returns_early=returns_early)

    return run


def ending(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``end_profiling``, which adds the device work to what ONNX Runtime wrote."""

    @functools.wraps(original)
    def end_profiling(self: object) -> object:
        sight = ort_runs.sight_of(self)
        if sight is None or sight.number is None:
            return original(self)
        if sight.session_profile and not sight.graphs:
            from epprof_nb.onnxruntime import json_profile as ort_device_events

            ort_device_events.end(self, sight.number)
        try:
            return original(self)
        finally:
            ort_runs.end_whole(self)

    return end_profiling
