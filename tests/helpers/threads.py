"""Threads that run at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterable


def run_all(threads: Iterable[threading.Thread]) -> None:
    """Start all threads, and wait for their ends."""
    started = list(threads)
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
