"""Orders to processes that `subprocess` starts with an environment that the caller replaces."""

from __future__ import annotations

import functools
import os
import re
import shutil
from pathlib import Path
from typing import Any

from epprof_nb.recording.children.order_to_children import MEASURING, VARIABLE
from epprof_nb.recording.children.proc_filesystem import command_of, program_of
from epprof_nb.recording.children.why_unrecorded import Started, is_helper
from epprof_nb.util.after_import import after_import, cancel

_PYTHON = re.compile(r"python[\d.]*t?(?: \(deleted\))?")
_ENVIRONMENT = 10
"""Position of `env` among the arguments of `subprocess.Popen`."""


class StartedProcesses:
    """Python processes that this one starts with `subprocess.Popen` while it is watched."""

    def __init__(self) -> None:
        self.known: list[Started] = []
        self._order = ""
        self._original: Any = None

    def watch(self, order: str) -> None:
        """Give the order to each process, even if the caller sets its environment."""
        self._order = order
        self.known = []
        if self._original is None:
            after_import("subprocess", self._install)

    def stop(self) -> None:
        """Undo `watch`; the known processes remain."""
        cancel("subprocess", self._install)
        if self._original is not None:
            import subprocess

            popen: Any = subprocess.Popen
            if getattr(popen.__init__, "__wrapped__", None) is self._original:
                popen.__init__ = self._original
            self._original = None
        self._order = ""

    def _install(self) -> None:
        import subprocess

        patched: Any = subprocess.Popen
        original = self._original = patched.__init__

        @functools.wraps(original)
        def init(popen: Any, *args: Any, **named: Any) -> None:  # noqa: ANN401
            order = self._order
            given = _given_environment(args, named)
            if not order or MEASURING.encode() in (_names_in(given) or ()):
                original(popen, *args, **named)
                return
            args, named, refused = _with_order(args, named, order)
            original(popen, *args, **named)
            self._note(popen.pid, popen.args, refused=refused)

        patched.__init__ = init

    def _note(self, pid: int, args: Any, *, refused: bool) -> None:  # noqa: ANN401
        # The process knows best: a script may name its interpreter. But it may have ended.
        program, command = program_of(pid), command_of(pid)
        if program is None or not command:
            program, command = _stated(args)
        if _PYTHON.fullmatch(Path(program).name) and not is_helper(command):
            self.known.append(Started(pid, tuple(command), program, refused))


def _stated(args: Any) -> tuple[str, list[str]]:  # noqa: ANN401
    """Return the program and the command line of the arguments of Popen."""
    parts = [args] if isinstance(args, (str, bytes, os.PathLike)) else list(args)
    command = [os.fsdecode(part) for part in parts]
    found = shutil.which(command[0]) if command else None
    return os.path.realpath(found) if found else "", command


def _given_environment(args: tuple[Any, ...], named: dict[str, Any]) -> Any:  # noqa: ANN401
    """Return the environment among the arguments of Popen; None if there is none."""
    return args[_ENVIRONMENT] if len(args) > _ENVIRONMENT else named.get("env")


def _with_order(
    args: tuple[Any, ...], named: dict[str, Any], order: str
) -> tuple[tuple[Any, ...], dict[str, Any], bool]:
    """Return the arguments of Popen with the order, and whether they refuse it."""
    given = _given_environment(args, named)
    if given is None:
        return args, named, not os.environ.get(VARIABLE)
    names = _names_in(given)
    if names is None:
        return args, named, False
    variable = VARIABLE.encode()
    if variable in names:
        return args, named, not given[names[variable]]
    # Python warns of names of both types in one dictionary.
    is_bytes = any(isinstance(name, bytes) for name in names.values())
    extended = dict(given.items())
    extended[variable if is_bytes else VARIABLE] = os.fsencode(order) if is_bytes else order
    if len(args) > _ENVIRONMENT:
        return (*args[:_ENVIRONMENT], extended, *args[_ENVIRONMENT + 1 :]), named, False
    return args, {**named, "env": extended}, False


def _names_in(environment: Any) -> dict[bytes, Any] | None:  # noqa: ANN401
    """Return the names in an environment, of text or bytes; None if Popen refuses it, too."""
    try:
        return {os.fsencode(name): name for name, _ in environment.items()}
    except (AttributeError, TypeError, ValueError):
        return None


started = StartedProcesses()
