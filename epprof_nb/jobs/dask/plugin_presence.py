"""Functions that ask whether a job still runs, sent by value to the scheduler and to workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


def make_check(client: str, plugin: str) -> Callable[..., list[bool]]:
    """Return a function for the scheduler: whether it has the client, and the plugin.

    With `forget`, workers that join from now on do not get the plugin.
    """

    def check(*, forget: bool = False, dask_scheduler: Any = None) -> list[bool]:  # noqa: ANN401
        if forget:
            dask_scheduler.worker_plugins.pop(plugin, None)
        return [client in dask_scheduler.clients, plugin in dask_scheduler.worker_plugins]

    return check


def make_removal(plugin: str, ended_ns: int | None) -> Callable[..., Awaitable[None]]:
    """Return a coroutine function that removes the plugin of a worker, if it has it.

    `ended_ns` is when the block of code ended, on the clock of the notebook; now if None.
    A worker of Dask logs an error if it is to remove a plugin that it lacks. It lacks it if it has
    just joined.
    """

    async def remove(dask_worker: Any = None) -> None:  # noqa: ANN401
        if plugin in dask_worker.plugins:
            dask_worker.plugins[plugin].ended_ns = ended_ns
            await dask_worker.plugin_remove(plugin)

    return remove
