"""Collectives and stragglers of a job as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from epprof_nb.analysis.ranks.collectives import collectives_table
from epprof_nb.analysis.ranks.straggler_reasons import stragglers_table
from epprof_nb.data.result_columns import with_columns
from epprof_nb.jobs.job_data import JobData
from epprof_nb.jobs.ranks_of_job import notes_on_collectives, sentence_on_stragglers
from epprof_nb.jobs.table_frame import table_frame

if TYPE_CHECKING:
    import pandas as pd


class JobCollectives(JobData):
    """Methods of a job on collectives, and on the ranks that arrive late."""

    @with_columns("job_collectives")
    def collectives(self) -> pd.DataFrame:
        """Collectives with the arrival, waiting and transfer of each rank.

        Kernels of NCCL and RCCL, and calls of gloo on the host, are matched by communicator and
        order. Without communicators (NCCL's NVTX ranges), kernels are matched by their order on
        the stream, if all ranks have as many of the same kinds. A note below the table says what
        is not matched, and how much the ends differ that must coincide.

        Returns
        -------
        frame
            {columns}

        Notes
        -----
        All-reduce, all-gather, reduce-scatter, all-to-all and barriers wait for all ranks. Others,
        such as broadcasts, have a duration only. Times below the error of the clocks are missing.

        Examples
        --------
        >>> from epprof_nb import Job
        >>> from epprof_nb.testing import synthetic_profile
        >>> job = Job({rank: synthetic_profile(activities=100) for rank in range(2)})
        >>> len(job.collectives())
        0
        """
        table = collectives_table(self.across)
        notes = notes_on_collectives(self)
        if not len(table):
            notes.append("No collective was recorded: no kernel of NCCL or RCCL, and none of gloo.")
        return table_frame(self, "job_collectives", table, notes)

    @with_columns("job_stragglers")
    def stragglers(self) -> pd.DataFrame:
        """Ranks that the others waited for at collectives, and what took longer there.

        The time between the last common point, the collective before, and the arrival of a late
        rank is compared with the other ranks: each op and line on the host, and the work
        on its device by the op that launched it. What exceeds the median of the other ranks is a
        reason.

        Returns
        -------
        frame
            {columns}

        Notes
        -----
        A rank is listed if it was late far more often than by chance, or once by far more than the
        ranks usually differ. While several ranks are missing at a collective, they share the
        waiting of the others. A rank that was late because it had waited for another one, in a
        collective of another communicator, passes its part on to that one.

        Examples
        --------
        >>> from epprof_nb import Job
        >>> from epprof_nb.testing import synthetic_profile
        >>> job = Job({rank: synthetic_profile(activities=100) for rank in range(2)})
        >>> len(job.stragglers())
        0
        """
        table = stragglers_table(self.across)
        notes = []
        if not len(table):
            notes.append(sentence_on_stragglers(self) or "No collectives of ranks were compared.")
        return table_frame(self, "job_stragglers", table, notes)
