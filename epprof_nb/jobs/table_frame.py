"""Tables of a job as DataFrames that say what the job lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from epprof_nb.data.empty_tables import explained
from epprof_nb.profiles import Profile

if TYPE_CHECKING:
    from collections.abc import Collection

    import pandas as pd

    from epprof_nb.analysis.base.result_table import ResultTable
    from epprof_nb.jobs.job_data import JobData


def table_frame(
    job: JobData, name: str, table: ResultTable, more_notes: Collection[str] = ()
) -> pd.DataFrame:
    """Return a table as a frame that says below its rows what the job lacks."""
    frame = table.to_frame()
    notes = [*more_notes, *job.incomplete_notes()]
    if not notes and len(frame):
        return frame
    if not notes:
        return explained(Profile(), name, frame)
    return noted(frame, notes)


def noted(frame: pd.DataFrame, notes: Collection[str]) -> pd.DataFrame:
    """Return a frame with notes below its rows."""
    if not notes:
        return frame
    from epprof_nb.data.noted_frame import NotedFrame

    return _with_note(NotedFrame(frame), notes)


def findings_frame(job: JobData, table: ResultTable) -> pd.DataFrame:
    """Return findings as a frame that shows them as sentences, and what the job lacks."""
    from epprof_nb.analysis.findings.findings_frame import (
        OWN_CELL,
        FindingsFrame,
        NotedFindingsFrame,
    )

    frame, notes = table.to_frame(), job.incomplete_notes()
    if len(frame["cell"].dropna().unique()) > 1:
        frame.attrs[OWN_CELL] = ""  # each is named
    if not len(table):
        notes = ["Nothing was found that can save 2 % of the wall time.", *notes]
    return _with_note(NotedFindingsFrame(frame), notes) if notes else FindingsFrame(frame)


def _with_note(frame: pd.DataFrame, notes: Collection[str]) -> pd.DataFrame:
    from epprof_nb.data.noted_frame import NOTE

    frame.attrs[NOTE] = " ".join(notes)
    return frame
