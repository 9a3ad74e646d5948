"""On a worker: one recording per process and job, which ends with a part.

Sessions begin and end on separate threads, so that the worker's event loop goes on. Workers of
one process share its recording. The notebook's own process uses the notebook's recording.
"""

from __future__ import annotations

import asyncio
import hmac
import os
import shutil
import socket
import tempfile
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epprof_nb.core.own_thread import ListedThread
from epprof_nb.jobs.child_session import ChildSession
from epprof_nb.jobs.child_start import prepare
from epprof_nb.jobs.dask import limits
from epprof_nb.jobs.dask.clock_comparison import ClockComparison
from epprof_nb.jobs.dask.plugin_presence import make_check
from epprof_nb.jobs.dask.pool_processes import PoolProcesses
from epprof_nb.jobs.dask.tasks_before import RunningTask, note_on, running_tasks
from epprof_nb.jobs.process_part import ProcessPart
from epprof_nb.recording.children.order_to_children import Order
from epprof_nb.recording.session.service import service
from epprof_nb.util.fork_safe_lock import fork_safe_lock
from epprof_nb.util.format import format_error

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

_KEPT_S = 900.0
"""How long a part is kept that the notebook has not read."""

_CLOSING = ("closing", "closed", "failed")

_recordings: dict[str, _Recording] = {}
_own: set[str] = set()
_lock = fork_safe_lock()


def keep_out(job_id: str) -> None:
    """Let the workers of this process take no part in a job: the caller records the process."""
    _own.add(job_id)


def let_in(job_id: str) -> None:
    """End `keep_out`."""
    _own.discard(job_id)


