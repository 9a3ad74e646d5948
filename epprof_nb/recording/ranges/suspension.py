"""Suspension of generators and coroutines: their ops leave the stack while they are suspended.

The native core calls `track_frame` when an op opens in such a frame. From Python 3.12 on,
``sys.monitoring`` then reports yields and resumptions of that code only. On Python 3.11, a profile
function reports them. It receives every call of the thread, so it is set only while such frames are
alive.

The callbacks are functions of the native core. Python functions would run pending signal handlers,
which could raise KeyboardInterrupt outside the generator's ``try``.
"""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING

from epprof_nb import _native
from epprof_nb.util.fork_safe_lock import fork_safe_lock

if TYPE_CHECKING:
    from types import CodeType, FrameType

TOOL_NAME = "epprof_nb"


def _warn(why: str) -> None:
    warnings.warn(
        "epprof_nb cannot see when generators and coroutines are suspended: "
        f"{why} Their ops stay open across each yield and await, so work of other tasks that run "
        "meanwhile may be attributed to them.",
        RuntimeWarning,
        stacklevel=2,
    )


if sys.version_info >= (3, 12):
    _monitoring = sys.monitoring
    _EVENTS = _monitoring.events
    _LOCAL_EVENTS = _EVENTS.PY_YIELD | _EVENTS.PY_RESUME | _EVENTS.PY_RETURN

    class _Monitor:
        """The monitoring tool of the process; holds a tool id only while code is tracked."""

        def __init__(self) -> None:
            self.lock = fork_safe_lock()
            self.tool: int | None = None
            self.refused = False
            # By id: comparing code objects compares their bytecode.
            self.tracked: dict[int, CodeType] = {}

        def track(self, frame: FrameType) -> None:
            """Enable the events of the code of `frame`, from its next yield on."""
            code = frame.f_code
            if id(code) in self.tracked or self.refused:
                return
            with self.lock:
                if self.tool is None:
                    self.tool = self._take_tool()
                if self.tool is None:
                    return
                _monitoring.set_local_events(self.tool, code, _LOCAL_EVENTS)
                self.tracked[id(code)] = code

        def notes(self) -> list[str]:
            """Return no note: other tools cannot disable these events."""
            return []

        def stop(self) -> None:
            """Disable all events and release the tool id."""
            with self.lock:
                self.refused = False
                if self.tool is None:
                    return
                for code in self.tracked.values():
                    _monitoring.set_local_events(self.tool, code, 0)
                self.tracked.clear()
                _monitoring.set_events(self.tool, 0)
                _monitoring.free_tool_id(self.tool)
                self.tool = None

        def _take_tool(self) -> int | None:
            # The ids of debuggers, coverage, profilers and optimizers come last, because these
            # tools expect their ids to be free.
            for tool in (4, 3, 2, 5, 1, 0):
                if _monitoring.get_tool(tool) is None:
                    try:
                        _monitoring.use_tool_id(tool, TOOL_NAME)
                    except ValueError:  # taken by another thread just now
                        continue
                    break
            else:
                self.refused = True
                _warn(
                    "all tool ids of sys.monitoring are taken by other debuggers or profilers; "
                    "free one (sys.monitoring.free_tool_id) before the next profile."
                )
                return None
            for event, callback in (
                (_EVENTS.PY_YIELD, _native.on_yield),
                (_EVENTS.PY_RESUME, _native.on_resume),
                (_EVENTS.PY_THROW, _native.on_throw),
                (_EVENTS.PY_RETURN, _native.on_return),
            ):
                _monitoring.register_callback(tool, event, callback)
            # PY_THROW has no local form.
            _monitoring.set_events(tool, _EVENTS.PY_THROW)
            return tool

else:

    class _Monitor:
        """The profile functions, one per thread in which a tracked frame is alive."""

        def __init__(self) -> None:
            self.warned = False
            self.refused = False
            self.missed = False

        def track(self, frame: FrameType) -> None:
            """Set this thread's profile function, if no other is set."""
            current = sys.getprofile()
            self.missed = self.missed or self._misses_events(current)
            _native.watch_frame(frame)
            if current is _native.on_profile_event:
                return
            if current is not None:
                why = "another profile function is set (sys.setprofile); stop that profiler."
            elif self.refused or _native.set_profile_function(_native.on_profile_event):
                return
            else:
                self.refused = True  # the interpreter prints an error for each attempt
                why = (
                    "no profile function can be set, because an audit hook forbids it "
                    "(sys.addaudithook) or this Python does not export PyEval_SetProfile; remove "
                    "the hook or use Python 3.12 or later."
                )
            if not self.warned:
                self.warned = True
                _warn(why)

        def notes(self) -> list[str]:
            """Return a note for the user if frames were watched without the profile function."""
            if not self.missed and not self._misses_events(sys.getprofile()):
                return []
            note = (
                "Some suspensions of generators and coroutines were not seen, because another "
                "profile function was set, or epprof_nb's was unset (sys.setprofile, cProfile). "
                "Ops in them may have stayed open across a yield or await, so work of other code "
                "may be attributed to them. Profile without that code, or use Python 3.12 or later."
            )
            return [note]

        def stop(self) -> None:
            """Stop tracking; other threads unset their profile function at its next event."""
            self.warned = self.refused = self.missed = False
            _native.unwatch_frames()

        def _misses_events(self, current: object) -> bool:
            """Return whether frames are watched but the profile function receives no events."""
            if current is _native.on_profile_event or self.refused:
                return False
            if not _native.watched_frames():
                return False

            def call() -> None:
                """Raise the events of a call and its return."""

            before = _native.profile_events()
            call()  # the function that is set may call ours
            return _native.profile_events() == before


_monitor = _Monitor()


def track_frame(frame: FrameType) -> None:
    """Follow the suspensions of a frame of a generator or coroutine; called by the native core."""
    _monitor.track(frame)


def notes() -> list[str]:
    """Return a note for the user if suspensions were missed."""
    return _monitor.notes()


def stop_tracking() -> None:
    """Stop following; called when the last session ends."""
    _monitor.stop()
