"""A thread pool that also works at interpreter exit, when no thread can start."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


class ThreadPool(ThreadPoolExecutor):
    """A `ThreadPoolExecutor` that runs calls directly if the interpreter refuses to start threads.

    At exit, it refuses them as soon as it waits for the remaining threads, before ``atexit``
    callbacks.
    """

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Return the future of a call."""
        try:
            return super().submit(function, *args, **kwargs)
        except RuntimeError:
            future: Future[Any] = Future()
            try:
                future.set_result(function(*args, **kwargs))
            except BaseException as error:  # noqa: BLE001 - raised by the future
                future.set_exception(error)
            return future
