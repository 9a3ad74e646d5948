"""Calls with which the program records PyTorch's history of memory.

A snapshot symbolizes every stack in the history and of the blocks in use, which can take minutes.
PyTorch does not say whether there are any, so its function is replaced by one that remembers the
arguments. Earlier calls, and calls of C++ code, stay unknown.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from epprof_nb.util.after_import import after_import, cancel

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_PARAMETERS = ("enabled", "context", "stacks", "max_entries", "clear_history", "", "", "skips")
_OLD_PARAMETERS = ("enabled", "state", "max_entries", "context", "cpp", "clear_history", "", "")
_NONE, _PYTHON, _COMPILED, _UNKNOWN = range(4)
_SLOW = "and reading them can take minutes"
_AGAIN = "Restart the Jupyter kernel, and"
_REASONS = (
    "",
    f"PyTorch's history holds stacks, {_SLOW}. Record it with context=None, or end it",
    f"blocks hold C++ stacks of PyTorch's history, {_SLOW}. {_AGAIN} record it with context=None",
    f"PyTorch's history began unseen and may hold stacks, {_SLOW}. {_AGAIN} load epprof_nb first",
)


class HistoryCalls:
    """The calls of this process, since `follow`.

    Attributes
    ----------
    number
        How many there were.
    max_entries
        Events that the history keeps.
    skips
        Actions that it leaves out.
    """

    def __init__(self) -> None:
        self._core: Any = None
        self._reset()

    def _reset(self) -> None:
        self.number, self.max_entries = 0, 1
        self.skips: Sequence[str] = ()
        self._stacks, self._is_on = _NONE, False

    def follow(self) -> None:
        """Remember calls from now on, or from the import of torch on."""
        self.leave()
        after_import("torch", self._replace)

    def leave(self) -> None:
        """Wait for the import of torch no longer."""
        cancel("torch", self._replace)

    def reason(self) -> str:
        """Return why a snapshot can take minutes, as the end of a sentence; "" if it does not."""
        if is_recorded() and not self._is_on:
            self._stacks = _UNKNOWN
        return _REASONS[self._stacks]

    def _replace(self) -> None:
        core = getattr(sys.modules["torch"], "_C", None)
        if core is not self._core:
            self._core = core
            self._reset()
            for name, parameters in (
                ("_cuda_record_memory_history", _PARAMETERS),
                ("_cuda_record_memory_history_legacy", _OLD_PARAMETERS),
            ):
                original = getattr(core, name, None)  # builds for the CPU have none
                if original is not None:
                    setattr(core, name, self._remembering(original, parameters))

    def _remembering(
        self, original: Callable[..., Any], parameters: tuple[str, ...]
    ) -> Callable[..., Any]:
        def record_memory_history(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            if not self._is_on and is_recorded():
                self._stacks = _UNKNOWN
            result = original(*args, **kwargs)
            self._remember(dict(zip(parameters, args, strict=False)) | kwargs)
            return result

        return record_memory_history

    def _remember(self, options: dict[str, Any]) -> None:
        self.number += 1
        self._is_on = bool(options.get("enabled", True))
        # An end clears the history, but not the stacks of blocks: a few Python stacks are quick.
        if self._stacks == _PYTHON and (not self._is_on or options.get("clear_history")):
            self._stacks = _NONE
        if self._is_on:
            keeps_all = options.get("enabled", "all") != "state"
            self.max_entries = options.get("max_entries", sys.maxsize) if keeps_all else 1
            self.skips = options.get("skips") or ()
            if options.get("context", "all") or options.get("state"):
                with_cpp = options.get("cpp", options.get("stacks", "all") == "all")
                self._stacks = max(self._stacks, _COMPILED if with_cpp else _PYTHON)


HISTORY_CALLS = HistoryCalls()
"""The calls of this process."""


def is_recorded() -> bool:
    """Return whether PyTorch records a history now."""
    torch = sys.modules["torch"]
    # Before PyTorch has started CUDA, which a call that records does as well, this crashes.
    if not (HISTORY_CALLS.number or torch.cuda.is_initialized()):
        return False
    is_on = getattr(torch._C, "_cuda_isHistoryEnabled", None)  # noqa: SLF001
    return is_on is not None and bool(is_on())
