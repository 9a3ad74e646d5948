"""The part of a child process: it listens for the cells of a notebook, and records while one runs.

A child that follows a notebook's order waits until it imports a GPU library. Then a thread listens
on a Unix socket in the notebook's private folder. It is blocked in `poll` until the notebook sends
a message or ends. A cell that is running at that moment is recorded from there on.
"""

from __future__ import annotations

import hmac
import os
import select
import shutil
import signal
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from epprof_nb.core.errors import CaptureError
from epprof_nb.core.own_thread import OwnThread
from epprof_nb.jobs.gpu_libraries import after_gpu_library
from epprof_nb.jobs.running.messages import Channel
from epprof_nb.jobs.running.private_folder import (
    cells_folder,
    is_private,
    listening,
    socket_path,
)
from epprof_nb.recording.children.order_to_children import Order
from epprof_nb.recording.process_end.save_at_end import SaveAtEnd
from epprof_nb.util.cuda_state import FORKED_AFTER_CUDA, broken_by_fork

if TYPE_CHECKING:
    from epprof_nb.files.dataset.manifest import Followed
    from epprof_nb.recording.session.running_totals import Progress
    from epprof_nb.recording.session.session import Session as RecordingSession

_READ_S = 1.0
"""Maximum wait for the rest of a message, whose sender is on the same machine."""
_LOOK_S = 60.0
"""Time between looks whether the notebook runs, on systems that cannot report its end."""
_QUEUE = 16


class Session(Protocol):
    """Session of this process that ends with a part; `epprof_nb.jobs.child_session` has it."""

    def begin(self) -> object:
        """Start to record."""

    def progress(self) -> Progress | None:
        """Return the progress of the recording; None if there is none."""

    def stop(self, *, ended_ns: int | None = None) -> object:
        """Stop, before `write_part`; `ended_ns` is when the code ended."""

    def write_part(self, why_unrecorded: str) -> object:
        """Write the part."""

    def abort(self) -> None:
        """Discard what was recorded."""


NewSession = Callable[[Order, "Followed"], Session]

_following: _Following | None = None


def listen_when_needed(
    order: Order, path: str, followed: Followed, new_session: NewSession
) -> None:
    """Listen for the cells of a notebook, once this process imports a GPU library.

    Parameters
    ----------
    order
        The notebook's order to its children.
    path
        Its file in the private folder.
    followed
        How it reached this process.
    new_session
        Class of the sessions that end with a part.
    """
    global _following  # noqa: PLW0603
    if _following is None:
        os.register_at_fork(after_in_child=_leave_in_child)
    if _following is None or _following.pid != os.getpid():
        _following = _Following(order, Path(path).parent, followed, new_session)
        after_gpu_library(_following.listen)


def _leave_in_child() -> None:
    """Close the sockets that a forked child has from its parent, whose thread it has not."""
    if _following is not None and _following.pid != os.getpid():
        _following.leave()


