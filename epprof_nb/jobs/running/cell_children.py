"""The part of the notebook: its children record while a cell runs.

Messages tell the children when to begin and to end. Nothing waits for a child longer than the times
in `limits`; a connection that is closed ends the recording of its child.
"""

from __future__ import annotations

import os
import select
import shutil
import socket
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epprof_nb.files.dataset.manifest import MANIFEST
from epprof_nb.jobs.process_part import part_folders
from epprof_nb.jobs.running.descendant_processes import (
    NO_LIBRARY,
    RunningProcess,
    descendants,
    read_process,
    why_silent,
)
from epprof_nb.jobs.running.limits import ANSWER_S, END_S, PREPARE_S
from epprof_nb.jobs.running.messages import Channel
from epprof_nb.jobs.running.private_folder import cells_folder, listening, socket_path
from epprof_nb.recording.children.journal import JOURNAL
from epprof_nb.recording.children.replaced_environments import started
from epprof_nb.recording.session.running_totals import Progress

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from epprof_nb.recording.children.order_to_children import Order


_ENDED = "ended while the cell ran, without writing its part"


@dataclass(frozen=True, slots=True)
class Unrecorded:
    """A child without a recording of the cell, and the reason."""

    process: RunningProcess
    reason: str


@dataclass(slots=True, eq=False)
class _Child:
    """A child that has a socket, and its answer to each message."""

    process: RunningProcess
    channel: Channel
    requested: set[str] = field(default_factory=set)
    received: set[str] = field(default_factory=set)
    answers: dict[str, str] = field(default_factory=dict)
    """Message to the state that resulted: ready, recording, idle, written or failed."""
    reason: str = ""
    progress: Progress | None = None

    def read(self) -> None:
        for message in self.channel.receive():
            to, state = str(message.get("to")), str(message.get("state"))
            self.received.add(to)
            if state != "received":
                self.answers[to] = state
                self.reason = str(message.get("reason", ""))[:1000]
            if to == "progress":
                self.progress = _progress_of(message) or self.progress


