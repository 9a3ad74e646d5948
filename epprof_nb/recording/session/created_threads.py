"""Python threads created during a recording.

Python forgets a thread, and its name, once the thread has ended and nothing refers to it.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from epprof_nb.core.options import Options

_MAX_THREADS = 10_000

_collecting = False
_threads: deque[threading.Thread] = deque(maxlen=_MAX_THREADS)


def start(options: Options) -> None:  # noqa: ARG001
    """Keep the threads created from now on, the last 10,000 of them."""
    global _collecting  # noqa: PLW0603
    # Every new thread is added to this private set of CPython. Without it, names of threads that
    # have ended stay unknown.
    created = getattr(threading, "_dangling", None)
    if isinstance(created, weakref.WeakSet) and "add" not in vars(created):
        add = created.add

        def add_and_keep(thread: threading.Thread) -> None:
            add(thread)
            if _collecting:
                _threads.append(thread)

        created.add = add_and_keep  # type: ignore[assignment]
    _collecting = True


def stop() -> None:
    """Stop keeping threads."""
    global _collecting  # noqa: PLW0603
    _collecting = False
    _threads.clear()


def take() -> list[threading.Thread]:
    """Return the threads kept so far, and keep only threads that have not started."""
    threads = [_threads.popleft() for _ in range(len(_threads))]
    _threads.extend(thread for thread in threads if thread.native_id is None)
    return threads
