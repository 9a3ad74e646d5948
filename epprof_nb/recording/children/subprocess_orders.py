"""Orders to processes that `subprocess` starts, even with a given environment; their pids."""

from __future__ import annotations

import functools
import os
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from epprof_nb.recording.children.order_to_children import MEASURING, VARIABLE
from epprof_nb.recording.children.processes import command_of, program_of
from epprof_nb.util.after_import import after_import, cancel

_PYTHON = re.compile(r"python[\d.]*t?(?: \(deleted\))?")
_ENVIRONMENT = 10
"""Position of `env` among the arguments of `subprocess.Popen`."""
_HELPERS = re.compile(r"from \S*(?:resource_tracker|forkserver|semaphore_tracker) import main")
_VALUED = frozenset("cmWX")
"""Options of Python that are followed by a value."""


@dataclass(frozen=True, slots=True)
class Started:
    """A Python process that this one has started.

    Attributes
    ----------
    pid
        The process.
    command
        Its command line.
    program
        Path of its interpreter, without links.
    refused
        Whether its environment was given with an empty order.
    """

    pid: int
    command: tuple[str, ...]
    program: str
    refused: bool

    @property
    def why_unrecorded(self) -> str:
        """The reason why the process did not obey, if it did not."""
        return self.why_no_order or "it ended before it could begin, or replaced its startup files"

    @property
    def why_no_order(self) -> str | None:
        """The reason why the order did not reach the process; None if it should have."""
        if self.refused:
            return f"{VARIABLE} was empty in its environment, which turns the recording off"
        if "S" in _flags(self.command):
            return "it was started with -S, which skips the startup files of packages"
        if not _is_this_environment(self.command[0], self.program):
            return (
                f"its interpreter, {self.command[0]}, lacks this version of epprof_nb; install it "
                f"there: {self.command[0]} -m pip install epprof-nb"
            )
        return None


def is_helper(command: list[str]) -> bool:
    """Whether a command line starts a helper of `multiprocessing`, which runs no user code."""
    return any(_HELPERS.match(part) for part in command[:8])


def _flags(command: tuple[str, ...]) -> str:
    """Return the letters of the options of Python in a command line."""
    letters = ""
    words = iter(command[1:])
    for word in words:
        if not word.startswith("-") or word == "-":
            break
        if word.startswith("--"):
            continue
        for at, letter in enumerate(word[1:], 1):
            letters += letter
            if letter in _VALUED:
                if at == len(word) - 1:
                    next(words, None)
                break
        if letters[-1:] in ("c", "m"):
            break
    return letters


def _is_this_environment(argument: str, program: str) -> bool:
    if os.path.realpath(sys.executable) != program:
        return False
    # Environments share an interpreter; the path of the command says which environment it is.
    return "/" not in argument or Path(argument).parent == Path(sys.executable).parent


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
