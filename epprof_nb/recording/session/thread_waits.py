"""Waits of Python threads for each other.

Semaphores, barriers, events, futures and `queue.Queue` wait in `Condition.wait`. Events and futures
do not call it if they are set, but what follows depends on the thread that set them all the same.
Locks and `queue.SimpleQueue` wait in C: see `epprof_nb.recording.session.lock_waits`.
"""

from __future__ import annotations

import concurrent.futures
import threading
from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb import _native
from epprof_nb._native import now_ns, thread_id
from epprof_nb.arrays.intervals import union
from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.schema import MISSING, THREAD_WAITS
from epprof_nb.data.table import Table, concat
from epprof_nb.recording.frameworks.patches import Patches
from epprof_nb.recording.session import lock_waits

if TYPE_CHECKING:
    from collections.abc import Callable

    from epprof_nb.core.options import Options

    Function = Callable[..., Any]

_MAX_WAITS = 1_000_000
_SET = "_epprof_set"
"""Attribute of a condition with waiters, of an event and of a future: when it was last notified or
set, and by which thread."""
_NEVER = (-1, MISSING)
_IMMUTABLE = 1 << 8
"""Flag of types whose attributes cannot be replaced (``Py_TPFLAGS_IMMUTABLETYPE``)."""

_patches = Patches()
_waits: deque[tuple[int, int, int, int, str]] = deque(maxlen=_MAX_WAITS)


def start(options: Options) -> None:  # noqa: ARG001
    """Record the waits from now on, the last million of them."""
    lock_waits.start()
    if _patches:
        return
    for kind, name, wrap in (
        (threading.Condition, "notify", _noted_notify),
        (threading.Condition, "wait", _recorded_wait),
        (threading.Thread, "join", _recorded_join),
        (threading.Event, "set", _noted),
        (threading.Event, "wait", _recorded_event),
        (concurrent.futures.Future, "set_result", _noted),
        (concurrent.futures.Future, "set_exception", _noted),
        (concurrent.futures.Future, "result", _recorded_result),
    ):
        # Others may have put a class of an extension in its place, as gevent does.
        if getattr(kind, "__flags__", 0) & _IMMUTABLE == 0:
            _patches.replace(kind, name, wrap)


def stop() -> None:
    """Stop, and forget the waits."""
    _native.stop_lock_waits()
    _patches.restore()
    _waits.clear()


def drain() -> Table:
    """Return the waits that have ended since the last call."""
    in_c = lock_waits.drain()
    rows = [_waits.popleft() for _ in range(len(_waits))]
    if not rows:
        return in_c
    *numbers, functions = zip(*rows, strict=True)
    names = ("start_ns", "end_ns", "thread_id", "other_thread_id")
    columns = {n: np.array(v, np.int64) for n, v in zip(names, numbers, strict=True)}
    columns["duration_ns"] = columns["end_ns"] - columns["start_ns"]
    table = Table(THREAD_WAITS, {**columns, "function": CategoryColumn.of(functions)})
    return concat([table, _without_inner(in_c, table)])


def waits_until(waits: Table, closed_ns: int) -> Table:
    """Return waits, as rows of ``thread_waits``, as far as they were before a time, ns."""
    kept = waits.take(waits["start_ns"] < closed_ns)
    end = np.minimum(kept["end_ns"], closed_ns)
    return kept.replace(end_ns=end, duration_ns=end - kept["start_ns"])


def _without_inner(waits: Table, outer: Table) -> Table:
    """Return the waits outside of other waits: a condition, for example, waits for its own lock."""
    kept = np.ones(len(waits), np.bool_)
    for thread in np.unique(outer["thread_id"]).tolist():
        own = np.flatnonzero(waits["thread_id"] == thread)
        of_thread = outer.take(outer["thread_id"] == thread)
        start, end = union(of_thread["start_ns"], of_thread["end_ns"])
        at = np.searchsorted(start, waits["start_ns"][own], side="right") - 1
        kept[own] = waits["start_ns"][own] >= np.append(end, 0)[at]  # -1: before all of them
    return waits.take(kept)


def _noted(original: Function) -> Function:
    def noted(self: object, *args: Any, **kwargs: Any) -> object:
        setattr(self, _SET, (now_ns(), thread_id()))
        return original(self, *args, **kwargs)

    return noted


def _noted_notify(original: Function) -> Function:
    def notify(self: Any, n: int = 1) -> object:  # noqa: ANN401
        if self._waiters:
            setattr(self, _SET, (now_ns(), thread_id()))
        return original(self, n)

    return notify


def _recorded_wait(original: Function) -> Function:
    def wait(self: threading.Condition, *args: Any, **kwargs: Any) -> object:
        start = now_ns()
        is_notified = original(self, *args, **kwargs)
        end, other = getattr(self, _SET, _NEVER) if is_notified else _NEVER
        if end < start:  # it timed out, or whoever notified it is not recorded
            end, other = now_ns(), MISSING
        _waits.append((start, end, thread_id(), other, "Condition.wait"))
        return is_notified

    return wait


def _recorded_join(original: Function) -> Function:
    def join(self: threading.Thread, *args: Any, **kwargs: Any) -> object:
        start = now_ns() if self.is_alive() else None
        result = original(self, *args, **kwargs)
        end, other = now_ns(), self.native_id
        if other is not None:
            other = MISSING if self.is_alive() else other
            _waits.append((start or end, end, thread_id(), other, "Thread.join"))
        return result

    return join


def _recorded_event(original: Function) -> Function:
    def wait(self: threading.Event, *args: Any, **kwargs: Any) -> object:
        if self.is_set():
            _depend_on(self, "Event.wait")
        return original(self, *args, **kwargs)

    return wait


def _recorded_result(original: Function) -> Function:
    def result(self: concurrent.futures.Future[Any], *args: Any, **kwargs: Any) -> object:
        # `done` would wait for the lock that the other thread holds while it sets the result.
        if getattr(self, "_state", None) == "FINISHED":
            _depend_on(self, "Future.result")
        return original(self, *args, **kwargs)

    return result


def _depend_on(waited_for: object, function: str) -> None:
    """Record that the calling thread depends on the one that set an event or a future."""
    _, other = getattr(waited_for, _SET, _NEVER)
    this = thread_id()
    if other not in (MISSING, this):
        now = now_ns()
        _waits.append((now, now, this, other, function))
