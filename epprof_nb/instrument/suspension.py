"""Suspension of ops in generators and coroutines: they leave the op stack at each yield.

The native core calls `track_frame` when an op opens in the frame of a generator or coroutine.
From Python 3.12, ``sys.monitoring`` reports the yields and resumptions of that code only. On
Python 3.11 a profile function does. It sees every call of the thread, so it is set only while ops
are open in such frames.
"""

from __future__ import annotations

import sys
import threading
import warnings
from typing import TYPE_CHECKING

from epprof_nb import _native

if TYPE_CHECKING:
    from types import CodeType, FrameType

TOOL_NAME = "epprof_nb"


def _warn(why: str) -> None:
    warnings.warn(
        "epprof_nb cannot see when generators and coroutines are suspended: "
        f"{why} Their ops stay open across each yield and await, so work of other tasks that run "
        "meanwhile may be counted for them.",
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
            self.lock = threading.Lock()
            self.tool: int | None = None
            self.refused = False
            # Keyed by id, because comparing code objects compares their bytecode.
            self.tracked: dict[int, CodeType] = {}

        def track(self, frame: FrameType) -> None:
            """Receive the events of the frame's code from its next yield on."""
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

        def stop(self) -> None:
            """Disable all events and free the tool id."""
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
            # The ids reserved for debuggers, coverage, profilers and optimizers are tried last.
            for tool in (4, 3, 2, 5, 1, 0):
                if _monitoring.get_tool(tool) is None:
                    try:
                        _monitoring.use_tool_id(tool, TOOL_NAME)
                    except ValueError:  # taken by another thread in the meantime
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
                (_EVENTS.PY_YIELD, _on_yield),
                (_EVENTS.PY_RESUME, _on_resume),
                (_EVENTS.PY_THROW, self._on_throw),
                (_EVENTS.PY_RETURN, _on_return),
            ):
                _monitoring.register_callback(tool, event, callback)
            # PY_THROW has no local form.
            _monitoring.set_events(tool, _EVENTS.PY_THROW)
            return tool

        def _on_throw(self, code: CodeType, _offset: int, _error: BaseException) -> None:
            if id(code) in self.tracked:
                _native.resume(id(sys._getframe(1)))  # noqa: SLF001

    def _on_yield(_code: CodeType, _offset: int, _value: object) -> None:
        _native.suspend(id(sys._getframe(1)))  # noqa: SLF001

    def _on_resume(_code: CodeType, _offset: int) -> None:
        _native.resume(id(sys._getframe(1)))  # noqa: SLF001

    def _on_return(_code: CodeType, _offset: int, _value: object) -> None:
        _native.frame_finished(id(sys._getframe(1)))  # noqa: SLF001

else:
    from opcode import opmap

    _YIELD = opmap["YIELD_VALUE"]

    class _Monitor:
        """The profile functions, one per thread in which a tracked frame is alive."""

        def __init__(self) -> None:
            self.local = threading.local()
            self.warned = False
            self.generation = 0

        def track(self, frame: FrameType) -> None:
            """Set the profile function of this thread, unless another one is set."""
            frames = self._frames()
            frames.add(id(frame))
            current = sys.getprofile()
            if current is None:
                sys.setprofile(self._on_event)
            elif current != self._on_event and not self.warned:
                self.warned = True
                _warn("another profile function is set (sys.setprofile); stop that profiler.")

        def stop(self) -> None:
            """Stop tracking; other threads unset their profile function at its next event."""
            self.generation += 1
            self.warned = False
            self._unset()

        def _frames(self) -> set[int]:
            if getattr(self.local, "generation", None) != self.generation:
                self.local.generation = self.generation
                self.local.frames = set()
            frames: set[int] = self.local.frames
            return frames

        def _unset(self) -> None:
            if sys.getprofile() == self._on_event:
                sys.setprofile(None)

        def _on_event(self, frame: FrameType, event: str, _arg: object) -> None:
            frames = self._frames()
            if event == "call":
                if id(frame) in frames:
                    _native.resume(id(frame))
            elif event == "return" and id(frame) in frames:
                if frame.f_code.co_code[frame.f_lasti] == _YIELD:
                    _native.suspend(id(frame))
                else:
                    frames.discard(id(frame))
                    _native.frame_finished(id(frame))
            if not frames:
                self._unset()


_monitor = _Monitor()


def track_frame(frame: FrameType) -> None:
    """Track the suspensions of a generator or coroutine frame; called by the native core."""
    _monitor.track(frame)


def stop_tracking() -> None:
    """Stop tracking; called when the last session ends."""
    _monitor.stop()
