"""Descendants of a process, and why one of them cannot be recorded, from ``/proc``."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path, PurePath

from epprof_nb.recording.children.order_to_children import MEASURING
from epprof_nb.recording.children.proc_filesystem import (
    children_of,
    command_of,
    has_variable,
    parent_of,
    program_of,
    start_ticks,
)
from epprof_nb.recording.children.why_unrecorded import is_helper

NO_LIBRARY = "no GPU library"
_TICKS_S = os.sysconf("SC_CLK_TCK")
_DRIVERS = ("/libcuda.so", "/libtorch_cuda", "/libonnxruntime_providers_cuda", "/libcudart")


@dataclass(frozen=True, slots=True)
class RunningProcess:
    """A process of the system.

    Attributes
    ----------
    pid, parent
        Its process id and its parent's.
    started_s
        Its start in seconds since the machine started, rounded down to 10 ms.
    command
        Its arguments.
    """

    pid: int
    parent: int
    started_s: float
    command: tuple[str, ...]


def read_process(pid: int) -> RunningProcess | None:
    """Return a process; None if it has ended."""
    parent, ticks, command = parent_of(pid), start_ticks(pid), command_of(pid)
    # A process that only waits for its parent to read its exit code has no command.
    if not ticks or not command:
        return None
    return RunningProcess(pid, parent, ticks / _TICKS_S, tuple(command))


def seconds_since_start() -> float:
    """Return the time now, on the clock of `RunningProcess.started_s`."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def descendants(pid: int) -> list[RunningProcess]:
    """Return the children of a process, their children and so on, in the order of their ids.

    Processes whose parent has ended belong to another process then; they are not found. Helpers of
    `multiprocessing` and processes that measure in the background are left out, as they run no code
    of the program.
    """
    found = {
        each: process
        for each in sorted(_family(pid) - {pid})
        if not has_variable(each, MEASURING) and (process := read_process(each))
    }
    return [p for p in found.values() if not _is_helper(p, found.get(p.parent))]


def _family(pid: int) -> set[int]:
    """Return a process and its descendants.

    A server has thousands of processes, which take 80 us each to read.
    """
    family, left = {pid}, [pid]
    while left:
        born = children_of(left.pop())
        if born is None:
            return _family_of_all(pid)
        left += born - family
        family |= born
    return family


def _family_of_all(pid: int) -> set[int]:
    parents = {int(path.name): parent_of(int(path.name)) for path in Path("/proc").glob("[0-9]*")}
    family = {pid}
    while born := {child for child, parent in parents.items() if parent in family} - family:
        family |= born
    return family


def _is_helper(process: RunningProcess, parent: RunningProcess | None) -> bool:
    # What the server of the start method forkserver forks has the command line of the server.
    forked = parent is not None and parent.command == process.command
    return not forked and is_helper(list(process.command))


def why_silent(process: RunningProcess, *, since_s: float) -> str:
    """Return why a process that runs does not listen.

    Parameters
    ----------
    process
        The process.
    since_s
        When children got the order to listen.
    """
    pid = process.pid
    libraries = _mapped(pid)
    program = PurePath(program_of(pid) or "").name
    if not program.startswith("python") and not any("/libpython" in name for name in libraries):
        return "not Python"
    if process.started_s < since_s:
        return "started before"
    if any(driver in name for name in libraries for driver in _DRIVERS):
        return (
            "uses a GPU, but does not listen: its Python lacks this version of epprof_nb, or was "
            "started with -S or without the environment of its parent"
        )
    return NO_LIBRARY


def _mapped(pid: int) -> set[str]:
    """Return the files that a process has in its memory."""
    try:
        lines = Path(f"/proc/{pid}/maps").read_text(errors="replace").splitlines()
    except OSError:
        return set()
    return {line[line.index("/") :] for line in lines if "/" in line}
