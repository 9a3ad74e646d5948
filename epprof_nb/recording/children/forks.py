"""Forks: a function that runs in each forked child, after all other functions that do."""

from __future__ import annotations

import os
import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_MAX_WAIT_S = 5.0
_BEFORE_EXEC = ("_execute_child", "_spawnvef", "fork_exec")
"""Functions of subprocess, os and loky that fork only to start another program."""


class Forks:
    """Calls a function in forked children, except in those that only start another program.

    The function runs last: it starts a session, and the hooks of the profiler and of libraries
    reset their state in the child and release the locks that they held during the fork.

    Attributes
    ----------
    function
        The function; None for none.
    hold
        Lock that this process holds while it forks. A thread that takes locks of the profiler holds
        it meanwhile, so that a child does not find these locks taken.
    """

    def __init__(self) -> None:
        self.function: Callable[[], None] | None = None
        self.hold = threading.Lock()
        self._held = False
        self._installed = False
        self._last = 0  # number of the newest hook in children
        self._modules = 0

    def call(self, function: Callable[[], None] | None) -> None:
        """Call `function` in each forked child from now on; None for no function."""
        self.function = function
        if function is not None and not self._installed:
            self._installed = True
            os.register_at_fork(
                before=self._before, after_in_parent=self._release, after_in_child=self._release
            )

    def _before(self) -> None:
        if self.function is None:
            return
        # The forking thread may be inside the profiler, and the holder may wait for it.
        self._held = self.hold.acquire(timeout=_MAX_WAIT_S)
        # Modules register their hooks when they are imported. A new hook of ours is the last one.
        if self._modules != len(sys.modules):
            self._modules = len(sys.modules)
            self._last += 1
            number = self._last
            os.register_at_fork(after_in_child=lambda: self._in_child(number))

    def _release(self) -> None:
        if self._held:
            self._held = False
            self.hold.release()

    def _in_child(self, number: int) -> None:
        if number != self._last or self.function is None:
            return
        # The frames of this function, of the hook and of the caller of fork.
        caller = sys._getframe(1).f_back  # noqa: SLF001
        if caller is None or caller.f_code.co_name not in _BEFORE_EXEC:
            self.function()


forks = Forks()
