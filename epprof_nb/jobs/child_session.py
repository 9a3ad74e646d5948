"""Session of a child process of a job: it ends with a part."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from epprof_nb import _native
from epprof_nb.core.errors import CaptureError

if TYPE_CHECKING:
    from pathlib import Path

    from epprof_nb.data.profile_data import ProfileData
    from epprof_nb.files.dataset.manifest import Followed
    from epprof_nb.jobs.process_part import ProcessPart
    from epprof_nb.recording.children.journal import Journal
    from epprof_nb.recording.children.order_to_children import Order
    from epprof_nb.recording.session.running_totals import Progress
    from epprof_nb.recording.session.session import Session
    from epprof_nb.recording.session.session_progress import SessionProgress


class ChildSession:
    """A session of this process that ends with a part of a job.

    Parameters
    ----------
    order
        The order of the job.
    followed
        How it reached the process.
    part
        The part, if its folder exists.
    address
        Address of the worker in a Dask cluster.
    """

    def __init__(
        self,
        order: Order,
        followed: Followed,
        *,
        part: ProcessPart | None = None,
        address: str | None = None,
    ) -> None:
        self.order, self.followed = order, followed
        self._address = address
        self.part = part
        self._session: Session | None = None
        self._journal: Journal | None = None
        self._data: ProfileData | None = None
        self._times = (0, 0)
        self._progress: SessionProgress | None = None

    def begin(
        self, *, cell: str | None = None, source: str | None = None, script: str | None = None
    ) -> Session:
        """Make the folder of the part, if it does not exist yet, and start to record.

        `cell`, `source` and `script` come from the session.

        Raises
        ------
        OSError
            If the folder cannot be made.
        CaptureError
            If the recording cannot start.
        """
        from epprof_nb.jobs.process_part import ProcessPart
        from epprof_nb.recording.session import session

        if self.part is None:
            self.part = ProcessPart(self.order, self.followed, self._address)
        self._session = session.start(self.order.options, cell=cell, source=source, script=script)
        self._journal = self.part.journal_of(self._session)
        self._journal.start()
        return self._session

    def begin_code(self) -> None:
        """Begin again, right before the profiled code. What was recorded until now is discarded.

        The recorders run on, so that this takes little time. It does nothing without a recording.

        Raises
        ------
        CaptureError
            If the recording cannot start; a running one goes on.
        """
        earlier, journal = self._session, self._journal
        if earlier is None or journal is None:
            return
        journal.end()
        journal.remove()
        self.begin()
        earlier.abort()

    def progress(self) -> Progress | None:
        """Return the progress of the recording; None if there is none."""
        from epprof_nb.recording.session.session_progress import SessionProgress

        if self._session is None:
            return None
        if self._progress is None:
            self._progress = SessionProgress(self._session)
        return self._progress.latest()

    def stop(self, *, error: str | None = None, ended_ns: int | None = None) -> ProfileData | None:
        """End the recording, with the name of the exception that ended the code; return its data.

        `ended_ns` is when the code ended, if that is not now; see `Session.stop`.
        None if it was not begun.
        """
        opened, self._session = self._session, None
        if opened is None:
            return self._data
        self._end_journal()
        try:
            self._data = opened.stop(error=error, ended_ns=ended_ns)
        except BaseException:
            opened.abort()
            raise
        self._times = opened.opened_ns, _native.now_ns()
        return self._data

    def finish(self) -> Path:
        """End the recording, write the part and return its folder.

        Raises
        ------
        CaptureError
            If it was not begun.
        OSError
            If the part cannot be written.
        """
        self.stop()
        return self.write_part("")

    def write_part(self, why_unrecorded: str) -> Path:
        """Write the part after `stop`, or the reason why there is no recording; return its folder.

        Raises
        ------
        CaptureError
            If no part was begun.
        OSError
            If it cannot be written. The part then says so, if the disk has space for that and there
            is not a journal, from which the part can be made later.
        """
        if self.part is None:
            raise CaptureError("This part has no data: its recording was not begun. Call begin().")
        if self._data is None:
            self.part.write_unrecorded(why_unrecorded)
        else:
            begin, end = self._times
            try:
                self.part.write(self._data, begin_ns=begin, end_ns=end)
            except OSError as error:
                if self._journal is None or not self._journal.is_written:
                    with suppress(OSError):
                        self.part.write_unrecorded(f"its part could not be written: {error}")
                        if self._journal is not None:
                            self._journal.remove()
                raise
        if self._journal is not None:
            self._journal.remove()
        return self.part.folder

    def abort(self) -> None:
        """End the recording and discard it."""
        opened, self._session = self._session, None
        if opened is not None:
            self._end_journal()
            opened.abort()
        if self._journal is not None:
            self._journal.remove()
        if self.part is not None:
            self.part.remove()

    @property
    def is_in_journal(self) -> bool:
        """Whether a part of the recording is in the journal: it is some seconds long."""
        return self._journal is not None and self._journal.is_written

    def _end_journal(self) -> None:
        if self._journal is not None:
            self._journal.end()
