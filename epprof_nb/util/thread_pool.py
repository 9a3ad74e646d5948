"""A thread pool that also works at the end of the interpreter, where no thread can start."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


class ThreadPool(ThreadPoolExecutor):
    """A `ThreadPoolExecutor` that makes calls at once where the interpreter refuses threads.

    It refuses them once it waits for the threads that are left, before ``atexit`` callbacks.
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