@dataclass(slots=True, eq=False)
class CellChildren:
    """The child processes of one profiled cell.

    Parameters
    ----------
    cell
        The order of the cell: the folder of its parts, its id and its options.
    folder
        The private folder with the children's sockets.
    token
        The secret of the folder's order.
    since_s
        When children got the order to listen, on the clock of `RunningProcess.started_s`.
    """

    cell: Order
    folder: Path
    token: str
    since_s: float
    _children: dict[int, _Child] = field(default_factory=dict)
    _silent: dict[int, Unrecorded] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    """Held while messages are sent: a separate thread requests the progress."""
    _has_ended: bool = False

    def begin(self) -> None:
        """Let the children record, and wait until they do."""
        started.known.clear()
        self.cell.write(self._cell_file)
        order = self.cell.to_json()
        self._tell("prepare", order=order)
        self._look()
        self._wait("prepare", PREPARE_S, self._children.values())
        prepared = [child for child in self._children.values() if "prepare" in child.answers]
        self._tell("begin", order=order)
        self._wait("begin", ANSWER_S, prepared)

    def send_end(self, ended_ns: int) -> None:
        """Tell the children that the cell has ended at `ended_ns` (CLOCK_MONOTONIC)."""
        with self._lock:
            self._has_ended = True
        self._cell_file.unlink(missing_ok=True)
        self._tell("end", ended_ns=ended_ns)

    def progress(self) -> dict[int, Progress | None]:
        """Ask the children for their progress, and return what they have answered so far.

        This does not wait: the answers belong to an earlier call, and a child that has not
        answered is not asked again. Children that have started within the cell are found.

        Returns
        -------
        progress
            Process id to progress, None if there is no answer yet; without children that do not
            record.
        """
        with self._lock:
            if not self._has_ended:
                self._connect_all()
                for child in self._children.values():
                    if not child.channel.is_closed:
                        child.read()
                        self._ask_progress(child)
            return {
                pid: child.progress
                for pid, child in sorted(self._children.items())
                if "failed" not in child.answers.values() and not child.channel.is_closed
            }

    def _ask_progress(self, child: _Child) -> None:
        if "progress" not in child.requested or "progress" in child.answers:
            child.requested.add("progress")
            child.answers.pop("progress", None)
            self._send(child, "progress")

    def collect(self) -> list[Unrecorded]:
        """Wait until the children have written their parts, and close the connections.

        Returns
        -------
        unrecorded
            The other children, in the order of their ids.
        """
        try:
            self._wait("end", END_S, self._children.values())
            self._look()
        finally:
            self.close()
        unrecorded = {p: u for p, u in self._silent.items() if p not in self._children}
        written, begun = self._pids_with_parts()
        # A child that began by itself, and was killed before anything connected to it.
        for pid in begun - written - {*unrecorded, *self._children}:
            unrecorded[pid] = Unrecorded(RunningProcess(pid, 0, 0.0, ()), _ENDED)
        for pid, child in self._children.items():
            if pid not in written:
                unrecorded[pid] = Unrecorded(child.process, _why_no_part(child))
        for python in started.known:  # it has ended, so that nothing is known from the system
            if python.pid not in written | unrecorded.keys():
                process = RunningProcess(python.pid, os.getpid(), 0.0, python.command)
                reason = python.why_no_order or NO_LIBRARY
                unrecorded[python.pid] = Unrecorded(process, reason)
        return [unrecorded[pid] for pid in sorted(unrecorded)]

    def close(self) -> None:
        """Close the connections, which ends the recordings that run; nothing else waits for it."""
        self._cell_file.unlink(missing_ok=True)
        for child in self._children.values():
            child.channel.close()

    @property
    def _cell_file(self) -> Path:
        return cells_folder(self.folder) / f"{self.cell.job_id}.json"

    def _pids_with_parts(self) -> tuple[set[int], set[int]]:
        """Return the processes that have a part, and those that ended after they had begun one.

        What these and processes that run have begun is removed.
        """
        pids, ended = set(), set()
        for part, pid in part_folders(Path(self.cell.folder)):
            has_ended = read_process(pid) is None
            if (part / MANIFEST).exists() or (has_ended and (part / JOURNAL).exists()):
                pids.add(pid)
            else:
                shutil.rmtree(part, ignore_errors=True)
                if has_ended:
                    ended.add(pid)
        return pids, ended

    def _look(self) -> None:
        """Note the descendants that do not listen, while they run."""
        for process in descendants(os.getpid()):
            if process.pid not in self._silent and process.pid not in self._children:
                reason = why_silent(process, since_s=self.since_s)
                self._silent[process.pid] = Unrecorded(process, reason)

    def _tell(self, do: str, **more: object) -> None:
        """Send a message to each process that listens, connecting to it if necessary."""
        self._connect_all()
        for child in self._children.values():
            if not child.channel.is_closed:
                self._send(child, do, **more)

    def _send(self, child: _Child, do: str, **more: object) -> None:
        child.channel.send({"do": do, "job_id": self.cell.job_id, "token": self.token, **more})

    def _connect_all(self) -> None:
        for pid in listening(self.folder):
            if pid not in self._children:
                self._connect(socket_path(self.folder, pid), pid)

    def _connect(self, path: Path, pid: int) -> None:
        process = read_process(pid)
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(0)  # a full queue of a child that is stopped
        channel = Channel(connection)
        try:
            connection.connect(os.fspath(path))
            if process is not None and channel.peer() == (pid, os.geteuid()):
                self._children[pid] = _Child(process, channel)
                return
        except ConnectionRefusedError:  # the process has ended or runs another program
            path.unlink(missing_ok=True)
        except OSError:  # it is listed as silent
            pass
        channel.close()

    def _wait(self, message: str, limit_s: float, children: Collection[_Child]) -> None:
        """Read answers until all children have obeyed a message, or their time is over."""
        begun = time.monotonic()
        while True:
            passed = time.monotonic() - begun
            remaining = {
                child.channel.fileno(): (child, left)
                for child in children
                if not child.channel.is_closed
                and message not in child.answers
                and (left := (limit_s if message in child.received else ANSWER_S) - passed) > 0
            }
            if not remaining:
                return
            readable = select.poll()
            for descriptor in remaining:
                readable.register(descriptor, select.POLLIN)
            # At least 1 ms, so that rounding does not make it a busy loop.
            wait_ms = max(1, min(left for _, left in remaining.values()) * 1e3)
            for descriptor, _ in readable.poll(wait_ms):
                remaining[descriptor][0].read()


def _progress_of(message: Mapping[str, Any]) -> Progress | None:
    """Return the progress in an answer; None if there is none."""
    stated = message.get("progress")
    try:
        top = tuple((str(name), float(share)) for name, share in stated["top"])  # type: ignore[index]
        return Progress(**{**stated, "top": top})  # type: ignore[dict-item]
    except (TypeError, KeyError, ValueError):
        return None


def _why_no_part(child: _Child) -> str:
    if "failed" in child.answers.values():
        return child.reason
    if read_process(child.process.pid) is None:
        return _ENDED
    if "end" not in child.received:
        return (
            f"did not answer within {ANSWER_S:g} s: it is stopped, or runs code that keeps the GIL"
        )
    return f"did not write its part within {END_S:g} s"
