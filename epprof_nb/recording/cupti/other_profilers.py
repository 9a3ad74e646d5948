"""Other profilers in this process that compete for CUPTI, mainly PyTorch's."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import ModuleType

    _Function = Callable[..., object]

_ALREADY_SUBSCRIBED = {
    "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED",
    "CUPTI_ERROR_MAX_LIMIT_REACHED",
}
_TEARDOWN_S = 0.2
"""Time that PyTorch's profiler needs to end its use of CUPTI, with an ample margin."""


def active_profiler() -> str | None:
    """Return the name of another profiler that is recording in this process, if detectable."""
    torch = sys.modules.get("torch")
    enabled = getattr(getattr(torch, "autograd", None), "_profiler_enabled", None)
    if enabled is not None and enabled():
        return "torch.profiler"
    injected = os.environ.get("CUDA_INJECTION64_PATH", "")
    if injected:
        return "Nsight Systems" if "nsys" in injected.lower() else injected
    if any("NVIDIA_NSIGHT_COMPUTE" in k or k.startswith("NV_NSIGHT") for k in os.environ):
        return "Nsight Compute"
    return None


def notes_on_profilers(refusal: str | None) -> Iterator[str]:
    """Yield the note on another profiler in this process, if there is one.

    Parameters
    ----------
    refusal
        CUPTI's error if it refused its callbacks to the recorder, else None.
    """
    profiler = active_profiler()
    if refusal is not None:
        yield (
            f"CUPTI's callbacks are held by {profiler or _likely_holder(refusal)} ({refusal}). "
            "Activities are attributed by external correlation instead, which has more overhead "
            "and does not show which ops captured a CUDA graph. Restart the Jupyter kernel to "
            "avoid this."
        )
    elif profiler:
        yield (
            f"{profiler} is active in this process. It may consume records that are then missing "
            "from this profile."
        )


def _likely_holder(result: str) -> str:
    """Return the probable holder of CUPTI's callbacks, given the error of the subscription."""
    if result not in _ALREADY_SUBSCRIBED:
        return "an unknown tool"
    if "torch" in sys.modules:
        return "another profiler, probably torch.profiler, which keeps them after its first run"
    return "another profiler"


def teardown_attempts() -> Iterator[None]:
    """Let PyTorch's profiler end its use of CUPTI, and yield whenever it may have done so.

    With ``TEARDOWN_CUPTI=1``, it calls ``cuptiFinalize`` inside the first call of the CUDA runtime
    after it has stopped. The call discards what other profilers have set up by then. Yields nothing
    without the variable.
    """
    torch: Any = sys.modules.get("torch")
    if os.environ.get("TEARDOWN_CUPTI") != "1" or torch is None or not torch.cuda.is_initialized():
        return
    end = time.monotonic() + _TEARDOWN_S
    while time.monotonic() < end:
        torch.cuda.current_device()  # calls cudaGetDevice
        yield
        time.sleep(0.001)


class TorchProfilerHooks:
    """Hands CUPTI to PyTorch's profiler while it records inside a session.

    That profiler subscribes to CUPTI's callbacks in its first run in a process. If CUPTI refuses,
    it records no GPU activity for the rest of the process.

    Parameters
    ----------
    pause, resume
        Called before PyTorch's profiler starts and after it has stopped.
    """

    def __init__(self, pause: Callable[[], None], resume: Callable[[], None]) -> None:
        self._pause = pause
        self._resume = resume
        self._module: ModuleType | None = None
        self._original: dict[str, _Function] = {}
        self._wrapped: dict[str, _Function] = {}

    def install(self) -> None:
        """Wrap the functions that start and stop PyTorch's profiler, if PyTorch is imported."""
        self.remove()  # a forked child has the functions of its parent
        self._module = sys.modules.get("torch.autograd.profiler")
        for name, wrap in (
            ("_prepare_profiler", self._pausing),
            ("_enable_profiler", self._pausing_for_gpu),
            ("_disable_profiler", self._resuming),
        ):
            function = getattr(self._module, name, None)
            if function is not None:
                self._original[name] = function
                self._wrapped[name] = wrap(function)
                setattr(self._module, name, self._wrapped[name])

    def remove(self) -> None:
        """Restore the functions, except those that others have replaced."""
        for name, wrapped in self._wrapped.items():
            if getattr(self._module, name, None) is wrapped:
                setattr(self._module, name, self._original[name])
        self._wrapped.clear()
        self._original.clear()

    def _pausing(self, function: _Function) -> _Function:
        def start(*args: object) -> object:
            self._pause()
            try:
                return function(*args)
            except BaseException:
                self._resume()
                raise

        return start

    def _pausing_for_gpu(self, function: _Function) -> _Function:
        start = self._pausing(function)

        def start_for_gpu(*args: object) -> object:
            result = start(*args)
            if not any(getattr(activity, "name", "") == "CUDA" for activity in _activities(args)):
                self._resume()
            return result

        return start_for_gpu

    def _resuming(self, function: _Function) -> _Function:
        def stop(*args: object) -> object:
            self._pause()  # a stop disables all records, also for other profilers
            try:
                return function(*args)
            finally:
                self._resume()

        return stop


def _activities(args: tuple[object, ...]) -> Iterable[object]:
    """Return the activities that PyTorch's profiler records, from its start arguments."""
    activities = args[1] if len(args) > 1 else ()
    return activities if isinstance(activities, (set, list, tuple, frozenset)) else ()
