"""Part of this process in a job: its folder from its begin to its end."""

from __future__ import annotations

import os
import shutil
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epprof_nb import _native
from epprof_nb.files.dataset.part_name import PART_NAME, part_name
from epprof_nb.jobs import launcher_environment
from epprof_nb.recording.children.proc_filesystem import boot_id, start_ticks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from epprof_nb.data.profile_data import ProfileData
    from epprof_nb.files.dataset.manifest import Followed, Manifest, State
    from epprof_nb.recording.children.journal import Journal
    from epprof_nb.recording.children.order_to_children import Order
    from epprof_nb.recording.session.session import Session

_MAX_PARTS = 10_000


class ProcessPart:
    """The folder of this process's part, which exists from the start of its recording.

    Parameters
    ----------
    order
        The order of the job.
    followed
        How it reached the process.
    address
        Address of the worker in a Dask cluster.

    Attributes
    ----------
    clock
        The clock in its manifest, to which comparisons with others may be added.
    """

    def __init__(self, order: Order, followed: Followed, address: str | None = None) -> None:
        self.order, self.followed, self._address = order, followed, address
        # A scheduler of a cluster may start each worker of Dask as the rank 0 of a job of its own.
        self._is_rank = followed != "dask"
        self.clock = own_clock()
        self.begin_ns = _native.now_ns()
        self.folder = new_part_folder(
            Path(order.folder), launcher_environment.rank() if self._is_rank else None, os.getpid()
        )

    def write(self, data: ProfileData, *, begin_ns: int, end_ns: int) -> None:
        """Write the profile of the process.

        Parameters
        ----------
        data
            The profile.
        begin_ns, end_ns
            Its begin and end, CLOCK_MONOTONIC nanoseconds.

        Raises
        ------
        OSError
            If it cannot be written.
        """
        from epprof_nb.files.dataset.part import write_part

        write_part(data, self.folder, self._manifest("complete", "", begin_ns, end_ns))

    def write_unrecorded(self, reason: str) -> None:
        """Write that the process was not recorded, and why."""
        manifest = self._manifest("not recorded", reason, self.begin_ns, _native.now_ns())
        _write_manifest(self.folder, manifest)

    def _manifest(self, state: State, reason: str, begin_ns: int, end_ns: int) -> Manifest:
        from epprof_nb.files.dataset.manifest import Manifest

        return Manifest(
            job_id=self.order.job_id, pid=os.getpid(), parent_pid=os.getppid(),
            rank=launcher_environment.rank() if self._is_rank else None,
            local_rank=launcher_environment.local_rank() if self._is_rank else None,
            world_size=launcher_environment.world_size() if self._is_rank else None,
            run_id=launcher_environment.run_id() if self._is_rank else "",
            hostname=socket.gethostname(), address=self._address,
            command=tuple(sys.orig_argv), followed=self.followed, state=state, reason=reason,
            begin_ns=begin_ns, end_ns=end_ns, clock=self.clock,
        )  # fmt: skip

    def journal_of(self, session: Session) -> Journal:
        """Return a journal of a session, from which the part can be made if it is killed."""
        from epprof_nb.recording.children.journal import JOURNAL, Journal

        manifest = self._manifest("complete", "", self.begin_ns, self.begin_ns)
        facts = {
            "manifest": manifest.to_json().decode(), "start_ticks": start_ticks(os.getpid()),
        }  # fmt: skip
        return Journal(self.folder / JOURNAL, session, facts)

    def remove(self) -> None:
        """Remove the folder, if nothing was written to it."""
        with suppress(OSError):
            self.folder.rmdir()


def unrecorded(
    order: Order,
    *,
    pid: int,
    parent_pid: int,
    command: Sequence[str],
    followed: Followed,
    reason: str,
    hostname: str | None = None,
    address: str | None = None,
) -> Manifest:
    """Return the manifest of a process that was not recorded; the parameters are the manifest's.

    Without a `hostname`, it is on this host.
    """
    from epprof_nb.files.dataset.manifest import Manifest

    now = _native.now_ns()
    return Manifest(
        job_id=order.job_id, pid=pid, parent_pid=parent_pid,
        hostname=socket.gethostname() if hostname is None else hostname, address=address,
        command=tuple(command), followed=followed, state="not recorded", reason=reason,
        begin_ns=now, end_ns=now, clock=own_clock(),
    )  # fmt: skip


def write_unrecorded(order: Order, manifest: Manifest) -> None:
    """Write the part of a process that was not recorded, with the manifest of `unrecorded`.

    Raises
    ------
    OSError
        If it cannot be written. Nothing of it is left.
    """
    folder = new_part_folder(Path(order.folder), None, manifest.pid)
    try:
        _write_manifest(folder, manifest)
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _write_manifest(folder: Path, manifest: Manifest) -> None:
    from epprof_nb.data.profile_data import ProfileData
    from epprof_nb.files.dataset.part import write_part

    write_part(ProfileData(), folder, manifest)


def part_folders(folder: Path) -> list[tuple[Path, int]]:
    """Return the folders of the parts in the folder of a job, with their pids; not links."""
    with os.scandir(folder) as entries:
        folders = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    found = ((name, PART_NAME.fullmatch(name)) for name in folders)
    return [(folder / name, int(match[2])) for name, match in found if match]


def new_part_folder(job: Path, rank: int | None, pid: int) -> Path:
    """Make the folder of a part, with a name that no other part of the job has.

    Raises
    ------
    OSError
        If it cannot be made.
    """
    if pid == os.getpid():
        with suppress(OSError):  # the folder of a program that this process ran before
            (job / part_name(rank, pid)).rmdir()
    for number in range(1, _MAX_PARTS):
        path = job / (part_name(rank, pid) + (f"-{number}" if number > 1 else ""))
        with suppress(FileExistsError):
            path.mkdir()
            return path
    raise OSError(f"{job} has {_MAX_PARTS - 1:,} parts of process {pid}; name another folder")


def own_clock() -> dict[str, Any]:
    """Return the clock of this process, for its manifest."""
    namespace = None
    with suppress(OSError):
        namespace = os.readlink("/proc/self/ns/time")  # noqa: PTH115 - it is not a path
    return {"boot_id": boot_id(), "time_namespace": namespace, "error_ns": 0}
