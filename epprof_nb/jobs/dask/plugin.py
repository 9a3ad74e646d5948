"""Plugin and functions that travel *by value*: workers without the package must load them.

A worker that cannot load a plugin when it starts ends. Nothing here may therefore refer to a module
other than `distributed`: functions and classes are local ones, which are pickled with their code,
and they import what they need where they run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping


def make_plugin(message: Mapping[str, Any]) -> Any:  # noqa: ANN401 - its base may be absent
    """Return a plugin that records a worker from its registration, or start, to its removal.

    Parameters
    ----------
    message
        What `epprof_nb.jobs.dask.worker.join` needs: plain values only.
    """
    from distributed import WorkerPlugin

    class ProfilePlugin(WorkerPlugin):
        """Recording of a worker. Nothing is raised: the worker runs in any case."""

        name = message["plugin"]

        def __init__(self) -> None:
            self.state, self.reason, self.lacks_clock = "starting", "", False
            self.ended_ns = None  # the removal sets it

        async def setup(self, worker: Any) -> None:  # noqa: ANN401
            try:
                import asyncio
                from concurrent.futures import ThreadPoolExecutor
                from importlib import import_module

                from epprof_nb.core.version import package_version

                if package_version() == message["version"]:
                    loop = asyncio.get_running_loop()
                    with ThreadPoolExecutor(1) as thread:  # the imports take longer
                        recording = await loop.run_in_executor(
                            thread, import_module, "epprof_nb.jobs.dask.worker"
                        )
                    self.reason = await recording.join(worker, message)
                    self.lacks_clock = recording.lacks_clock(message["job_id"])
                else:
                    self.reason = (
                        f"it has epprof_nb {package_version()}, and the notebook "
                        f"{message['version']}. Install the same version on both."
                    )
            except ImportError as error:
                self.reason = (
                    f"epprof_nb cannot be imported there ({error}). Install it where the workers "
                    "run."
                )
            except Exception as error:  # noqa: BLE001
                self.reason = f"it could not begin ({type(error).__name__}: {error})"
            self.state = "failed" if self.reason else "recording"

        async def teardown(self, worker: Any) -> None:  # noqa: ANN401
            if self.state == "failed":
                return
            try:
                from epprof_nb.jobs.dask import worker as recording

                await recording.leave(worker, message["job_id"], self.ended_ns)
            except Exception as error:  # noqa: BLE001
                self.reason = f"it could not end ({type(error).__name__}: {error})"

    return ProfilePlugin()


def make_question(plugin: str) -> Callable[..., Awaitable[dict[str, Any]]]:
    """Return a coroutine function: a worker describes itself, and says whether it records.

    It waits for at most `wait_s` until the plugin of that name has begun.
    """

    async def answer(wait_s: float, dask_worker: Any = None) -> dict[str, Any]:  # noqa: ANN401
        import asyncio
        import os
        import socket
        import sys

        waited = 0.0
        found = dask_worker.plugins.get(plugin)
        while waited < wait_s and (found is None or found.state == "starting"):
            await asyncio.sleep(0.01)
            waited += 0.01
            found = dask_worker.plugins.get(plugin)
        return {
            "pid": os.getpid(),
            "parent_pid": os.getppid(),
            "hostname": socket.gethostname(),
            "command": list(sys.orig_argv),
            "state": "starting" if found is None else found.state,
            "reason": "" if found is None else found.reason,
            "lacks_clock": found is not None and found.lacks_clock,
        }

    return answer
