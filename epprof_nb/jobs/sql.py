"""SQL over the files of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from epprof_nb.analysis.sql.over_files import select_from_files

if TYPE_CHECKING:
    import pandas as pd

    from epprof_nb.jobs.files_of_job import Files
    from epprof_nb.jobs.job_data import JobData


def job_sql(
    job: JobData, files: Files, query: str, *, time_limit_s: float, max_bytes: int
) -> pd.DataFrame:
    """Return the result of a query over a job; see `Job.sql`."""
    return select_from_files(
        files, {"ranks": _ranks(job)}, query, time_limit_s=time_limit_s, max_bytes=max_bytes
    )


def _ranks(job: JobData) -> pa.Table:
    """Return the processes as `Job.sql` describes them, without reading any part."""
    placed = job.placements
    readable = {number for number in job if number not in job.damage}
    rows = [
        {
            "rank": process.number,
            "launched": process.launched,
            "hostname": process.manifest.hostname if process.manifest else None,
            "pid": process.pid,
            "state": "damaged" if process.number in job.damage else process.state,
            "wall_ns": job.wall_ns(process.number) if process.number in readable else None,
            "offset_ns": placed[process.number].offset_ns if process.number in placed else None,
            "clock_error_ns": placed[process.number].error_ns if process.number in placed else None,
        }
        for process in job.processes
    ]
    schema = pa.schema(
        {
            "rank": pa.int32(), "launched": pa.bool_(), "hostname": pa.string(),
            "pid": pa.int64(), "state": pa.string(), "wall_ns": pa.int64(),
            "offset_ns": pa.int64(), "clock_error_ns": pa.int64(),
        }
    )  # fmt: skip
    return pa.Table.from_pylist(rows, schema)
