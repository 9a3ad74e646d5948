"""The notebook's side: the workers of a cluster record while a block of code runs.

The plugin lets workers begin, including those that join later, and its removal ends them. In
between, each worker gets its own messages, so that a silent one hardly delays the others.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import socket
import sys
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from epprof_nb import _native
from epprof_nb.core.errors import CaptureError
from epprof_nb.core.version import package_version
from epprof_nb.data.profiles_without_gpu import OF_JOB
from epprof_nb.jobs.dask import limits, worker
from epprof_nb.jobs.dask.clock_echo import Echo, of_times
from epprof_nb.jobs.dask.code_by_value import name_code
from epprof_nb.jobs.dask.messages import Messages, check_client
from epprof_nb.jobs.dask.parts_of_workers import KnownWorker, Parts
from epprof_nb.jobs.dask.plugin import make_plugin, make_question
from epprof_nb.jobs.dask.plugin_presence import make_check, make_removal
from epprof_nb.jobs.loading import load_job
from epprof_nb.jobs.process_part import ProcessPart, own_clock, unrecorded
from epprof_nb.recording.children.order_to_children import Order
from epprof_nb.recording.dask.submitting_lines import annotating
from epprof_nb.recording.frameworks.patches import Patches
from epprof_nb.util.format import format_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from concurrent.futures import Future

    from epprof_nb.core.options import Options
    from epprof_nb.data.profile_data import ProfileData
    from epprof_nb.jobs.job import Job

_MESSAGES = 5
"""Messages that compare a clock, where datagrams do not arrive."""


class ClusterRecording:
    """The recording of the workers of a Dask cluster for one block of code.

    Parameters
    ----------
    client
        The client, ``distributed.Client``.
    options
        What to record.
    folder
        Folder of the job; a temporary one if None, which lives as long as the job.

    Raises
    ------
    TypeError
        If `client` is not a synchronous client.
    """

    def __init__(
        self,
        client: Any,  # noqa: ANN401
        options: Options,
        folder: str | os.PathLike[str] | None = None,
    ) -> None:
        check_client(client)
        self._client, self._messages = client, Messages(client)
        self._options = options
        self._given = None if folder is None else Path(folder)
        self._order: Order | None = None
        self._workers: dict[str, KnownWorker] = {}
        self._ending: Future[None] | None = None
        self._beginning: Future[None] | None = None
        self._echo: Echo | None = None
        self._patches = Patches()
        self._removing: asyncio.Future[Any] | None = None
        self.notes: list[str] = []

    def begin(self) -> None:
        """Let the workers record; returns when they do, or when their time is over.

        Raises
        ------
        CaptureError
            If the client is closed.
        OSError
            If the folder cannot be made.
        """
        if not self._messages.are_possible:
            raise CaptureError(
                f"The client of the cluster is {self._client.status}: connect a new one, as in "
                "client = Client(address)."
            )
        folder = _make_folder(self._given)
        self._order = order = Order(
            job_id=secrets.token_hex(8), folder=os.fspath(folder), options=self._options,
            token=secrets.token_hex(16),
        )  # fmt: skip
        order.write(order.path)
        worker.keep_out(order.job_id)
        clock = own_clock()
        self._echo = Echo(order.token)
        echo = {
            "hosts": self._own_addresses(), "port": self._echo.port, "every_s": limits.COMPARE_S,
            "clock": {key: clock[key] for key in ("boot_id", "time_namespace")},
        }  # fmt: skip
        message = {
            "job_id": order.job_id, "plugin": self._plugin, "version": package_version(),
            "order": order.to_json(), "client": self._client.id, "echo": echo,
            "check_s": limits.CHECK_S, "gone_s": limits.GONE_S,
        }  # fmt: skip
        self._patches.replace(self._client, "_graph_to_futures", annotating)
        self._beginning = self._messages.start(
            self._client._register_worker_plugin(make_plugin(message), self._plugin, False)  # noqa: SLF001, FBT003
        )
        self._messages.call(self._await_begin(), limits.ANSWER_S + limits.PREPARE_S + 5)

    @property
    def _plugin(self) -> str:
        return f"epprof-{self._order.job_id if self._order else ''}"

    async def _await_begin(self) -> None:
        """Wait until each worker records, or has said why it does not."""
        addresses = await self._messages.addresses()
        ask = make_question(self._plugin)
        await self._ask(addresses, ask, limits.ANSWER_S, 0.0)
        there = [a for a in addresses if self._workers[a].who]
        await self._ask(there, ask, limits.PREPARE_S + limits.ANSWER_S, limits.PREPARE_S)
        await self._compare_clocks()
        await self._begin_code()

    async def _begin_code(self) -> None:
        """Let the profiles begin now: the first worker has waited for the last one."""
        order = self._order
        if order is None:
            return
        args = order.job_id, order.token

        async def one(address: str) -> None:
            with suppress(Exception):  # its profile begins earlier
                await self._messages.run(address, worker.begin_code, limits.ANSWER_S, *args)

        recording = [w.address for w in self._workers.values() if w.who.get("state") == "recording"]
        await asyncio.gather(*map(one, recording))

    async def _compare_clocks(self) -> None:
        """Compare the clocks that the echo could not, by messages of Dask."""
        lacking = [w.address for w in self._workers.values() if w.who.get("lacks_clock")]
        await asyncio.gather(*map(self._compare_clock, lacking))

    async def _compare_clock(self, address: str) -> None:
        order, samples = self._order, []
        if order is None:
            return
        args = order.job_id, order.token
        with suppress(Exception):  # its clock is not compared then
            for _ in range(_MESSAGES):
                sent_ns = _native.now_ns()
                there_ns = await self._messages.run(address, _native.now_ns, limits.ANSWER_S)
                _, offset_ns, error_ns = of_times(sent_ns, there_ns, there_ns, _native.now_ns())
                samples.append((there_ns, -offset_ns, error_ns))
            await self._messages.run(address, worker.add_samples, limits.ANSWER_S, *args, samples)

    def _own_addresses(self) -> list[str]:
        """Return addresses of this host that workers may reach, the likeliest first."""
        found = []
        with suppress(Exception):  # the scheduler is in this process
            local = self._client.scheduler_comm.comm.local_address
            found.append(urlsplit(local).hostname or "")
        with suppress(OSError):
            found.append(socket.gethostbyname(socket.gethostname()))
        return [host for host in dict.fromkeys(found) if host]

    async def _ask(
        self, addresses: Iterable[str], ask: Callable[..., Any], limit_s: float, wait_s: float
    ) -> None:
        async def one(address: str) -> None:
            known = self._workers.setdefault(address, KnownWorker(address))
            try:
                known.who = await self._messages.run(address, ask, limit_s, wait_s)
                known.reason = known.who["reason"]
                if wait_s and known.who["state"] == "starting":
                    known.reason = f"it did not begin within {wait_s:g} s"
            except TimeoutError:
                known.reason = (
                    f"it did not answer within {limit_s:g} s: it is stopped, or runs code that "
                    "keeps the GIL"
                )
            except Exception as error:  # noqa: BLE001 - listed
                known.reason = f"it did not answer ({format_error(error)})"

        await asyncio.gather(*map(one, addresses))

    def _is_settled(self, address: str) -> bool:
        """Whether a worker has said that it records, or why it does not."""
        known = self._workers.get(address)
        return known is not None and known.who.get("state") in ("recording", "failed")

    def send_end(self, ended_ns: int) -> None:
        """Tell the workers that the block has ended, without waiting for them.

        `ended_ns` is when it ended, CLOCK_MONOTONIC nanoseconds.
        """
        self._patches.restore()
        if self._order is not None and self._ending is None and self._messages.are_possible:
            self._ending = self._messages.start(self._end(ended_ns))

    async def _end(self, ended_ns: int) -> None:
        with suppress(Exception):  # they are asked again for their part
            open_ones = [a for a in await self._messages.addresses() if not self._is_settled(a)]
            await self._ask(open_ones, make_question(self._plugin), limits.ANSWER_S, 0.0)
        await self._compare_clocks()
        # The answer comes when all workers have answered, also one that is stopped. Those that do
        # are asked for their part next, which ends their recording, too.
        self._removing = asyncio.ensure_future(self._remove(self._plugin, ended_ns))
        self._removing.add_done_callback(lambda task: task.cancelled() or task.exception())

    async def _remove(self, plugin: str, ended_ns: int | None = None) -> None:
        """Remove the plugin, which ends the recording of the workers."""
        forget = make_check(self._client.id, plugin)
        await self._client._run_on_scheduler(forget, forget=True)  # noqa: SLF001
        await self._client._run(make_removal(plugin, ended_ns), on_error="ignore")  # noqa: SLF001

    def finish(self, data: ProfileData, begin_ns: int, end_ns: int) -> Job:
        """Wait for the parts of the workers, and return the job of all processes.

        Parameters
        ----------
        data
            The profile of this process.
        begin_ns, end_ns
            Its begin and end, CLOCK_MONOTONIC nanoseconds.

        Raises
        ------
        CaptureError
            If it was not begun.
        OSError
            If the folder cannot be read. If the part of this process cannot be written, the job
            lists it with the reason.
        """
        order = self._order
        if order is None:
            raise CaptureError("The cluster is not recorded. Call begin().")
        self.send_end(end_ns)
        parts = Parts(self._messages, order, self._plugin, self._workers, end_ns)
        if self._ending is None:
            self.notes.append(
                "The client was closed before the end, so the workers could not be asked for "
                f"their parts. Each ends its recording within {limits.GONE_S + limits.CHECK_S:g} s."
            )
        else:
            try:
                self._messages.wait(self._ending, limits.END_S + 5)
                self._messages.call(self._collect(parts), limits.END_S + limits.SEND_S)
            except Exception as error:  # noqa: BLE001 - the parts that are there count
                self.notes.append(
                    f"The workers could not be asked for their parts ({format_error(error)}); "
                    "those that wrote theirs are in the job."
                )
        data.info[OF_JOB] = True
        _write_own(order, parts, data, begin_ns, end_ns)
        parts.list_unrecorded()
        with suppress(OSError):
            order.path.unlink(missing_ok=True)
        cell = data.info.get("cell")
        name_code(Path(order.folder), {cell: data.sources[cell]} if cell in data.sources else {})
        job = load_job(Path(order.folder), unwritten=parts.unwritten)
        job.notes[:0] = [*self.notes, *parts.notes]
        if self._given is None:
            weakref.finalize(job.profiles, shutil.rmtree, order.folder, ignore_errors=True)
        worker.let_in(order.job_id)
        self._stop_echo()
        self._order = None
        return job

    def _stop_echo(self) -> None:
        echo, self._echo = self._echo, None
        if echo is not None:
            echo.close()

    async def _collect(self, parts: Parts) -> None:
        await parts.collect()
        if self._removing is not None:
            await asyncio.wait([self._removing], timeout=limits.REMOVE_S)

    def close(self) -> None:
        """Give up: what the workers record is discarded. Does nothing after `finish`."""
        order, self._order = self._order, None
        self._patches.restore()
        if order is None:
            return
        worker.let_in(order.job_id)
        self._stop_echo()

        async def end() -> None:
            with suppress(Exception):
                await self._remove(f"epprof-{order.job_id}")
            for address in self._workers:
                with suppress(Exception):
                    await self._messages.run(
                        address, worker.forget, limits.ANSWER_S, order.job_id, order.token
                    )

        if self._messages.are_possible:
            with suppress(Exception):
                self._messages.call(end(), limits.END_S)
        if self._given is None:
            shutil.rmtree(order.folder, ignore_errors=True)
        else:
            order.path.unlink(missing_ok=True)


def _write_own(order: Order, parts: Parts, data: ProfileData, begin_ns: int, end_ns: int) -> None:
    """Write the part of this process; list it with the reason if that fails."""
    part = None
    try:
        part = ProcessPart(order, "cell")
        part.write(data, begin_ns=begin_ns, end_ns=end_ns)
    except OSError as error:
        if part is not None:
            shutil.rmtree(part.folder, ignore_errors=True)
        parts.add_unrecorded(
            unrecorded(
                order, pid=os.getpid(), parent_pid=os.getppid(), command=sys.orig_argv,
                followed="cell", reason=f"its part could not be written ({format_error(error)})",
            )
        )  # fmt: skip


def _make_folder(given: Path | None) -> Path:
    if given is None:
        return Path(tempfile.mkdtemp(prefix="epprof-cluster-"))
    given.mkdir(parents=True, exist_ok=True)
    if any(entry.name.startswith("rank-") for entry in os.scandir(given)):
        raise FileExistsError(f"{given} has parts of a job already; name a new folder")
    return given.resolve()
