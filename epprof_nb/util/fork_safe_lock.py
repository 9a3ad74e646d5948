"""Locks that a forked child never finds locked."""

from __future__ import annotations

import os
import threading


def fork_safe_lock() -> threading.Lock:
    """Return a lock that the forking thread holds during each fork.

    A child has only the thread that forked, so a lock held by any other one would stay locked
    there for good. What the lock guards is consistent in the child, too.

    Use it for locks that live as long as the process, and take no other lock while holding one.
    """
    lock = threading.Lock()
    os.register_at_fork(
        before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release
    )
    return lock
