"""Tables over the processes of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from epprof_nb.analysis.sql.limits import MAX_BYTES, TIME_LIMIT_S
from epprof_nb.data.result_columns import with_columns
from epprof_nb.jobs.by_device import by_device_table
from epprof_nb.jobs.by_rank import by_rank_table
from epprof_nb.jobs.by_task import by_task_table
from epprof_nb.jobs.job_data import JobData
from epprof_nb.jobs.job_findings import findings_of_job, findings_table_of
from epprof_nb.jobs.ranks_table import ranks_table
from epprof_nb.jobs.table_frame import findings_frame, noted, table_frame

if TYPE_CHECKING:
    import pandas as pd


class JobTables(JobData):
    """The processes of a job, their work in tables, and SQL over their records."""

    @property
    @with_columns("job_ranks")
    def ranks(self) -> pd.DataFrame:
        """Processes of the job, including those without a profile.

        {columns}
        """
        return table_frame(self, "job_ranks", ranks_table(self))

    @with_columns("job_by_rank")
    def by_rank(self) -> pd.DataFrame:
        """Device work, busy and idle time of each process.

        Returns
        -------
        frame
            {columns}

        Examples
        --------
        >>> from epprof_nb import Job
        >>> from epprof_nb.testing import synthetic_profile
        >>> job = Job({rank: synthetic_profile(activities=100 + rank) for rank in range(2)})
        >>> job.by_rank().loc[1, ["kernels", "memcpys"]].tolist()
        [98, 2]
        """
        return table_frame(self, "job_by_rank", by_rank_table(self))

    @with_columns("job_by_op")
    def by_op(self) -> pd.DataFrame:
        """Device and host time of each op over all processes, and how it differs among them.

        Returns
        -------
        frame
            {columns}

            Parts are read one after the other, and their activities piece by piece: memory is
            needed for the ops of one of them.

        Examples
        --------
        >>> from epprof_nb import Job
        >>> from epprof_nb.testing import synthetic_profile
        >>> job = Job({rank: synthetic_profile(activities=100) for rank in range(2)})
        >>> job.by_op()[["name", "ranks", "kernels"]].head(1)
            name  ranks  kernels
        0  In[3]      2      194
        """
        return table_frame(self, "job_by_op", self.ops_table)

    @with_columns("job_by_task")
    def by_task(self) -> pd.DataFrame:
        """Tasks of Dask by the prefix of their key, over all processes.

        Returns
        -------
        frame
            {columns}

        Examples
        --------
        >>> from epprof_nb import Job
        >>> from epprof_nb.testing import synthetic_profile
        >>> job = Job({rank: synthetic_profile(activities=100) for rank in range(2)})
        >>> job.by_task()[["task", "ranks", "kernels"]]
                task  ranks  kernels
        0  (no task)      2      194
        """
        table = by_task_table(self)
        notes = [] if len(table) else ["No task of Dask was recorded, and no device work."]
        return table_frame(self, "job_by_task", table, notes)

    @with_columns("job_by_device")
    def by_device(self) -> pd.DataFrame:
        """Device work, busy and idle time of each device that a process used.

        Two processes that use the same GPU have a row each.

        Returns
        -------
        frame
            {columns}

        Examples
        --------
        >>> from epprof_nb import Job
        >>> from epprof_nb.testing import synthetic_profile
        >>> job = Job({rank: synthetic_profile(activities=100) for rank in range(2)})
        >>> job.by_device()[["rank", "device", "kernels"]]
           rank device  kernels
        0     0  GPU 0       97
        1     1  GPU 0       97
        """
        return table_frame(self, "job_by_device", by_device_table(self))

    @with_columns("job_insights")
    def insights(self) -> pd.DataFrame:
        """Findings on what to change first, over all processes.

        Returns
        -------
        frame
            {columns}

            A finding that several processes have is one row, with the sentence and the gain of the
            process that it can save most. One process after the other is read as a whole. The frame
            is displayed as sentences, like the frame of `Profile.insights`.

        Examples
        --------
        >>> from epprof_nb import Job
        >>> from epprof_nb.testing import synthetic_profile
        >>> job = Job({rank: synthetic_profile(activities=100) for rank in range(2)})
        >>> job.insights()[["rank", "ranks", "kind", "line"]]
           rank  ranks      kind  line
        0     0      2      idle     1
        1     0      2  hot line    10
        >>> row = job.insights().iloc[0]
        >>> len(job[row["rank"]].evidence(row["finding"]))
        1
        """
        return findings_frame(self, findings_table_of(self, findings_of_job(self)))

    def sql(
        self, query: str, *, time_limit_s: float = TIME_LIMIT_S, max_bytes: int = MAX_BYTES
    ) -> pd.DataFrame:
        """Result of a SQL query over the tables of all processes, by DuckDB.

        The files of the parts are read, not the profiles: they may be larger than memory. The
        first query checks them, and again if they changed. Damaged parts are left out: a note
        names them, and `ranks` says why.

        Parameters
        ----------
        query
            One SELECT statement in DuckDB's dialect. It reads the tables that the parts have
            (``ops``, ``activities``, ``api_calls`` and so on, without derived columns) with a
            column ``rank``, the number of the process; ``device_work``, the activities that keep
            a device busy; and ``ranks``, the columns of `ranks` that need no events, with
            ``wall_ns`` and ``offset_ns`` (what to add to the times of the process for the clock of
            the job).
        time_limit_s
            Time after which the call raises TimeoutError, seconds, without the check of files.
        max_bytes
            Maximum memory of the query and of its result, bytes each. Sorts and groups that need
            more use a temporary folder.

        Returns
        -------
        frame
            The rows, as `Profile.sql` returns them.

        Raises
        ------
        ImportError
            If DuckDB is not installed: ``pip install epprof-nb[sql]``.
        ValueError
            If the query fails or is not one SELECT statement. Queries cannot change the job, and
            read no files except the job's.
        ProfileFileError
            If all parts of the job are damaged.
        TimeoutError, MemoryError
            If a limit is exceeded; see `Profile.sql`.

        Examples
        --------
        >>> from epprof_nb import Job
        >>> from epprof_nb.testing import synthetic_profile
        >>> job = Job({rank: synthetic_profile(activities=100) for rank in range(2)})
        >>> job.sql("select rank, count(*) n from activities group by rank order by rank")
           rank    n
        0     0  100
        1     1  100
        """
        from epprof_nb.jobs.files_of_job import files_of
        from epprof_nb.jobs.sql import job_sql

        with files_of(self) as parts:
            frame = job_sql(self, parts, query, time_limit_s=time_limit_s, max_bytes=max_bytes)
        return noted(frame, self.incomplete_notes())
