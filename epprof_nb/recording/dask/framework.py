"""Tasks and actors of Dask as ops on the threads that run them."""

from __future__ import annotations

import inspect
import os
import pkgutil
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import epprof_nb.recording.ranges.ranges  # noqa: F401 - suspends the ops of coroutines
from epprof_nb import _native
from epprof_nb.recording.dask.submitting_lines import inheriting, line_of, running_line
from epprof_nb.recording.dask.task_ops import task_op
from epprof_nb.recording.frameworks.patches import Patches
from epprof_nb.recording.statements.statement_registry import STATEMENT
from epprof_nb.util.after_import import after_import, cancel

if TYPE_CHECKING:
    from epprof_nb.core.options import Options

_MODULE = "distributed.worker"
_LOCKS = ("active_threads", "active_threads_lock")
_PARAMETERS = {
    "_run_task": ("task", "data", "execution_state", "key", *_LOCKS, "time_delay"),
    "_run_task_async": ("task", "data", "time_delay"),
    "_run_actor": ("func", "args", "kwargs", "execution_state", "key", *_LOCKS),
    "_run_task_simple": ("task", "data", "time_delay"),
}
"""Functions of the module that run tasks, with their parameters (2026.8.0)."""
_ON_LOOP = "Worker.actor_execute"
"""Method that calls methods of actors, those that run on the event loop itself."""
_OF_ON_LOOP = ("self", "actor", "function", "args", "kwargs")


class DaskFramework:
    """Records the tasks of Dask as ops.

    See `epprof_nb.recording.frameworks.framework.Framework`.
    """

    name = "dask"

    def __init__(self) -> None:
        self._wanted = False
        self._patches = Patches()
        self._begun = False
        self._notes: list[str] = []
        os.register_at_fork(after_in_child=self.stop)

    def start(self, options: Options) -> None:  # noqa: ARG002
        """Start recording now, or when other code has imported Dask's worker."""
        self._wanted = True
        self._notes = []
        after_import(_MODULE, self._begin)

    def extend(self, options: Options) -> None:
        """Do nothing: tasks are always recorded."""

    def _begin(self) -> None:
        if not self._wanted or self._begun:
            return
        self._begun = True
        module = sys.modules[_MODULE]
        split = getattr(sys.modules.get("dask.utils"), "key_split", str)
        wraps: dict[str, Callable[..., _Function]] = {
            "_run_task": _task, "_run_task_async": _coroutine, "_run_actor": _actor,
            "_run_task_simple": _PoolTask,
        }  # fmt: skip
        unknown = []
        for function, wrap in wraps.items():
            if wrap is _PoolTask and "_run_task" in unknown:
                continue  # threads may call it, too
            if _parameters(module, function) == _PARAMETERS[function]:
                self._patches.replace(module, function, partial(wrap, split=split))
            else:
                unknown.append(function)
        worker: Any = getattr(module, "Worker", None)
        if _parameters(worker, "actor_execute") == _OF_ON_LOOP:
            self._patches.replace(worker, "actor_execute", partial(_actor_on_loop, split=split))
            _bind_again(worker)
        else:
            unknown.append(_ON_LOOP)
        client: Any = getattr(sys.modules.get("distributed.client"), "Client", None)
        if hasattr(client, "_graph_to_futures"):  # tasks may submit tasks
            self._patches.replace(client, "_graph_to_futures", inheriting)
        if unknown:
            version = getattr(sys.modules.get("distributed"), "__version__", "unknown")
            what = "Tasks" if "_run_task" in unknown else "Some tasks"
            self._notes.append(
                f"{what} of distributed {version} are not recorded as ops, because "
                f"{', '.join(unknown)} {'is' if len(unknown) == 1 else 'are'} not as in 2026.8.0. "
                "Their device work is recorded."
            )

    def complete(self) -> None:
        """Do nothing: ops are complete when they end."""

    def notes(self) -> list[str]:
        """Return a note if this release of Dask is not known."""
        return list(self._notes)

    def stop(self) -> None:
        """Restore the functions of Dask, also in a forked child."""
        self._wanted = self._begun = False
        cancel(_MODULE, self._begin)
        self._patches.restore()
        _bind_again(getattr(sys.modules.get(_MODULE), "Worker", None))


