"""Reasons why a Python process that this one has started does not record."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from epprof_nb.recording.children.order_to_children import VARIABLE

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
