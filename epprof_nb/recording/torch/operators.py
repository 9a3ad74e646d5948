"""Operators of PyTorch as ops, through its NVTX observer, which calls the native core.

In builds with CUDA, the observer's messages come through NVTX. Builds without CUDA have no NVTX, so
the native core replaces the functions that the observer calls.
"""

from __future__ import annotations

import re
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epprof_nb import _native
from epprof_nb.recording.frameworks.patches import Patches
from epprof_nb.util.format import duration

if TYPE_CHECKING:
    from collections.abc import Callable

_CPU_VERSIONS = ((2, 6), (2, 13))
"""First and last release whose C++ interface matches ``native/torch/profiler_stubs.h``."""

_PROFILERS = (
    ("torch.autograd.profiler", "_enable_profiler", "_disable_profiler"),
    ("torch.autograd.profiler_legacy", "_enable_profiler_legacy", "_disable_profiler_legacy"),
)
"""Modules with the functions that start and stop torch's profilers. Only one may run."""


class Operators:
    """The NVTX observer of torch, on the thread that starts the recording.

    Autograd's threads inherit it from the thread that started the backward pass.
    """

    def __init__(self) -> None:
        self._patches = Patches()
        self._owner: int | None = None
        """The thread on which the observer is enabled."""
        self._is_wanted = False
        self._interrupted: tuple[int, int] | None = None
        """Thread and time at which another profiler replaced the observer."""
        self._lost_ns = 0
        self._with_shapes = False
        self._notes: list[str] = []

    def start(self, *, with_shapes: bool) -> None:
        """Enable the observer; if that fails, a note says why."""
        self._end_on_this_thread()
        self._notes, self._lost_ns, self._interrupted = [], 0, None
        self._with_shapes = False
        if self._owner is not None:
            self._notes.append(
                "Operators of torch are not recorded: a recording on another thread has not ended."
            )
            return
        problem = self._enable()
        if problem:
            self._notes.append(f"Operators of torch are not recorded: {problem}")
            return
        self._is_wanted = True
        if with_shapes:
            self.add_shapes()
        for module, enable, disable in _PROFILERS:
            owner = sys.modules.get(module)
            if owner is not None:
                self._patches.replace(owner, enable, self._recorded_enable)
                self._patches.replace(owner, disable, self._recorded_disable)

    def add_shapes(self) -> None:
        """Also record the shapes from now on; if that is impossible, a note says why."""
        import torch

        if not self._is_wanted or self._with_shapes:
            return
        # The observer then follows tensors in a table that autograd's threads share without a
        # lock. Each device has one.
        if torch.cuda.device_count() > 1:
            self._notes.append(
                "Operators have no shapes, because torch sees several devices. Set "
                "CUDA_VISIBLE_DEVICES to one device to record them."
            )
        elif self._owner not in (None, threading.get_ident()):
            self._notes.append(
                "Operators have no shapes, because their recording began on another thread."
            )
        else:
            self._with_shapes = True
            if self._owner is not None:
                self._disable_observer()
                self._enable_observer()

    def stop(self) -> None:
        """Stop recording. The observer can only be disabled by its thread.

        If another thread stops the recording, the observer stays enabled without effect until the
        next recording, or until its thread starts a profiler.
        """
        if self._owner is None and not self._is_wanted:
            return
        self._is_wanted = False
        _native.operators_record(False)  # noqa: FBT003 - positional only
        self._end_on_this_thread()

    def notes(self) -> list[str]:
        """Return notes on operators that were not recorded."""
        lost = self._lost_ns
        if self._interrupted is not None:
            lost += _native.now_ns() - self._interrupted[1]
        if not lost:
            return self._notes
        note = (
            f"Operators of torch were not recorded for {duration(lost)}, while another PyTorch "
            "profiler ran."
        )
        return [*self._notes, note]

    def _enable(self) -> str | None:
        """Enable the observer on this thread; return a problem that prevents it."""
        import torch

        if torch.autograd._profiler_enabled():  # noqa: SLF001 - there is no public name
            return "another PyTorch profiler is running on this thread. Stop it first."
        if not torch.backends.cuda.is_built():
            problem = _observe_without_cuda()
            if problem:
                return problem
        self._enable_observer()
        if not _observes():
            self._disable_observer()
            return (
                "torch has called NVTX before epprof_nb was imported, or another tool receives its "
                "ranges. Import epprof_nb first, and run without the other tool."
            )
        return None

    def _enable_observer(self) -> None:
        from torch._C import _profiler as parts
        from torch.autograd import _enable_profiler

        config = parts.ProfilerConfig(
            parts.ProfilerState.NVTX,
            self._with_shapes,
            *[False] * 4,  # memory, stacks, FLOPs and modules
            parts._ExperimentalConfig(),  # noqa: SLF001 - there is no public name
        )
        scopes = {parts.RecordScope.FUNCTION, parts.RecordScope.BACKWARD_FUNCTION}
        _native.operators_record(True)  # noqa: FBT003 - positional only
        _native.torch_enable(True)  # noqa: FBT003 - the same
        try:
            # Without the synchronizations of `torch.autograd.profiler.emit_nvtx`.
            _enable_profiler(config, set(), scopes)
        except BaseException:
            _native.operators_record(False)  # noqa: FBT003 - the same
            raise
        finally:
            _native.torch_enable(False)  # noqa: FBT003 - the same
        self._owner = threading.get_ident()

    def _disable_observer(self) -> None:
        from torch.autograd import _disable_profiler

        self._owner = None
        _native.operators_record(False)  # noqa: FBT003 - positional only
        _disable_profiler()

    def _end_on_this_thread(self) -> None:
        """Disable an observer that is no longer needed, if this is its thread."""
        if self._owner in (None, threading.get_ident()):
            self._patches.restore()
            if self._owner is not None:
                self._disable_observer()

    def _recorded_enable(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a function that starts a profiler, which fails while the observer is enabled."""

        def enable(*args: Any, **kwargs: Any) -> object:
            if self._owner == threading.get_ident():
                self._disable_observer()
                self._interrupted = threading.get_ident(), _native.now_ns()
            try:
                return original(*args, **kwargs)
            except BaseException:
                self._resume()
                raise

        return enable

    def _recorded_disable(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a function that stops a profiler."""

        def disable(*args: Any, **kwargs: Any) -> object:
            try:
                return original(*args, **kwargs)
            finally:
                self._resume()

        return disable

    def _resume(self) -> None:
        if self._interrupted is None or self._interrupted[0] != threading.get_ident():
            return
        self._lost_ns += _native.now_ns() - self._interrupted[1]
        self._interrupted = None
        if self._is_wanted:
            self._enable_observer()


def _observe_without_cuda() -> str | None:
    """Let the native core receive the observer's messages; return a problem that prevents it."""
    import torch

    found = re.match(r"(\d+)\.(\d+)", torch.__version__)
    version = (int(found[1]), int(found[2])) if found else (0, 0)
    first, last = _CPU_VERSIONS
    library = Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"
    if first <= version <= last and _native.torch_observe(str(library)):
        return None
    names = " to ".join(".".join(map(str, release)) for release in _CPU_VERSIONS)
    return f"builds without CUDA are supported from {names}, and this is {torch.__version__}."


def _observes() -> bool:
    """Whether the observer's messages reach the native core."""
    from torch._C._profiler import _RecordFunctionFast

    before = _native.operators_seen()
    _native.operators_pause(True)  # noqa: FBT003 - positional only
    with _RecordFunctionFast("epprof_nb"):
        pass
    _native.operators_pause(False)  # noqa: FBT003 - the same
    return _native.operators_seen() > before
