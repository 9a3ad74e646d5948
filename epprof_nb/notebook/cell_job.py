"""The other processes of a profiled cell, from its begin to the job with their profiles.

Errors never reach the user's code; they are reported in a line on stderr.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from epprof_nb.core.errors import EpprofError
from epprof_nb.notebook.messages import warn
from epprof_nb.util.format import format_error

if TYPE_CHECKING:
    from epprof_nb.jobs.job import Job
    from epprof_nb.notebook.progress_display import Child
    from epprof_nb.profiles import Profile


class Processes(Protocol):
    """Processes that can record a cell.

    Attributes
    ----------
    name
        What they are, in messages.
    """

    name: str

    def begin(self) -> None:
        """Let them record; returns when they do, or when their time is over."""

    def progress(self) -> list[Child]:
        """Return their progress so far; it is not waited for."""

    def send_end(self, ended_ns: int) -> None:
        """Tell them that the cell has ended, without waiting for them."""

    def finish(self, profile: Profile, begin_ns: int, end_ns: int) -> Job:
        """Wait for their parts, and return the job of all processes."""

    def close(self) -> None:
        """End what is left; after an error, discard what they record."""


class CellJob:
    """The recording of other processes for one cell.

    Parameters
    ----------
    processes
        The processes.
    """

    def __init__(self, processes: Processes) -> None:
        self._processes: Processes | None = processes

    def begin(self) -> None:
        """Let the processes record; returns when they do, or when their time is over."""
        processes = self._processes
        if processes is None:
            return
        try:
            processes.begin()
        except Exception as error:  # noqa: BLE001 - the code must run in any case
            warn(f"{processes.name} are not recorded: {_reason(error)}")
            self.close()
        except BaseException:  # Ctrl-C
            self.close()
            raise

    def progress(self) -> list[Child]:
        """Return the progress of the processes so far; it is not waited for."""
        return [] if self._processes is None else self._processes.progress()

    def send_end(self, ended_ns: int) -> None:
        """Tell the processes that the cell has ended at `ended_ns`, without waiting for them."""
        processes = self._processes
        if processes is None:
            return
        try:
            processes.send_end(ended_ns)
        except Exception as error:  # noqa: BLE001 - the profile of this process matters more
            warn(f"{processes.name} could not be reached ({format_error(error)}).")
            self.close()

    def finish(self, profile: Profile, begin_ns: int, end_ns: int) -> Job | None:
        """Wait for the parts of the processes, and return the job of all processes.

        Parameters
        ----------
        profile
            The profile of this process.
        begin_ns, end_ns
            Its begin and end, CLOCK_MONOTONIC nanoseconds.

        Returns
        -------
        job
            The job; None if there is none, which has been reported.
        """
        processes = self._processes
        if processes is None:
            return None
        try:
            return processes.finish(profile, begin_ns, end_ns)
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the code has run
            warn(
                f"the profiles of {processes.name} are lost ({format_error(error)}). The profile "
                "of this process is complete."
            )
            return None
        finally:
            self.close()

    def close(self) -> None:
        """Give up: what the processes record is discarded. Does nothing after `finish`."""
        processes, self._processes = self._processes, None
        if processes is not None:
            processes.close()


def _reason(error: Exception) -> str:
    """Return why the processes are not recorded; own errors say that in sentences."""
    return str(error) if isinstance(error, EpprofError) else f"{format_error(error)}."