class _Recording:
    """The recording of this process for one job, while workers of it run here.

    The process of the notebook records itself; only those that it starts are recorded here.
    """

    def __init__(self, message: Mapping[str, Any]) -> None:
        self.order = Order.from_json(message["order"])
        self.is_own = self.order.job_id in _own
        self.reason = self._missing = ""
        self._before: set[RunningTask] = set()
        self.parts: list[Path] = []
        self.executors: list[Any] = []
        self._lock = threading.Lock()
        self._workers: set[str] = set()
        self._address = ""
        self._session: ChildSession | None = None
        self._pool: PoolProcesses | None = None
        self._own_folder: Path | None = None
        self.comparison = ClockComparison(message["echo"], self.order.token)

    def join(self, worker: str) -> str:
        """Begin, if this is the first worker; return why there is no recording."""
        with self._lock:
            self._workers.add(worker)
            if not self._is_open:
                self._address = worker
                self._begin()
            return self.reason

    @property
    def _is_open(self) -> bool:
        return self._session is not None or self._pool is not None

    def begin_code(self) -> None:
        """Let the profile begin now: the block of code begins."""
        with self._lock:
            if self._session is not None:
                self._before &= running_tasks()  # others have ended before the block
                self._session.begin_code()

    def leave(self, worker: str, ended_ns: int | None = None) -> None:
        """End, if this is the last worker, and write the part.

        `ended_ns` is when the block of code ended, on the clock of the notebook; now if None.
        """
        with self._lock:
            self._workers.discard(worker)
            if not self._workers and self._is_open:
                self._end(ended_ns)

    def end(self, ended_ns: int | None = None) -> None:
        """End, whoever is there; see `leave`."""
        with self._lock:
            self._workers.clear()
            if self._is_open:
                self._end(ended_ns)

    def _begin(self) -> None:
        self._pool = PoolProcesses(self.order)
        try:
            self._pool.begin()
        except OSError as error:
            self._note_missing(error)
            self._discard_pool()
        if not self.is_own:
            self._begin_session()
        if self.reason:
            self._discard_pool()

    def _discard_pool(self) -> None:
        if self._pool is not None:
            self._pool.discard()
            self._pool = None

    def _begin_session(self) -> None:
        self._session = session = ChildSession(self._reachable(), "dask", address=self._address)
        self.reason = ""
        try:
            prepare()
            self.comparison.begin()
            if not service.open_subscriptions:  # else, tasks have ops already
                self._before = running_tasks()
            session.begin()
        except Exception as error:  # noqa: BLE001 - the worker must run in any case
            self.reason = f"it could not begin to record ({format_error(error)})"
            self._session = None
            session.abort()

    def _reachable(self) -> Order:
        """Return the order with a folder that this process can write: the job's, or its own."""
        folder = Path(self.order.folder)
        with suppress(OSError, ValueError):
            found = Order.read(folder / self.order.path.name)
            if hmac.compare_digest(found.token, self.order.token) and os.access(folder, os.W_OK):
                return self.order
        return self._in_own_folder()

    def _in_own_folder(self) -> Order:
        if self._own_folder is None:
            self._own_folder = Path(tempfile.mkdtemp(prefix="epprof-dask-"))
        return replace(self.order, folder=os.fspath(self._own_folder))

    def _end(self, ended_ns: int | None) -> None:
        session, self._session = self._session, None
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.send_end()
        if session is not None:
            self._end_session(session, ended_ns)
        if pool is not None:
            self._collect(pool)

    def _collect(self, pool: PoolProcesses) -> None:
        """Add the parts of the processes that this one has started."""
        try:
            folder = Path(self._reachable().folder)
            pids = {pid for pids in map(_pids, self.executors) for pid in pids}
            self.parts += pool.collect(folder, self.comparison.known(), pids)
        except Exception as error:  # noqa: BLE001 - reported to the notebook
            self._note_missing(error)

    def _note_missing(self, error: Exception) -> None:
        self._missing = (
            f"The processes that worker {os.getpid()} started are missing ({format_error(error)})."
        )

    @property
    def note(self) -> str:
        """Sentences on what the recording lacks."""
        return " ".join(filter(None, (self._missing, note_on(self._before))))

    def _end_session(self, session: ChildSession, ended_ns: int | None) -> None:
        try:
            here_ns = None if ended_ns is None else self.comparison.own_ns(ended_ns)
            session.stop(ended_ns=here_ns)
            clock = self.comparison.end()
            if session.part is not None:
                session.part.clock.update(clock)
            try:
                part = session.write_part("")
            except OSError:  # the storage fails: the notebook reads the part from here
                failed = session.part
                session.part = ProcessPart(self._in_own_folder(), "dask", self._address)
                session.part.clock.update(clock)
                part = session.write_part("")
                if failed is not None:  # what it says of this process is in the other part
                    shutil.rmtree(failed.folder, ignore_errors=True)
            self.parts.append(part)
        except Exception as error:  # noqa: BLE001 - reported to the notebook
            self.reason = f"its part is lost ({format_error(error)})"
            session.abort()

    def to_send(self) -> dict[str, dict[str, int]]:
        """Return the parts that the notebook has to read: folder to the sizes of its files."""
        own = self._own_folder
        return {
            part.name: {file.name: file.stat().st_size for file in part.iterdir()}
            for part in self.parts
            if own is not None and part.parent == own
        }

    def piece(self, part: str, file: str, offset: int, size: int) -> bytes:
        """Return a piece of a file of a part."""
        if self._own_folder is None or file not in self.to_send().get(part, {}):
            raise FileNotFoundError(f"{part}/{file} is not a file of this job")
        with (self._own_folder / part / file).open("rb") as opened:
            opened.seek(offset)
            return opened.read(size)

    def remove(self) -> None:
        """End, and remove the parts that were not sent."""
        self.end()
        if self._own_folder is not None:
            shutil.rmtree(self._own_folder, ignore_errors=True)


def _pids(executor: Any) -> Collection[int]:  # noqa: ANN401
    """Return the processes of an executor of Python's `concurrent.futures`; others have none."""
    found = getattr(executor, "_processes", None)
    return [*found] if isinstance(found, dict) else []


async def join(worker: Any, message: Mapping[str, Any]) -> str:  # noqa: ANN401
    """Record the process of a worker; return why it is not recorded."""
    with _lock:
        recording = _recordings.setdefault(message["job_id"], _Recording(message))
    recording.executors += getattr(worker, "executors", {}).values()
    reason: str = await _off_loop(recording.join, worker.address)
    if not reason:
        worker.loop.add_callback(_watch, worker, message, recording)
    return reason


async def begin_code(job_id: str, token: str) -> None:
    """Let the profile begin now. Until now, the notebook waited for other workers."""
    recording = _of_job(job_id, token)
    if recording is not None:
        await _off_loop(recording.begin_code)


async def leave(worker: Any, job_id: str, ended_ns: int | None = None) -> None:  # noqa: ANN401
    """End the recording of a worker, and write the part; see `_Recording.leave`."""
    recording = _recordings.get(job_id)
    if recording is not None:
        await _off_loop(recording.leave, worker.address, ended_ns)
        asyncio.get_running_loop().call_later(_KEPT_S, _forget, job_id)


