"""On a worker: the processes that it starts, such as the processes of its pools, for one job."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epprof_nb import _native
from epprof_nb.core.errors import ProfileFileError
from epprof_nb.files.atomic_file import replacing
from epprof_nb.files.dataset.manifest import MANIFEST
from epprof_nb.files.dataset.part import read_manifest
from epprof_nb.jobs.killed_processes import complete_killed
from epprof_nb.jobs.process_part import (
    new_part_folder,
    part_folders,
    unrecorded,
    write_unrecorded,
)
from epprof_nb.jobs.running.order_to_listen import order_to_listen
from epprof_nb.recording.children.propagation import is_order_given
from epprof_nb.util.fork_safe_lock import fork_safe_lock

if TYPE_CHECKING:
    from collections.abc import Container

    from epprof_nb.jobs.running.cell_children import CellChildren
    from epprof_nb.recording.children.order_to_children import Order

_OTHERS = ("not Python", "no GPU library", "started before")
"""Reasons of processes that the job need not have, unless a pool of the worker started them."""

_lock = fork_safe_lock()


class PoolProcesses:
    """Recording of the processes that a worker starts, for one job.

    They listen from their start on, and also record the jobs after it. Nothing is recorded if they
    follow another order, such as one of ``epprof run --children``.

    Parameters
    ----------
    order
        The order of the job.
    """

    def __init__(self, order: Order) -> None:
        self._order = order
        self._cell: CellChildren | None = None

    def begin(self) -> None:
        """Let those that listen record, and those that start from now on.

        Raises
        ------
        OSError
            If the private folder of the sockets cannot be made.
        """
        with _lock:
            if not order_to_listen.is_given and is_order_given():
                return
            order_to_listen.give(self._order.job_id)
            self._cell = order_to_listen.children_of_cell(
                self._order.options, job_id=self._order.job_id
            )
        self._cell.begin()

    def send_end(self) -> None:
        """Tell them that the recording has ended, without waiting for them."""
        if self._cell is not None:
            self._cell.send_end(_native.now_ns())

    def collect(self, folder: Path, clock: dict[str, Any], pools: Container[int]) -> list[Path]:
        """Wait for their parts after `send_end`, and return them.

        Parameters
        ----------
        folder
            Folder that gets the parts.
        clock
            What is known of the clock of this host, for their manifests.
        pools
            Processes of the worker's pools. They are listed if they do not record.

        Raises
        ------
        OSError
            If the folder cannot be written.
        """
        cell, self._cell = self._cell, None
        if cell is None:
            return []
        try:
            for one in cell.collect():
                if one.reason in _OTHERS and one.process.pid not in pools:
                    continue
                manifest = unrecorded(
                    cell.cell, pid=one.process.pid, parent_pid=one.process.parent,
                    command=one.process.command, followed="running", reason=one.reason,
                )  # fmt: skip
                write_unrecorded(cell.cell, manifest)
            parts = (part for part, _ in part_folders(Path(cell.cell.folder)))
            return [_copy(part, folder, clock) for part in parts if _is_whole(part)]
        finally:
            self._close(cell)

    def discard(self) -> None:
        """End, and remove what they have recorded."""
        cell, self._cell = self._cell, None
        self._close(cell)

    def _close(self, cell: CellChildren | None) -> None:
        if cell is not None:
            cell.close()
            shutil.rmtree(cell.cell.folder, ignore_errors=True)
        with _lock:
            order_to_listen.withdraw(self._order.job_id)


def _is_whole(part: Path) -> bool:
    try:
        return complete_killed(part) or (part / MANIFEST).exists()
    except ProfileFileError:  # its journal is cut short
        return False


def _copy(part: Path, folder: Path, clock: dict[str, Any]) -> Path:
    """Copy a part, its manifest last; all processes of the worker's host have its clock."""
    manifest = read_manifest(part)
    target = new_part_folder(folder, None, manifest.pid)
    for table in part.glob("*.parquet"):
        shutil.copyfile(table, target / table.name)
    manifest = replace(manifest, rank=None, clock={**manifest.clock, **clock})
    with replacing(target / MANIFEST) as file:
        file.write(manifest.to_json())
    return target
