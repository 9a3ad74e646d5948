"""Start of a child process: it follows the order of its parent, and records when it needs to."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from epprof_nb.core.errors import CaptureError
from epprof_nb.jobs.child_session import ChildSession
from epprof_nb.jobs.gpu_libraries import OWN_MODULES, RECORDED_FROM
from epprof_nb.recording.children.order_to_children import Order
from epprof_nb.recording.children.propagation import give_order
from epprof_nb.recording.children.why_unrecorded import is_helper
from epprof_nb.util.after_import import after_import, cancel
from epprof_nb.util.cuda_state import FORKED_AFTER_CUDA, broken_by_fork
from epprof_nb.util.shadowed_modules import leave_to_program, own_imports

if TYPE_CHECKING:
    from collections.abc import Callable

    from epprof_nb.files.dataset.manifest import Followed


class _Child:
    """State of a child of a job: it waits for a library, records, and ends."""

    def __init__(self, path: str, order: Order, followed: Followed) -> None:
        from epprof_nb.jobs.process_part import ProcessPart
        from epprof_nb.recording.process_end.save_at_end import SaveAtEnd

        self.path, self._order = path, order
        self._session = ChildSession(order, followed, part=ProcessPart(order, followed))
        self._process = os.getpid()
        self._began = False
        self._waiting: dict[str, Callable[[], None]] = {}
        self._why = f"it imported no GPU library, nor {RECORDED_FROM[0]}"
        SaveAtEnd(stop=self._stop, save=self._save, discard=self._discard).install(watch=True)

    def begin_when_needed(self) -> None:
        """Begin now, or when the first of the libraries has been imported."""
        if broken_by_fork():
            self._why = FORKED_AFTER_CUDA
        elif any(name in sys.modules for name in RECORDED_FROM):
            self._begin()
        else:
            for name in (*RECORDED_FROM, *OWN_MODULES):
                self._waiting[name] = partial(self._begin, name)
            for name, begin in [*self._waiting.items()]:
                after_import(name, begin)

    def cancel(self) -> None:
        """Do not wait any longer."""
        while self._waiting:
            cancel(*self._waiting.popitem())

    def withdraw(self) -> None:
        """Record nothing: the process records itself in another way."""
        self.cancel()
        if self._session.part is not None:
            self._session.part.remove()
            self._session.part = None

    def _begin(self, imported: str = "") -> None:
        if _own_imports() - {imported}:
            return  # the modules that this needs are incomplete; it is called again at the end
        self.cancel()
        if self._began or self._session.part is None or os.getpid() != self._process:
            return
        self._began = True
        try:
            with own_imports():
                prepare()
                self._session.begin()
        except Exception as error:  # noqa: BLE001 - the process must run in any case
            self._why = f"profiling could not be started ({type(error).__name__}: {error})"

    def _stop(self) -> None:
        self.cancel()
        self._session.stop()

    def _discard(self) -> bool:
        """Record nothing if this process was only forked to execute another program."""
        if self._session.followed != "fork" or self._session.is_in_journal:
            return False
        self.cancel()
        self._session.abort()
        self._session.part = None
        return True

    def _save(self) -> bool:
        if self._session.part is None:
            return True
        from epprof_nb.util.stderr import say

        try:
            list_unrecorded(self._order)
            self._session.write_part(self._why)
        except Exception as error:  # noqa: BLE001 - reported, as nobody can catch it
            say(f"the part of process {os.getpid()} could not be written ({error})")
        return True


def _own_imports() -> set[str]:
    """Return the modules of the package that are being imported."""
    return {
        name
        for name, module in [*sys.modules.items()]
        if name.startswith("epprof_nb.")
        and getattr(getattr(module, "__spec__", None), "_initializing", False)
    }


_current: list[_Child] = []
"""State of this process, if it follows an order."""


def follow(path: str, followed: Followed, folder: str | None = None) -> None:
    """Follow an order: record this process once it uses a GPU library, and pass the order on.

    Parameters
    ----------
    path
        File of the order.
    followed
        How the order reached this process.
    folder
        The folder from which the program imports its modules; None if it does so from none, or has
        begun to.

    Notes
    -----
    Nothing is raised: the process runs in any case.
    """
    try:
        if _current and _current[0].path == path and _current[0]._process == os.getpid():  # noqa: SLF001
            return
        _current.clear()
        if followed == "forkserver" and not is_helper(sys.orig_argv):
            followed = "subprocess"
        order = Order.read(path)
        if not order.creator_runs and not order.listen:
            from epprof_nb.jobs.begin_job import is_over

            if is_over(order):
                order.path.unlink()  # further processes do not read it
                return
        give_order(path, in_fork=follow_in_fork)
        if is_helper(sys.orig_argv) and followed == "subprocess":
            return
        if order.listen:
            from epprof_nb.jobs.running.listening import listen_when_needed

            after_import("onnxruntime", prepare)
            listen_when_needed(order, path, followed, ChildSession)
            return
        _current.append(_Child(path, order, followed))
        _current[0].begin_when_needed()
    except Exception:  # noqa: BLE001, S110 - the job has ended, or its folder is gone
        pass
    finally:
        if folder is not None:
            leave_to_program(folder)


def follow_in_fork(path: str) -> None:
    """Follow the order of the parent in a forked child."""
    followed: Followed = "forkserver" if is_helper(sys.orig_argv) else "fork"
    follow(path, followed)


def stop_waiting() -> None:
    """Leave the recording of this process to the caller."""
    while _current:
        _current.pop().withdraw()


def prepare() -> None:
    """Observe ONNX Runtime, before a session starts."""
    from epprof_nb import onnxruntime
    from epprof_nb.recording.onnxruntime import sessions

    try:
        onnxruntime.install()
    except CaptureError as error:
        sessions.disable_with_reason(str(error))


def list_unrecorded(order: Order) -> None:
    """Write which of the Pythons that this process started did not obey, and why."""
    from epprof_nb.jobs.process_part import part_folders, unrecorded, write_unrecorded
    from epprof_nb.recording.children.replaced_environments import started

    known = {pid for _, pid in part_folders(Path(order.folder))}
    for process in started.known:
        if process.pid not in known:
            manifest = unrecorded(
                order, pid=process.pid, parent_pid=os.getpid(), command=process.command,
                followed="subprocess", reason=process.why_unrecorded,
            )  # fmt: skip
            write_unrecorded(order, manifest)
    started.known.clear()