async def outcome(job_id: str, token: str, ended_ns: int | None = None) -> dict[str, Any]:
    """Tell the notebook what has become of the recording, which ends now if it has not.

    Parameters
    ----------
    job_id, token
        The job, and its secret.
    ended_ns
        When the block of code ended, on the clock of the notebook; now if None.

    Returns
    -------
    outcome
        ``pid``, ``hostname``, ``recorded``, ``reason``, ``note`` and ``to_send``, see
        `_Recording.to_send`.
    """
    recording = _of_job(job_id, token)
    who = {"pid": os.getpid(), "hostname": socket.gethostname()}
    if recording is None:
        missing = "it has no recording"
        return {**who, "recorded": False, "reason": missing, "note": "", "to_send": {}}
    await _off_loop(recording.end, ended_ns)
    return {
        **who,
        "recorded": recording.is_own or bool(recording.parts),
        "reason": recording.reason,
        "note": recording.note,
        "to_send": recording.to_send(),
    }


def lacks_clock(job_id: str) -> bool:
    """Whether the clock of this process is another one, and the echo has not answered."""
    recording = _recordings.get(job_id)
    return recording is not None and recording.comparison.is_needed


def add_samples(job_id: str, token: str, samples: list[tuple[int, int, int]]) -> None:
    """Keep comparisons of the clocks by messages of Dask."""
    recording = _of_job(job_id, token)
    if recording is not None:
        recording.comparison.add(samples)


def piece(job_id: str, token: str, part: str, file: str, offset: int, size: int) -> bytes:  # noqa: PLR0917 - a message
    """Return a piece of a file of a part; see `_Recording.piece`."""
    recording = _of_job(job_id, token)
    if recording is None:
        raise FileNotFoundError("this worker has no part of the job any more")
    return recording.piece(part, file, offset, size)


async def forget(job_id: str, token: str) -> None:
    """Remove the rest of a job, and discard a recording that still runs."""
    if _of_job(job_id, token) is not None:
        await _off_loop(_forget, job_id)


def _of_job(job_id: str, token: str) -> _Recording | None:
    recording = _recordings.get(job_id)
    if recording is None or not hmac.compare_digest(recording.order.token, token):
        return None
    return recording


def _forget(job_id: str) -> None:
    recording = _recordings.pop(job_id, None)
    if recording is not None:
        recording.remove()


async def _watch(worker: Any, message: Mapping[str, Any], recording: _Recording) -> None:  # noqa: ANN401
    """End the recording if the client is gone, or has removed the plugin and not reached us.

    The worker keeps the plugin: the message that removes it may be on its way.
    """
    from distributed.protocol.pickle import dumps

    check = dumps(make_check(message["client"], message["plugin"]))

    async def ask(**more: bool) -> list[bool]:
        answer = await worker.scheduler.run_function(
            function=check, args=dumps(()), kwargs=dumps(more), wait=True
        )
        result: list[bool] = answer["result"]
        return result

    job_id, gone_s = message["job_id"], 0.0
    while _recordings.get(job_id) is recording and message["plugin"] in worker.plugins:
        if await _closes(worker, message["check_s"]):
            await leave(worker, job_id)
            return
        try:
            has_client, has_plugin = await ask()
            gone_s = 0.0 if has_client else gone_s + message["check_s"]
            if gone_s >= message["gone_s"]:
                _, has_plugin = await ask(forget=True)
        except Exception:  # noqa: BLE001, S112 - a worker without a scheduler ends by itself
            continue
        if not has_plugin:
            await leave(worker, job_id)
            return


async def _closes(worker: Any, within_s: float) -> bool:  # noqa: ANN401
    """Whether a worker is being closed, within some time: its plugins end only after its nanny."""
    end = asyncio.get_running_loop().time() + within_s
    while (left := end - asyncio.get_running_loop().time()) > 0:
        if worker.status.name in _CLOSING:
            return True
        await asyncio.sleep(min(limits.LOOK_S, left))
    return False


async def _off_loop(function: Callable[..., Any], *args: Any) -> Any:  # noqa: ANN401
    """Call a function on a separate thread, which recordings leave out."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()

    def give(result: Any, error: BaseException | None) -> None:  # noqa: ANN401
        if done.cancelled():
            return
        if error is None:
            done.set_result(result)
        else:
            done.set_exception(error)

    def run() -> None:
        result, error = None, None
        try:
            result = function(*args)
        except BaseException as raised:  # noqa: BLE001 - raised where the result is awaited
            error = raised
        with suppress(RuntimeError):  # the loop has been closed
            loop.call_soon_threadsafe(give, result, error)

    ListedThread(target=run, name=f"epprof {function.__name__}", daemon=True).start()
    return await done
