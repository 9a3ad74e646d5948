"""Processes that measure in the background what later profiles of this machine need.

They run once, with the lowest priority, and are suspended while this process records a profile.
"""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from epprof_nb.core.own_thread import OwnThread
from epprof_nb.recording.children.order_to_children import MEASURING, VARIABLE
from epprof_nb.recording.session.service import service

if TYPE_CHECKING:
    from collections.abc import Sequence

_LOWEST_PRIORITY = 19


def _environment() -> dict[str, str]:
    """Return the environment of a process that does not belong to the jobs of this one."""
    inherited = {name: value for name, value in os.environ.items() if name != VARIABLE}
    return {**inherited, MEASURING: "1"}


class BackgroundProcess:
    """A command that runs at most once in the life of this process.

    Parameters
    ----------
    command
        The command to run. It ends with its standard input.
    seconds
        Time after which it is ended.
    """

    def __init__(self, command: Sequence[str], seconds: float) -> None:
        self._command = command
        self._seconds = seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._owner = os.getpid()
        self.thread: threading.Thread | None = None

    def start(self) -> bool:
        """Start the command.

        Returns False if it cannot start or was started before.
        """
        with self._lock:
            if self.thread is not None:
                return False
            self._owner = os.getpid()
            try:
                # A new process group, so that signals reach the scripts that it records. The group
                # stays in this session: the system ends a suspended group of the session when this
                # process dies.
                # The pipe closes when this process ends in any way. That ends the command, too.
                self._process = subprocess.Popen(  # noqa: S603 - our own command
                    self._command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL, process_group=0, env=_environment(),
                )  # fmt: skip
            except OSError:
                return False
            with suppress(OSError):  # without it, it takes more of the processors
                os.setpriority(os.PRIO_PGRP, self._process.pid, _LOWEST_PRIORITY)
            self.thread = OwnThread(target=self._wait, daemon=True, name="measuring")
            self.thread.start()
        service.on_recording.append(self.suspend)
        if service.open_subscriptions:
            self.suspend(recording=True)
        atexit.register(self.end)
        return True

    def suspend(self, *, recording: bool) -> None:
        """Suspend the command while a profile is recorded."""
        self._signal(signal.SIGSTOP if recording else signal.SIGCONT)

    def end(self) -> None:
        """End the command and discard its measurements."""
        self._signal(signal.SIGKILL)

    def _wait(self) -> None:
        process = self._process
        if process is None:
            return
        with suppress(subprocess.TimeoutExpired):
            process.wait(self._seconds)
        self.end()
        process.wait()
        if process.stdin is not None:
            process.stdin.close()
        service.on_recording.remove(self.suspend)
        atexit.unregister(self.end)

    def _signal(self, number: int) -> None:
        process = self._process
        # After the wait, another process may have this number. A forked child must not signal it.
        if process is not None and process.returncode is None and self._owner == os.getpid():
            with suppress(OSError):
                os.killpg(process.pid, number)
