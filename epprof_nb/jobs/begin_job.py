"""Launch of a job: the folder that its processes share, and the order for them."""

from __future__ import annotations

import fcntl
import os
import secrets
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from epprof_nb.core.errors import EpprofError, ProfileFileError
from epprof_nb.data.schema import TABLES
from epprof_nb.files.dataset.manifest import MANIFEST
from epprof_nb.files.dataset.part_name import part_name
from epprof_nb.jobs import launcher_environment
from epprof_nb.jobs.process_part import ProcessPart, part_folders
from epprof_nb.recording.children.journal import BEGUN, JOURNAL
from epprof_nb.recording.children.order_to_children import ORDER_FILE, Order
from epprof_nb.recording.children.proc_filesystem import (
    boot_id,
    has_variable,
    parent_of,
    start_ticks,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epprof_nb.core.options import Options

_FILES = (
    *(f"{table.name}.parquet" for table in TABLES), BEGUN, JOURNAL, MANIFEST, ".epprof-*.part",
)  # fmt: skip
_LINGER_S = 60.0
_SLACK_S = 2.0
"""Allowed difference between the clocks of the machine and of its file system."""


class FolderInUseError(EpprofError):
    """The folder of a job belongs to another job, which still runs."""


def begin_job(folder: Path, options: Options) -> tuple[Order, ProcessPart]:
    """Begin a job in a folder, or join the one that another rank of the same launch has begun.

    Parameters
    ----------
    folder
        Folder of the job; it is created. A job of an earlier launch in it is replaced.
    options
        What to record. Ranks that join record what the first one does.

    Returns
    -------
    order, part
        The order of the job, and the part of this process.

    Raises
    ------
    FolderInUseError
        If a process of another job still records into the folder.
    OSError
        If the folder cannot be written.
    """
    folder.mkdir(exist_ok=True)
    launch, creator = _launch()
    with _locked(folder):
        order = _order_in(folder)
        if order is None or not _is_of(order, launch, folder) or _is_over(folder):
            _remove_parts(folder, order, launch)
            order = Order(
                job_id=secrets.token_hex(8), folder=os.fspath(folder.resolve()), options=options,
                launch=launch, creator_pid=creator, creator_start=start_ticks(creator),
            )  # fmt: skip
            order.write(folder / ORDER_FILE)
        return order, ProcessPart(order, "run")


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _launch() -> tuple[str, int]:
    """Return the identity of the launch of this process, and the process that launched it.

    The launcher of a rank is its first ancestor that is not a rank: there may be shells between.
    A process without a rank is its own launcher.
    """
    pid = os.getpid()
    variable = launcher_environment.variable()
    if variable is not None and launcher_environment.rank() is not None:
        pid = os.getppid()
        while pid > 1 and has_variable(pid, variable):
            pid = parent_of(pid)
    stated = [os.environ.get(name, "") for name in launcher_environment.RUN_VARIABLES]
    return " ".join([boot_id() or "unknown", str(pid), str(start_ticks(pid)), *stated]), pid


def is_over(order: Order) -> bool:
    """Whether a job has ended: the process that began it has, and no other records any more.

    What it has started may start another process afterwards, for a minute.
    """
    if order.launch.split(" ")[0] != boot_id() or not order.creator_ended:
        return False
    folder = Path(order.folder)
    parts = part_folders(folder)
    newest = max(path.stat().st_mtime for path in (folder, *(part for part, _ in parts)))
    return newest < time.time() - _LINGER_S and not any(
        not (part / MANIFEST).exists() and _records(part, pid) for part, pid in parts
    )


def _order_in(folder: Path) -> Order | None:
    with suppress(OSError, ValueError):
        return Order.read(folder / ORDER_FILE)
    return None


def _is_of(order: Order, launch: str, folder: Path) -> bool:
    """Whether a job belongs to a launch, or lacks this rank, which another shell has started."""
    if order.launch == launch:
        return True
    rank, world = launcher_environment.rank(), launcher_environment.world_size()
    is_alike = _stated(order.launch) == _stated(launch) and order.folder == str(folder.resolve())
    if rank is None or world is None or not is_alike:
        return False
    from epprof_nb.files.dataset.part import read_manifest

    parts = [path for path, _ in part_folders(folder)]
    try:
        manifests = [read_manifest(path) for path in parts if (path / MANIFEST).exists()]
    except ProfileFileError:
        return False
    is_there = any(path.name.startswith(part_name(rank, 0)[:-1]) for path in parts)
    return not is_there and {m.world_size for m in manifests} - {None} == {world}


def _stated(launch: str) -> list[str]:
    """Return the machine and the names of a launch, without the process that launched it."""
    words = launch.split(" ")
    return words[:1] + words[3:]


def _is_over(folder: Path) -> bool:
    """Whether a part of this rank is complete: the launcher has started its ranks again."""
    rank = launcher_environment.rank()
    names = {} if rank is None else {part_name(rank, pid) for _, pid in part_folders(folder)}
    return any((folder / name / MANIFEST).exists() for name in names)


def _records(part: Path, pid: int) -> bool:
    """Whether the process of an unfinished part runs, rather than a later one with its pid.

    Containers use the same few pids each time they start.
    """
    started = start_ticks(pid)
    if not started or pid == os.getpid():
        return False
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - started / os.sysconf("SC_CLK_TCK")
    return age > time.time() - part.stat().st_mtime - _SLACK_S


def _remove_parts(folder: Path, order: Order | None, launch: str) -> None:
    """Remove the parts of an earlier job.

    Raises
    ------
    FolderInUseError
        If one of its processes still records.
    """
    parts = part_folders(folder)
    elsewhere = order is not None and order.launch.split(" ")[0] != launch.split(" ", maxsplit=1)[0]
    for path, pid in parts:
        if not (path / MANIFEST).exists() and (elsewhere or _records(path, pid)):
            raise FolderInUseError(
                f"{folder} is in use: process {pid}"
                f"{' of another machine' if elsewhere else ''} records {path.name} there. Wait "
                "until it has ended, or name another folder."
                + (f" If it has ended, remove {path}." if elsewhere else "")
            )
    for path, _ in parts:
        for pattern in _FILES:
            for file in path.glob(pattern):
                file.unlink(missing_ok=True)
        with suppress(OSError):  # it has files of others
            path.rmdir()
