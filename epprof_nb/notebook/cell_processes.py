"""The processes that record a cell besides the notebook's own: its children, or a cluster."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError

from epprof_nb.core.errors import ProfileFileError
from epprof_nb.data.profile_data import ProfileData
from epprof_nb.data.profiles_without_gpu import OF_JOB
from epprof_nb.jobs.job import Job
from epprof_nb.jobs.loading import load_job
from epprof_nb.jobs.process_part import ProcessPart, unrecorded, write_unrecorded
from epprof_nb.notebook.progress_display import Child

if TYPE_CHECKING:
    from collections.abc import Mapping

    from epprof_nb.core.options import Options
    from epprof_nb.jobs.running.cell_children import CellChildren
    from epprof_nb.profiles import Profile


class ChildProcesses:
    """The child processes of the notebook; see `epprof_nb.notebook.cell_job.Processes`.

    Parameters
    ----------
    options
        Options of the cell; the children record with the same.
    """

    name = "child processes"

    def __init__(self, options: Options) -> None:
        self._options = options
        self._holder = f"cell {id(self)}"  # profiled cells can be nested
        self._children: CellChildren | None = None

    def begin(self) -> None:
        """Let the children record; returns when they do, or when their time is over."""
        from epprof_nb.jobs.running.order_to_listen import order_to_listen

        order_to_listen.give(self._holder)
        self._children = order_to_listen.children_of_cell(self._options)
        self._children.begin()

    def progress(self) -> list[Child]:
        """Return the progress of the children so far; it is not waited for."""
        children = self._children
        return [] if children is None else [Child(*one) for one in children.progress().items()]

    def send_end(self, ended_ns: int) -> None:
        """Tell the children that the cell has ended at `ended_ns`, without waiting for them."""
        if self._children is not None:
            self._children.send_end(ended_ns)

    def finish(self, profile: Profile, begin_ns: int, end_ns: int) -> Job:
        """Wait for the children's parts, and return the job of all processes, in memory."""
        children = self._children
        assert children is not None  # noqa: S101 - it was begun
        for one in children.collect():
            manifest = unrecorded(
                children.cell,
                pid=one.process.pid,
                parent_pid=one.process.parent,
                command=one.process.command,
                followed="running",
                reason=one.reason,
            )
            write_unrecorded(children.cell, manifest)
        profile.info[OF_JOB] = True
        own = ProfileData({}, profile.info, profile.sources)  # the tables are here
        ProcessPart(children.cell, "cell").write(own, begin_ns=begin_ns, end_ns=end_ns)
        return _in_memory(load_job(Path(children.cell.folder)), profile)

    def close(self) -> None:
        """Remove the parts, and let children start as before the cell."""
        children, self._children = self._children, None
        if children is not None:
            children.close()
            shutil.rmtree(children.cell.folder, ignore_errors=True)
        from epprof_nb.jobs.running.order_to_listen import order_to_listen

        order_to_listen.withdraw(self._holder)


def _in_memory(stored: Job, profile: Profile) -> Job:
    """Return a job that needs no files; `profile` has the records of this process."""
    profiles: dict[int, Profile] = {}
    processes = []
    for process in stored.processes:
        entry = process
        if process.manifest is not None and process.manifest.followed == "cell":
            profiles[process.number] = profile
        elif process.has_profile:
            try:
                profiles[process.number] = stored[process.number]
            except ProfileFileError as error:
                entry = replace(process, manifest=None, state="damaged", reason=str(error))
        processes.append(replace(entry, part=None))
    return Job(profiles, processes=processes, notes=stored.notes)


class ClusterWorkers:
    """The workers of a Dask cluster; see `epprof_nb.notebook.cell_job.Processes`.

    Parameters
    ----------
    name
        Name of the variable with the client.
    variables
        The variables of the notebook.
    options
        Options of the cell; the workers record with the same.

    Raises
    ------
    UsageError
        If the variable is not a client of Dask.
    """

    name = "the workers of the cluster"

    def __init__(self, name: str, variables: Mapping[str, Any], options: Options) -> None:
        from epprof_nb.jobs.dask.recording import ClusterRecording

        if name not in variables:
            raise UsageError(
                f"--cluster needs the variable of a Dask client, and {name} is not defined. The "
                "cell did not run. Define it before the cell: client = "
                "distributed.Client(address)."
            )
        try:
            self._recording = ClusterRecording(variables[name], options)
        except TypeError as error:
            raise UsageError(f"--cluster {name}: {error}. The cell did not run.") from None

    def begin(self) -> None:
        """Let the workers record; returns when they do, or when their time is over."""
        self._recording.begin()

    def progress(self) -> list[Child]:
        """Return nothing: the progress of workers is not shown."""
        return []

    def send_end(self, ended_ns: int) -> None:
        """Tell the workers that the cell has ended at `ended_ns`, without waiting for them."""
        self._recording.send_end(ended_ns)

    def finish(self, profile: Profile, begin_ns: int, end_ns: int) -> Job:
        """Wait for the parts of the workers, and return the job of all processes."""
        return self._recording.finish(profile, begin_ns, end_ns)

    def close(self) -> None:
        """Discard what the workers record, if they do."""
        self._recording.close()