class _Following:
    """The listening of one process, and its sessions."""

    def __init__(
        self, order: Order, folder: Path, followed: Followed, new_session: NewSession
    ) -> None:
        self.order, self.folder, self.followed = order, folder, followed
        self._new_session = new_session
        self.pid = os.getpid()
        self._forked_after_cuda = broken_by_fork()
        self._socket: socket.socket | None = None
        self._notebook: int | None = None  # its pidfd
        self._channels: dict[int, Channel] = {}
        self._opened: dict[int, os.stat_result] = {}
        self._lock = threading.RLock()
        self._sessions: dict[str, Session] = {}  # by the id of the job
        self._owners: dict[str, Channel] = {}  # which connection began each session
        self._prepared: dict[str, RecordingSession] = {}
        self._failures: dict[str, str] = {}

    # -- on the thread that imports a GPU library, or forked

    def listen(self) -> None:
        """Listen from now on, and record the cell that runs, if there is one."""
        if self._socket is not None or self.pid != os.getpid():
            return
        with suppress(OSError):  # the notebook has ended, and its folder is gone
            self._listen()

    def _listen(self) -> None:
        if not is_private(self.folder):
            return
        with suppress(OSError):  # a sandbox without such calls, or the notebook has ended
            self._notebook = os.pidfd_open(self.order.creator_pid)
        if not self.order.creator_runs:
            return
        # A socket gets its name when it listens: the notebook removes those that refuse.
        draft = self.folder / f".{self.pid}"
        draft.unlink(missing_ok=True)
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(os.fspath(draft))
        self._socket.listen(_QUEUE)
        self._note(self._socket.fileno())
        if self._notebook is not None:
            self._note(self._notebook)
        draft.replace(socket_path(self.folder, self.pid))
        OwnThread(target=self._serve, name="epprof_nb listener", daemon=True).start()
        # The notebook writes the order of a cell before it looks for sockets. Therefore a cell that
        # is not found here finds this socket.
        running = sorted(cells_folder(self.folder).glob("*.json"))
        # A handler delays a signal until the main thread runs Python code. Only for a child of the
        # cell, which may end with it as the workers of a pool do, this is worth it.
        SaveAtEnd(stop=self._stop_all, save=self._save_all).install(
            signals=bool(running), watch=True
        )
        for file in running:
            with suppress(OSError, ValueError):  # the cell has ended meanwhile
                self._begin(Order.read(file), self.followed)

    # -- when the process ends

    def _stop_all(self) -> None:
        with self._lock:
            for session in self._sessions.values():
                session.stop()

    def _save_all(self) -> bool:
        with self._lock:
            while self._sessions:
                _, session = self._sessions.popitem()
                with suppress(OSError):  # the notebook lists this process
                    session.write_part("")
        return True

    def leave(self) -> None:
        """Close the sockets; a parent's sockets would stay open after its end, for the notebook."""
        for opened in (self._socket, *(c.connection for c in self._channels.values())):
            if opened is not None and self._is_open(opened.fileno()):
                opened.close()
            elif opened is not None:
                opened.detach()
        if self._notebook is not None and self._is_open(self._notebook):
            os.close(self._notebook)

    def _note(self, descriptor: int) -> None:
        self._opened[descriptor] = os.fstat(descriptor)

    def _is_open(self, descriptor: int) -> bool:
        """Whether a descriptor is unchanged: daemons close all, and use the numbers again."""
        try:
            return os.path.samestat(self._opened[descriptor], os.fstat(descriptor))
        except (KeyError, OSError):
            return False

    # -- on the thread that listens

    def _serve(self) -> None:
        # Signals are for the threads of the program.
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        listener = self._socket
        assert listener is not None  # noqa: S101
        poll = select.poll()
        poll.register(listener, select.POLLIN)
        if self._notebook is not None:
            poll.register(self._notebook, select.POLLIN)
        while self._notebook is not None or self.order.creator_runs:
            for descriptor, _ in poll.poll(None if self._notebook is not None else _LOOK_S * 1e3):
                if not self._is_open(descriptor):
                    self._end_sessions()
                    return
                if descriptor == self._notebook:
                    self._end_all()
                    return
                if descriptor == listener.fileno():
                    channel = self._accept(listener)
                else:
                    channel = self._channels[descriptor]
                    self._answer(channel)
                if channel is not None and not channel.is_closed:
                    self._channels[channel.fileno()] = channel
                    poll.register(channel, select.POLLIN)
                elif channel is not None and self._channels.pop(descriptor, None) is not None:
                    poll.unregister(descriptor)
                    self._forget(channel)
        self._end_all()

    def _accept(self, listener: socket.socket) -> Channel | None:
        try:
            connection, _ = listener.accept()
        except OSError:
            return None
        connection.settimeout(_READ_S)
        self._note(connection.fileno())
        channel = Channel(connection)
        if channel.peer() != (self.order.creator_pid, os.geteuid()):
            channel.close()
            return None
        return channel

    def _answer(self, channel: Channel) -> None:
        messages = channel.receive()
        ended = [m.get("job_id") for m in messages if m.get("do") == "end"]
        for message in messages:
            token = str(message.get("token")).encode(errors="replace")
            if not hmac.compare_digest(token, self.order.token.encode()):
                channel.close()
            elif message.get("do") != "end" and message.get("job_id") in ended:
                continue  # this process was busy while the cell ran
            else:
                channel.send({"to": message.get("do"), "state": "received"})
            if channel.is_closed:  # the notebook does not wait any more
                return
            channel.send({"to": message.get("do"), **self._result(message, channel)})

    def _result(self, message: dict[str, Any], channel: Channel) -> dict[str, Any]:
        try:
            if message.get("do") == "progress":
                return self._progress(str(message["job_id"]))
            if message.get("do") == "end":
                return self._end(str(message["job_id"]), int(message["ended_ns"]))
            order = Order.from_json(str(message["order"]))
            self._owners[order.job_id] = channel
            if message.get("do") == "prepare":
                return self._prepare(order)
            return self._begin(order, "running")
        except Exception as error:  # noqa: BLE001 - the notebook reports it; the program runs on
            return {"state": "failed", "reason": _reason(error)}

    def _prepare(self, order: Order) -> dict[str, Any]:
        """Start the recorders, which takes longer, so that all children can begin at one time."""
        # Also what the begin and the end need: they should not take long.
        import epprof_nb.files.dataset.part
        import epprof_nb.recording.children.journal  # noqa: F401
        from epprof_nb.recording.session import session

        with self._lock:
            if order.job_id not in self._sessions and not self._forked_after_cuda:
                self._prepared[order.job_id] = session.start(order.options)
            return {"state": "ready"}

    def _begin(self, order: Order, followed: Followed) -> dict[str, Any]:
        with self._lock:
            if self._forked_after_cuda:
                return self._failed(order, FORKED_AFTER_CUDA)
            if order.job_id not in self._sessions:
                try:
                    session = self._new_session(order, followed)
                    session.begin()
                except Exception as error:  # noqa: BLE001
                    return self._failed(order, _reason(error))
                self._sessions[order.job_id] = session
                self._discard(order.job_id)
            return {"state": "recording"}

    def _progress(self, job_id: str) -> dict[str, Any]:
        with self._lock:
            session = self._sessions.get(job_id)
            progress = None if session is None else session.progress()
            if progress is None:
                return {"state": "idle"}
            return {"state": "recording", "progress": asdict(progress)}

    def _failed(self, order: Order, reason: str) -> dict[str, Any]:
        self._failures[order.job_id] = reason
        return {"state": "failed", "reason": reason}

    def _end(self, job_id: str, ended_ns: int) -> dict[str, Any]:
        with self._lock:
            self._owners.pop(job_id, None)
            self._discard(job_id)
            session = self._sessions.pop(job_id, None)
            if session is None:
                late = "the cell ended before the recording began"
                reason = self._failures.pop(job_id, late)
                return {"state": "failed", "reason": reason}
            session.stop(ended_ns=ended_ns)
            session.write_part("")
            return {"state": "written"}

    def _forget(self, channel: Channel) -> None:
        """Discard the sessions that a closed connection has begun: nobody waits for their parts."""
        channel.close()
        for job_id in [job for job, owner in self._owners.items() if owner is channel]:
            self._abort(job_id)

    def _end_all(self) -> None:
        """Stop to listen: the notebook has ended. The last child removes its folder."""
        self._end_sessions()
        socket_path(self.folder, self.pid).unlink(missing_ok=True)
        if not listening(self.folder):
            shutil.rmtree(self.folder, ignore_errors=True)

    def _end_sessions(self) -> None:
        for job_id in [*self._sessions, *self._prepared]:
            self._abort(job_id)
        self.leave()

    def _abort(self, job_id: str) -> None:
        with self._lock:
            self._owners.pop(job_id, None)
            self._discard(job_id)
            session = self._sessions.pop(job_id, None)
            if session is not None:
                session.abort()

    def _discard(self, job_id: str) -> None:
        prepared = self._prepared.pop(job_id, None)
        if prepared is not None:
            prepared.abort()


def _reason(error: Exception) -> str:
    text = str(error) if isinstance(error, CaptureError) else f"{type(error).__name__}: {error}"
    return f"it could not be recorded: {text[:500]}"
