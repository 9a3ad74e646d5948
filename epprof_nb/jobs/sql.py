"""SQL over the files of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from epprof_nb.analysis.base.result_table import ResultTable
from epprof_nb.analysis.sql.over_files import select_from_files
from epprof_nb.data.arrow import names_to_arrow
from epprof_nb.jobs.ranks_table import stated_columns

if TYPE_CHECKING:
    import pandas as pd

    from epprof_nb.jobs.files_of_job import Files
    from epprof_nb.jobs.job_data import JobData

_TYPES = {"rank": pa.int32(), "launched": pa.bool_()}


def job_sql(
    job: JobData, files: Files, query: str, *, time_limit_s: float, max_bytes: int
) -> pd.DataFrame:
    """Return the result of a query over a job; see `Job.sql`."""
    return select_from_files(
        files, {"ranks": _ranks(job)}, query, time_limit_s=time_limit_s, max_bytes=max_bytes
    )


def _ranks(job: JobData) -> pa.Table:
    """Return the processes as `Job.sql` describes them, without a pass over their events."""
    stated, placed = ResultTable(stated_columns(job)), job.placements
    numbers = stated.values("rank")
    lengths = [job.wall_ns(n) if n in job and n not in job.damage else None for n in numbers]
    offsets = [placed[n].offset_ns if n in placed else None for n in numbers]
    return pa.table({
        **{name: _array(stated, name) for name in stated.columns},
        "wall_ns": pa.array(lengths, pa.int64()),
        "offset_ns": pa.array(offsets, pa.int64()),
    })  # fmt: skip


def _array(table: ResultTable, name: str) -> pa.Array:
    if table.is_text(name):
        return names_to_arrow(table.names(name)).cast(pa.string())
    return pa.array(table.values(name), _TYPES.get(name, pa.int64()))
