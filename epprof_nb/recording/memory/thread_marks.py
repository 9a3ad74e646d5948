"""Marks of threads in PyTorch's history of memory.

The history has no threads. Newer releases keep a text for each thread, which all events on it get.
"""

from __future__ import annotations

import sys
import threading
from typing import Any

from epprof_nb.recording.ops_by_time import UNKNOWN_THREAD, UNMARKED

_PREFIX = "epprof:"


class ThreadMark:
    """The mark of the thread that began the history, if the release has marks."""

    def __init__(self) -> None:
        self._thread: int | None = None

    def set(self) -> None:
        """Mark the events of this thread from now on, unless the program has set a text."""
        memory = sys.modules["torch"].cuda.memory
        get = getattr(memory, "_get_memory_metadata", None)
        if get is not None and thread_of(get()) != UNKNOWN_THREAD:
            self._thread = threading.get_native_id()
            memory._set_memory_metadata(f"{_PREFIX}{self._thread}")  # noqa: SLF001

    def thread(self) -> int | None:
        """Return the marked thread; None without one, or if the program has replaced the mark."""
        if self._thread != threading.get_native_id():
            return self._thread  # only the thread itself can read its text
        text = sys.modules["torch"].cuda.memory._get_memory_metadata()  # noqa: SLF001
        return self._thread if thread_of(text) == self._thread else None

    def remove(self) -> None:
        """Remove the mark. Another thread cannot do that, and leaves it."""
        if self._thread == threading.get_native_id() == self.thread():
            sys.modules["torch"].cuda.memory._set_memory_metadata("")  # noqa: SLF001
        self._thread = None


def thread_of(text: str) -> int:
    """Return the thread that an event's text names, `UNMARKED` or `UNKNOWN_THREAD`."""
    number = text.removeprefix(_PREFIX)
    if number != text and number.isdecimal():
        return int(number)
    return UNKNOWN_THREAD if text else UNMARKED


class ThreadsByText(dict[str, int]):
    """Threads of texts, each parsed once."""

    def __missing__(self, text: Any) -> int:  # noqa: ANN401 - from a file
        found = self[text] = thread_of(str(text))
        return found
