"""Ops of the compilations by JAX: tracing, lowering, and XLA's compilation."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any

from epprof_nb import _native
from epprof_nb.recording.frameworks.framework_ops import CALL, new_kind
from epprof_nb.recording.jax.arguments import arguments_of_call
from epprof_nb.recording.jax.calls import name_without_jit

if TYPE_CHECKING:
    from epprof_nb.recording.frameworks.framework_ops import OpKind
    from epprof_nb.recording.frameworks.patches import Switch

_STAGES = {
    "/jax/core/compile/jaxpr_trace_duration": "trace",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "lower",
    "/jax/core/compile/backend_compile_duration": "compile",
}
"""Events of ``jax.monitoring`` and the types of their ops."""

_CACHE_HIT = "/jax/compilation_cache/cache_hits"
_CACHE_MISS = "/jax/compilation_cache/cache_misses"


class JaxCompilations:
    """Listeners of ``jax.monitoring`` that record the stages of compilations as ops.

    A stage inside another of the same type is part of it, for example the trace of a function that
    a traced function calls.

    Parameters
    ----------
    switch
        Whether compilations are recorded.
    """

    def __init__(self, switch: Switch) -> None:
        self._switch = switch
        self._open = _OpenStages()
        monitoring = sys.modules["jax"].monitoring
        monitoring.register_scalar_listener(self._begin)
        monitoring.register_event_time_span_listener(self._end)
        monitoring.register_event_listener(self._count)

    def stop(self) -> None:
        """Remove the listeners, unless other code has removed them."""
        _native.xla_compiling(None)
        monitoring = sys.modules["jax"].monitoring
        for unregister, listener in (
            (monitoring.unregister_scalar_listener, self._begin),
            (monitoring.unregister_event_time_span_listener, self._end),
            (monitoring.unregister_event_listener, self._count),
        ):
            try:
                unregister(listener)
            except (AssertionError, ValueError):  # `clear_event_listeners` was called
                continue

    def _begin(self, event: str, value: float, **details: Any) -> None:  # noqa: ARG002
        stage = _STAGES.get(event)
        if stage is None or not self._switch.on or not self._hears_ends():
            return
        stages = self._open.stages
        op_id, kind = 0, None
        args: dict[str, object] = {"function": _function_name(details)}
        if all(other.event != event for other in stages):
            if arguments := arguments_of_call(str(args["function"])):
                args["arguments"] = arguments
            name = _native.intern(f"jax.{stage}")
            kind_id, kind = new_kind(stage, "jax")
            op_id = _native.push(name, CALL, kind_id)
        _native.vectorcalls_pause(True)  # noqa: FBT003 - positional only
        if stage == "compile":
            _native.xla_compiling(True)  # noqa: FBT003 - positional only
        stages.append(_Stage(event, op_id, kind, args))

    def _hears_ends(self) -> bool:
        """Whether ends of stages are reported: `clear_event_listeners` keeps only beginnings."""
        from jax._src import monitoring

        return self._end in monitoring.get_event_time_span_listeners()

    def _end(self, event: str, start: float, end: float, **details: Any) -> None:  # noqa: ARG002
        stages = self._open.stages
        # No stage is open if this one began before the recording.
        if event not in _STAGES or not stages or stages[-1].event != event:
            return
        stage = stages.pop()
        _native.vectorcalls_pause(False)  # noqa: FBT003 - positional only
        if _STAGES[event] == "compile" and self._switch.on:
            _native.xla_compiling(False)  # noqa: FBT003 - positional only
        if stage.kind is not None:
            stage.kind.set_args(stage.args)
            _native.pop(stage.op_id)

    def _count(self, event: str, **details: Any) -> None:  # noqa: ARG002
        stages = self._open.stages
        if stages and event in {_CACHE_HIT, _CACHE_MISS}:
            stages[-1].args["persistent_cache"] = "hit" if event == _CACHE_HIT else "miss"


class _Stage:
    """A running stage; it has no op and no kind inside another stage of its type."""

    __slots__ = ("args", "event", "kind", "op_id")

    def __init__(
        self, event: str, op_id: int, kind: OpKind | None, args: dict[str, object]
    ) -> None:
        self.event = event
        self.op_id = op_id
        self.kind = kind
        self.args = args


class _OpenStages(threading.local):
    """The open stages of the calling thread, the outermost first."""

    def __init__(self) -> None:
        self.stages: list[_Stage] = []


def _function_name(details: dict[str, Any]) -> str:
    """Return the name of the compiled function."""
    return name_without_jit(str(details.get("fun_name", "unknown")))
