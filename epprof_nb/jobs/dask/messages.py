"""Messages of the notebook to the workers of a cluster, each with a limit of time."""

from __future__ import annotations

import asyncio
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import TYPE_CHECKING, Any

from epprof_nb.jobs.dask import limits

if TYPE_CHECKING:
    from collections.abc import Awaitable, Coroutine
    from concurrent.futures import Future


class Messages:
    """Messages to workers by a client, on the client's event loop, which runs on a separate thread.

    Parameters
    ----------
    client
        The client, ``distributed.Client``.
    """

    def __init__(self, client: Any) -> None:  # noqa: ANN401
        self._client = client

    @property
    def are_possible(self) -> bool:
        """Whether the client is open."""
        return bool(self._client.status == "running")

    async def addresses(self) -> list[str]:
        """Return the addresses of the workers that the scheduler knows."""
        found = await asyncio.wait_for(
            self._client.scheduler.identity(n_workers=-1), limits.ANSWER_S
        )
        return list(found["workers"])

    async def run(self, address: str, function: Any, limit_s: float, *args: Any) -> Any:  # noqa: ANN401
        """Run a function on a worker, by way of the scheduler, which reaches all of them."""
        results = await asyncio.wait_for(
            self._client._run(function, *args, workers=[address], on_error="return"),  # noqa: SLF001
            limit_s,
        )
        result = results[address]
        if isinstance(result, Exception):
            raise result
        return result

    async def run_directly(self, address: str, function: Any, limit_s: float, *args: Any) -> Any:  # noqa: ANN401
        """Run a function on a worker without the scheduler."""
        from distributed.protocol.pickle import dumps

        called = self._client.rpc(address).run(
            function=dumps(function), args=dumps(args), kwargs=dumps({}), wait=True
        )
        answer = await asyncio.wait_for(called, limit_s)
        if answer["status"] != "OK":
            raise OSError(f"{address} could not run {function.__name__}")
        return answer["result"]

    def start(self, coroutine: Coroutine[Any, Any, Any] | Awaitable[Any]) -> Future[Any]:
        """Run a coroutine on the event loop."""

        async def run() -> Any:  # noqa: ANN401
            return await coroutine

        return asyncio.run_coroutine_threadsafe(run(), self._client.loop.asyncio_loop)

    def call(self, coroutine: Coroutine[Any, Any, Any], limit_s: float) -> Any:  # noqa: ANN401
        """Run a coroutine, and return its result; TimeoutError after `limit_s`."""
        return self.wait(self.start(coroutine), limit_s)

    def wait(self, future: Future[Any], limit_s: float) -> Any:  # noqa: ANN401
        """Return the result of `start`; TimeoutError after `limit_s`."""
        try:
            return future.result(limit_s)
        except FutureTimeoutError:
            future.cancel()
            raise


def check_client(client: Any) -> None:  # noqa: ANN401
    """Raise TypeError, with what to pass, unless an object is a synchronous client of Dask."""
    missing = [
        name
        for name in ("_run", "_run_on_scheduler", "_register_worker_plugin", "scheduler")
        if not hasattr(client, name)
    ]
    if missing:
        raise TypeError(
            f"a client of Dask is needed, not {type(client).__name__}: pass what "
            "distributed.Client(...) returned"
        )
    if client.asynchronous:
        raise TypeError(
            "the client is asynchronous, and profile() waits for the cluster: make another one "
            "without asynchronous=True, as in distributed.Client(client.scheduler.address)"
        )
