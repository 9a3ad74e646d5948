"""Time that the interpreter takes to call markers and callbacks, which they cannot time themselves.

It is measured once per process, in loops that call them outside of a recording: they return at once
then. While something else records or watches the interpreter, as a debugger does, the usual time
is taken.
"""

from __future__ import annotations

import sys
import time
from functools import cache
from typing import TYPE_CHECKING, Any

from epprof_nb import _native
from epprof_nb.core.recording_costs import FUNCTIONS, INNER_STATEMENTS, STATEMENTS, SUSPENSIONS
from epprof_nb.recording.session.service import service
from epprof_nb.recording.statements.markers import BODY, LINE, MARKERS
from epprof_nb.recording.statements.statement_registry import NO_PARENT, Cell, Statement, register

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_TURNS, _ROUNDS = 100, 7
"""Turns of a loop that calls them, and how often it runs: the shortest time counts."""
_STATEMENTS = (
    "a = i + 1", "b = str(i)", "d[i % 7] = b", "c = b + 'x'", "e = a, b", "f = b.upper()",
    "g = a if a > 50 else i", "h = [a, b]",
)  # fmt: skip
"""Statements of the loop. Programs have several; a loop of a single one would be faster."""
_EVENTS = {
    STATEMENTS: len(_STATEMENTS), INNER_STATEMENTS: len(_STATEMENTS), FUNCTIONS: 12, SUSPENSIONS: 2,
}  # fmt: skip
"""Number of events per turn."""
_USUAL_NS = {STATEMENTS: 47.0, INNER_STATEMENTS: 20.0, FUNCTIONS: 48.0, SUSPENSIONS: 123.0}
"""Time per event where it cannot be measured: of Python 3.11 on an EPYC."""
_UNKNOWN_KEY = 2**32 - 2
"""Not a key of a statement: if another profile records, it gets no rows."""
_UNTIMED_NS = 8
"""Time that a marker takes before it starts its timer: only while something is recorded."""
_LOOP = "d = {}\nfor i in turns:\n"
_CALLS = """
class A:
 def __init__(self, value):
  [with]self.value = value
 def plus(self, other):
  [with]return self.value + other
def f(a, b):
 [with]return a.plus(b)
def g(n):
 [with]return g(n - 1) + 1 if n else 0
for i in turns: f(A(i), g(2))
"""


def ns_per_event(kind: int) -> float:
    """Return the time of the interpreter per event of a kind of cost, ns; 0 of other kinds."""
    if kind not in _EVENTS:
        return 0.0
    if _is_watched() or service.open_subscriptions:
        return _USUAL_NS[kind]
    return _measured_ns(kind)


def _is_watched() -> bool:
    """Return whether a debugger, profiler or coverage tool follows what runs."""
    if sys.gettrace() is not None or sys.getprofile() is not None:
        return True
    monitoring = getattr(sys, "monitoring", None)  # since Python 3.12
    return monitoring is not None and any(
        monitoring.get_events(tool) for tool in range(6) if monitoring.get_tool(tool) is not None
    )


@cache
def _measured_ns(kind: int) -> float:
    if kind == SUSPENSIONS:
        added = _least_ns(_reported_yields) - _least_ns(_yields)
    else:
        added = _time(_program(kind, is_marked=True)) - _time(_program(kind, is_marked=False))
    return max(added, 0) / _TURNS / _EVENTS[kind] + _UNTIMED_NS


def _program(kind: int, *, is_marked: bool) -> str:
    """Return a program, with or without the markers of a kind."""
    if kind == FUNCTIONS:
        key = register([Statement(Cell("", ""), 1, 1, "")], [NO_PARENT])
        return _CALLS.replace("[with]", f"with {BODY}({key}): " * is_marked)
    marker = f"{LINE}({_UNKNOWN_KEY}); " * is_marked
    loop = _LOOP + "".join(f" {marker}{statement}\n" for statement in _STATEMENTS)
    if kind == INNER_STATEMENTS:
        return "def f():\n" + "".join(f" {line}\n" for line in loop.splitlines()) + "f()\n"
    return loop


def _time(source: str) -> int:
    names: dict[str, Any] = {**MARKERS, "turns": range(_TURNS)}
    code = compile(source, "<epprof_nb>", "exec")
    return _least_ns(lambda: exec(code, names))  # noqa: S102 - the code above


def _least_ns(run: Callable[[], object]) -> int:
    times = []
    for _ in range(_ROUNDS):
        begin = time.perf_counter_ns()
        run()
        times.append(time.perf_counter_ns() - begin)
    return min(times)


def _generator() -> Iterator[None]:
    for _ in range(_TURNS):
        yield


def _yields() -> None:
    for _ in _generator():
        pass


if sys.version_info >= (3, 12):

    def _reported_yields() -> None:
        """Run the generator with callbacks on its yields, if an id of tools is free."""
        monitoring = sys.monitoring
        tool = next((t for t in (4, 3) if monitoring.get_tool(t) is None), None)
        if tool is None:
            return _yields()
        events = monitoring.events
        try:
            monitoring.use_tool_id(tool, "epprof_nb: interpreter calls")
        except ValueError:  # taken by another thread just now
            return _yields()
        try:
            monitoring.register_callback(tool, events.PY_YIELD, _native.on_yield)
            monitoring.register_callback(tool, events.PY_RESUME, _native.on_resume)
            code = _generator.__code__
            monitoring.set_local_events(tool, code, events.PY_YIELD | events.PY_RESUME)
            _yields()
            monitoring.set_local_events(tool, code, 0)
        finally:
            monitoring.free_tool_id(tool)
        return None

else:

    def _reported_yields() -> None:
        """Run the generator with a profile function, if no other is set."""
        if sys.getprofile() is None:
            _native.watch_frame(sys._getframe())  # noqa: SLF001 - until it returns
            _native.set_profile_function(_native.on_profile_event)
        _yields()
