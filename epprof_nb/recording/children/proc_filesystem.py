"""Facts about processes from ``/proc``."""

from __future__ import annotations

import os
from pathlib import Path

_PROC = Path("/proc")


def boot_id() -> str | None:
    """Return the id of the machine's start, until it starts again; None if unknown."""
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return None


def namespaces() -> str:
    """Return the namespaces of the pids and start times that this process sees; empty if unknown.

    Containers that share a folder may see one process under two pids, or with two start times.
    """
    try:
        pids = os.readlink(_PROC / "self/ns/pid")  # noqa: PTH115 - it is not a path
    except OSError:
        return ""
    try:
        return f"{pids} {os.readlink(_PROC / 'self/ns/time')}"  # noqa: PTH115 - it is not a path
    except OSError:  # before Linux 5.6
        return pids


def start_ticks(pid: int) -> int:
    """Return when a process started, in clock ticks since the machine started; 0 if unknown.

    With the pid it identifies a process, because the system uses a pid again.
    """
    found = _after_name(pid)
    return int(found[19]) if len(found) > 19 else 0


def parent_of(pid: int) -> int:
    """Return the parent of a process; 0 if unknown."""
    found = _after_name(pid)
    return int(found[1]) if len(found) > 1 else 0


def children_of(pid: int) -> set[int] | None:
    """Return the children of a process, also ended ones; None if the system does not list them.

    A child may be missing if another one ends at that very moment.
    """
    found: set[int] = set()
    try:
        threads = [*(_PROC / str(pid) / "task").iterdir()]
    except OSError:
        return found  # it has ended
    for thread in threads:
        try:
            text = (thread / "children").read_text(encoding="ascii")
        except FileNotFoundError:
            if thread.exists():
                return None  # Linux without CONFIG_PROC_CHILDREN
        except OSError:  # the thread has ended
            continue
        else:
            found.update(map(int, text.split()))
    return found


def _after_name(pid: int) -> list[str]:
    """Return the fields of ``/proc/PID/stat`` after the name, which may have any character."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return []
    return text.rpartition(")")[2].split()


def has_variable(pid: int, name: str) -> bool:
    """Whether a process was started with an environment variable; False if that is unknown."""
    try:
        environment = (_PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return False
    return any(entry.startswith(os.fsencode(f"{name}=")) for entry in environment.split(b"\0"))


def command_of(pid: int) -> list[str]:
    """Return the command line of a process; empty if it is unknown or the process has ended."""
    try:
        text = (_PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return []
    return [os.fsdecode(part) for part in text.split(b"\0")[:-1]]


def program_of(pid: int) -> str | None:
    """Return the path of the program that a process runs; None if it is unknown."""
    try:
        return os.readlink(_PROC / str(pid) / "exe")  # noqa: PTH115 - the text, with " (deleted)"
    except OSError:
        return None
