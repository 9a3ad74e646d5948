"""Function for the scheduler that tells a worker whether the job goes on; it travels by value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def make_check(client: str, plugin: str) -> Callable[..., list[bool]]:
    """Return a function for the scheduler: whether it has the client, and the plugin."""

    def check(dask_scheduler: Any = None) -> list[bool]:  # noqa: ANN401
        return [client in dask_scheduler.clients, plugin in dask_scheduler.worker_plugins]

    return check
