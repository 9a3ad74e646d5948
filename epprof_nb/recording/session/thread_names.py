"""Names of the threads of a recording, from Python or else from the system."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb import _native
from epprof_nb.recording.native_columns import name_of
from epprof_nb.recording.session import created_threads

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_PROCESS = Path("/proc/self")
_MAX_LENGTH = 200
# Python does not name threads that it did not start.
_FOREIGN: tuple[type, ...] = tuple(filter(None, [getattr(threading, "_DummyThread", None)]))


class ThreadNames:
    """Names of threads by operating-system thread id, read while the threads run.

    The system may give the id of an ended thread to a new one; the first name is kept.

    Parameters
    ----------
    names
        Names that are known.
    """

    def __init__(self, names: Mapping[int, str] | None = None) -> None:
        self._names = dict(names or {})
        self._seen: set[int] = set()

    def update(self, thread_ids: Iterable[int] = ()) -> None:
        """Read the names of Python's threads, and of threads not seen before.

        Parameters
        ----------
        thread_ids
            Threads that have recorded something.
        """
        for thread in _python_threads():
            if thread.native_id is not None and not isinstance(thread, _FOREIGN):
                self._names.setdefault(thread.native_id, thread.name[:_MAX_LENGTH])
        names = _names_of_ended()
        new = (names.keys() | set(thread_ids)) - self._seen
        if not new:
            return
        # Native libraries name their threads; other threads have the name of the process.
        unnamed = {_comm("comm"), ""}
        for thread_id in new:
            name = names.get(thread_id) or _comm(f"task/{thread_id}/comm")
            if not name:  # it has ended since
                name = _names_of_ended().get(thread_id, "")
            if name not in unnamed:
                self._names.setdefault(thread_id, name)
        self._seen |= new

    @property
    def known(self) -> dict[int, str]:
        """Each thread that has a name, with its name."""
        return dict(self._names)

    def of(self, thread_ids: Iterable[int]) -> list[dict[str, Any]]:
        """Return the threads that have a name as ``{"thread_id", "name"}``, by id."""
        return [
            {"thread_id": thread_id, "name": self._names[thread_id]}
            for thread_id in sorted(set(thread_ids))
            if thread_id in self._names
        ]


def _python_threads() -> Iterator[threading.Thread]:
    """Yield running threads, then threads created during the recording, which may have ended."""
    yield from threading.enumerate()
    yield from created_threads.take()
    yield from list(getattr(threading, "_dangling", ()))


def _names_of_ended() -> dict[int, str]:
    """Return the system's names of recorded threads that have ended, by thread id."""
    ended = _native.ended_threads()
    thread_ids = np.frombuffer(ended["thread_id"], np.uint64).tolist()
    names = np.frombuffer(ended["name_id"], np.uint32).tolist()
    return {i: name_of(name) for i, name in zip(thread_ids, names, strict=True)}


def _comm(path: str) -> str:
    try:
        return (_PROCESS / path).read_text("utf-8", errors="replace").strip()
    except OSError:
        return ""  # the thread has ended
