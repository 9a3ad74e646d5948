"""On a worker: tasks that ran already when the recording began, which therefore have no op."""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import suppress
from typing import Any

from epprof_nb.util.format import plural

RunningTask = tuple[str, int, Any]
"""Address of the worker, thread and key."""


def running_tasks() -> set[RunningTask]:
    """Return the tasks that run on threads of the workers of this process."""
    found: set[RunningTask] = set()
    worker_class: Any = getattr(sys.modules.get("distributed.worker"), "Worker", None)
    with suppress(Exception):  # another version of Dask
        for worker in [*worker_class._instances]:  # noqa: SLF001
            with worker.active_threads_lock:
                threads = dict(worker.active_threads)
            found |= {(worker.address, thread, key) for thread, key in threads.items()}
    return found


def note_on(tasks: set[RunningTask]) -> str:
    """Return the sentences on tasks without an op; empty without any."""
    counts = Counter(address for address, _, _ in tasks)
    return " ".join(
        f"{plural(count, 'task')} of worker {address} ran already when the recording began: "
        f"{'it has' if count == 1 else 'they have'} no op, and "
        f"{'its' if count == 1 else 'their'} kernels no task."
        for address, count in sorted(counts.items())
    )
