"""Parts of the workers of a job, which the notebook collects when their recordings have ended."""

from __future__ import annotations

import asyncio
import os
import shutil
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epprof_nb import _native
from epprof_nb.files.dataset.manifest import FILES, MANIFEST
from epprof_nb.files.dataset.part_name import PART_NAME
from epprof_nb.jobs.dask import limits, worker
from epprof_nb.jobs.dask.plugin import make_question
from epprof_nb.jobs.process_part import (
    new_part_folder,
    part_folders,
    unrecorded,
    write_unrecorded,
)
from epprof_nb.recording.children.journal import BEGUN, JOURNAL
from epprof_nb.util.format import format_error

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from epprof_nb.files.dataset.manifest import Manifest
    from epprof_nb.jobs.dask.messages import Messages
    from epprof_nb.recording.children.order_to_children import Order

_MAX_FILE_BYTES = 2**40


@dataclass(slots=True)
class KnownWorker:
    """Worker as the notebook knows it."""

    address: str
    who: dict[str, Any] = field(default_factory=dict)
    reason: str = ""
    recorded: bool = False


class Parts:
    """The parts of a job's workers.

    Parameters
    ----------
    messages
        Messages to the workers.
    order
        The order of the job.
    plugin
        Name of the plugin that records it.
    workers
        The workers that were there before the end, by address. Others are added.
    ended_ns
        When the block of code ended, CLOCK_MONOTONIC nanoseconds.

    Attributes
    ----------
    notes
        Sentences on what the job lacks.
    unwritten
        Manifests of processes without a part that could not be written either.
    """

    def __init__(
        self,
        messages: Messages,
        order: Order,
        plugin: str,
        workers: dict[str, KnownWorker],
        ended_ns: int,
    ) -> None:
        self._messages, self._order, self._plugin = messages, order, plugin
        self._workers, self._ended_ns = workers, ended_ns
        self.notes: list[str] = []
        self.unwritten: list[Manifest] = []

    async def collect(self) -> None:
        """Read the parts of the workers that did not write them into the folder of the job."""
        there = {*await self._messages.addresses()}
        gone = self._workers.keys() - there
        await asyncio.gather(
            *map(self._collect_one, there),
            *(self._collect_gone(self._workers[address]) for address in gone),
        )

    async def _collect_one(self, address: str) -> None:
        known = self._workers.setdefault(address, KnownWorker(address))
        if known.reason:
            return
        try:
            if not known.who:  # it joined after the begin
                ask = make_question(self._plugin)
                known.who = await self._messages.run(address, ask, limits.ANSWER_S, 0.0)
            args = self._order.job_id, self._order.token
            answer = await self._messages.run(
                address, worker.outcome, limits.END_S, *args, self._ended_ns
            )
            known.reason = answer["reason"]
            self.notes += [answer["note"]] if answer["note"] else []
            for part, files in answer["to_send"].items():
                await asyncio.wait_for(self._receive(address, part, files), limits.SEND_S)
            known.recorded = answer["recorded"]
            await self._messages.run(address, worker.forget, limits.ANSWER_S, *args)
        except TimeoutError:
            known.reason = f"it did not answer within {limits.END_S:g} s at the end"
        except KeyError:
            known.reason = known.reason or "the worker ended before its part was read"
        except _UnwrittenError as error:
            known.reason = known.reason or str(error)
        except Exception as error:  # noqa: BLE001 - listed
            known.reason = known.reason or f"its part could not be read ({format_error(error)})"

    async def _collect_gone(self, known: KnownWorker) -> None:
        """Let a worker end that the scheduler has removed; most of them have written their part.

        It may run on for seconds: a nanny that it waits for has ended first, and kills it then.
        """
        pid = known.who.get("pid")
        parts = (part for part, of in part_folders(Path(self._order.folder)) if of == pid)
        if known.reason or any((part / MANIFEST).exists() for part in parts):
            return
        args = self._order.job_id, self._order.token
        try:
            await self._messages.run_directly(known.address, _native.now_ns, limits.GONE_WORKER_S)
            answer = await self._messages.run_directly(
                known.address, worker.outcome, limits.END_S, *args, self._ended_ns
            )
            known.reason = answer["reason"]
            for part, files in answer["to_send"].items():
                receiving = self._receive(known.address, part, files)
                await asyncio.wait_for(receiving, limits.SEND_S)
            known.recorded = answer["recorded"]
        except _UnwrittenError as error:
            known.reason = known.reason or str(error)
        except Exception:  # noqa: BLE001 - it has ended
            known.reason = known.reason or "the worker was removed, and ended without its part"

    async def _receive(self, address: str, part: str, files: Mapping[str, int]) -> None:
        """Read a part piece by piece, its manifest last."""
        name = PART_NAME.fullmatch(part)
        if name is None or not files.keys() <= {*FILES, BEGUN, JOURNAL}:
            raise ValueError("it offers files that do not belong to a part")
        with _writing():
            folder = new_part_folder(Path(self._order.folder), None, int(name[2]))
        try:
            for file in sorted(files.keys() & FILES, key=lambda file: file == MANIFEST):
                await self._receive_file(address, (part, file, files[file]), folder / file)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    async def _receive_file(self, address: str, source: tuple[str, str, int], target: Path) -> None:
        part, file, size = source
        if not 0 <= size <= _MAX_FILE_BYTES:
            raise ValueError(f"{file} claims to have {size:,} bytes")
        draft = target.with_name(f".epprof-{file}.part")
        with _writing():
            draft.touch()
        for offset in range(0, size, limits.PIECE_BYTES):
            args = self._order.job_id, self._order.token, part, file, offset, limits.PIECE_BYTES
            content = await self._piece(address, args)
            if len(content) != min(limits.PIECE_BYTES, size - offset):
                raise OSError(f"{file} ended early")
            with _writing(), draft.open("ab") as opened:
                opened.write(content)
        with _writing():
            draft.replace(target)

    async def _piece(self, address: str, args: tuple[Any, ...]) -> bytes:
        """Read a piece from the worker itself; where that cannot be reached, by the scheduler."""
        with suppress(Exception):
            return bytes(
                await self._messages.run_directly(address, worker.piece, limits.ANSWER_S, *args)
            )
        return bytes(await self._messages.run(address, worker.piece, limits.END_S, *args))

    def list_unrecorded(self) -> None:
        """Write which workers have no part, and why."""
        written = {pid for _, pid in part_folders(Path(self._order.folder))}
        for known in self._workers.values():
            pid = known.who.get("pid", 0)
            if known.recorded or (pid and (pid in written or pid == os.getpid())):
                continue
            self.add_unrecorded(
                unrecorded(
                    self._order,
                    pid=pid,
                    parent_pid=known.who.get("parent_pid", 0),
                    command=known.who.get("command", []),
                    followed="dask",
                    reason=known.reason or "the worker ended without its part",
                    hostname=known.who.get("hostname", ""),
                    address=known.address,
                )
            )

    def add_unrecorded(self, manifest: Manifest) -> None:
        """Write the part of a process that has no profile; keep its manifest if that fails."""
        try:
            write_unrecorded(self._order, manifest)
        except OSError:
            self.unwritten.append(manifest)


class _UnwrittenError(Exception):
    """A part could not be written here; the message is the reason to list."""


@contextmanager
def _writing() -> Iterator[None]:
    """Mark errors of this storage, because errors on the way to the worker are OSError, too."""
    try:
        yield
    except OSError as error:
        raise _UnwrittenError(f"its part could not be written ({format_error(error)})") from error