def _parameters(module: object, function: str) -> tuple[str, ...]:
    try:
        return tuple(inspect.signature(getattr(module, function)).parameters)
    except (AttributeError, TypeError, ValueError):
        return ()


def _bind_again(worker_class: Any) -> None:  # noqa: ANN401
    """Let the workers of this process call the method of their class: they keep it bound."""
    with suppress(Exception):  # another version of Dask
        for worker in [*worker_class._instances]:  # noqa: SLF001
            handlers = worker.handlers
            if getattr(handlers.get("actor_execute"), "__self__", handlers) is worker:
                handlers["actor_execute"] = worker.actor_execute


_Function = Callable[..., Any]
_running = threading.local()
"""Whether the task of a thread has its op."""


def _task(original: _Function, split: Callable[[Any], str]) -> _Function:
    def recorded(*args: Any, **more: Any) -> object:
        key = more.get("key") if len(args) < 4 else args[3]
        state = more.get("execution_state") if len(args) < 3 else args[2]
        _running.has_op = True
        line, found = line_of(state.get("worker") if type(state) is dict else None, key)
        token = running_line.set(line)
        opened = _native.push(found[0], STATEMENT, found[1]) if found else 0
        try:
            with task_op(split, key):
                return original(*args, **more)
        finally:
            _native.pop(opened)
            running_line.reset(token)
            _running.has_op = False

    return recorded


class _PoolTask:
    """Replacement of the function that runs a task in a process of a pool.

    A worker sends it to its pools, some of it after the end of a session: it is pickled as the
    function that its module has.
    """

    def __init__(self, original: _Function, split: Callable[[Any], str]) -> None:
        self._original, self._split = original, split

    def __reduce__(self) -> tuple[Any, ...]:
        return pkgutil.resolve_name, (f"{_MODULE}:_run_task_simple",)

    def __call__(self, *args: Any, **more: Any) -> object:
        if getattr(_running, "has_op", False):  # it runs on a thread of the worker
            return self._original(*args, **more)
        task = more.get("task") if not args else args[0]
        with task_op(self._split, getattr(task, "key", "task")):
            return self._original(*args, **more)


def _coroutine(original: _Function, split: Callable[[Any], str]) -> _Function:
    async def recorded(*args: Any, **more: Any) -> object:
        task = more.get("task") if not args else args[0]
        key = getattr(task, "key", "coroutine")
        worker = getattr(sys.modules[_MODULE], "_worker_cvar", None)
        line, found = line_of(None if worker is None else worker.get(None), key)
        running_line.set(line)  # in the context of this asyncio task only
        # While the coroutine waits, its ops are not on the stack of the event loop.
        opened = _native.push_suspendable(found[0], STATEMENT, found[1]) if found else 0
        try:
            with task_op(split, key):
                return await original(*args, **more)
        finally:
            _native.pop(opened)

    return recorded


def _actor(original: _Function, split: Callable[[Any], str]) -> _Function:  # noqa: ARG001
    def recorded(*args: Any, **more: Any) -> object:
        # The key is the name of the actor and its method.
        with task_op(str, more.get("key") if len(args) < 5 else args[4]):
            return original(*args, **more)

    return recorded


def _actor_on_loop(original: _Function, split: Callable[[Any], str]) -> _Function:
    async def recorded(self: Any, **message: Any) -> object:  # noqa: ANN401
        actor, name = message.get("actor"), str(message.get("function"))
        try:
            method = getattr(self.state.actors[actor], name)
            threaded = (message.get("kwargs") or {}).get("separate_thread", True)
            on_loop = not threaded or sys.modules[_MODULE].iscoroutinefunction(method)
        except Exception:  # noqa: BLE001 - the original says what is wrong
            on_loop = False
        if not on_loop:
            return await original(self, **message)
        with task_op(str, f"{split(actor)}.{name}"):
            return await original(self, **message)

    return recorded
