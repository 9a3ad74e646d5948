"""Locks that a forked child never finds locked."""

from __future__ import annotations

import os
import threading


def fork_safe_lock() -> threading.Lock:
    """Return a lock that the forking thread holds during each fork.

    A child has only the thread that forked. A lock held by another thread would stay locked there
    forever. The data that the lock guards is also consistent in the child.

    Use it for locks that live as long as the process. Do not take another lock while holding one.
    """
    lock = threading.Lock()
    os.register_at_fork(
        before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release
    )
    return lock
