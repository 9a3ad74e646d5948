"""Findings on a profile, and the analyses behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from epprof_nb.data.column_docs import with_columns
from epprof_nb.data.empty_tables import explained
from epprof_nb.data.profile_data import ProfileData

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd


class Findings(ProfileData):
    """Findings, and the tables on which they are based."""

    @with_columns("insights")
    def insights(self) -> pd.DataFrame:
        """Findings on what to change first, with remedies and gains.

        Returns
        -------
        frame
            {columns}

            Only findings that can save 2 % or more of the wall time are there. The frame is shown
            as sentences; a selection of its columns or rows is shown as any other DataFrame.

        Examples
        --------
        >>> from epprof_nb.testing import synthetic_profile
        >>> synthetic_profile(activities=100).insights()[["rank", "kind", "line"]]
           rank      kind  line
        0     1      idle     1
        1     2  hot line    10
        """
        from epprof_nb.analysis.findings.ranking import insights

        return explained(self, "insights", insights(self))

    def evidence(self, insight: Mapping[str, Any] | int) -> pd.DataFrame:
        """Return the rows behind a finding.

        Parameters
        ----------
        insight
            A row of `insights`, as ``prof.insights().iloc[0]``, or its rank.

        Returns
        -------
        frame
            Rows of `activities`, `ops` or `api_calls`, with their index; `timeline` highlights
            them.

        Raises
        ------
        TypeError
            If `insight` is neither a row nor a rank.
        ValueError
            If the profile has no such finding.

        Examples
        --------
        >>> prof.timeline(select=prof.evidence(1))  # doctest: +SKIP
        """
        from epprof_nb.analysis.findings.ranking import evidence

        return evidence(self, insight)

    @with_columns("gaps")
    def gaps(self, min_ns: int = 1_000_000) -> pd.DataFrame:
        """Idle intervals of each device, and the op that the host ran meanwhile.

        Parameters
        ----------
        min_ns
            Shortest interval, nanoseconds. With 0 the intervals add up to the idle time.

        Returns
        -------
        frame
            {columns}

        Examples
        --------
        >>> from epprof_nb.testing import synthetic_profile
        >>> synthetic_profile(activities=100).gaps()[["position", "line"]]
          position  line
        0   before     1
        """
        from epprof_nb.analysis.idle.gaps import gaps

        return explained(self, "gaps", gaps(self, min_ns))

    @with_columns("overlap")
    def overlap(self) -> pd.DataFrame:
        """Time in which each device computed, copied, communicated or idled.

        Returns
        -------
        frame
            {columns}
        """
        from epprof_nb.analysis.idle.overlap import overlap

        return explained(self, "overlap", overlap(self))

    @with_columns("launches")
    def launches(self) -> pd.DataFrame:
        """Launches of each statement: API time, delay, queue, and what a graph would save.

        Returns
        -------
        frame
            {columns}
        """
        from epprof_nb.analysis.idle.launches import launches

        return explained(self, "launches", launches(self))

    @with_columns("transfers")
    def transfers(self) -> pd.DataFrame:
        """Copies of each statement: bandwidth, kinds of memory, overlap with kernels.

        Returns
        -------
        frame
            {columns}
        """
        from epprof_nb.analysis.idle.transfers import transfers

        return explained(self, "transfers", transfers(self))

    @with_columns("waits")
    def waits(self) -> pd.DataFrame:
        """Waits of the host for a device, and how long the device idled afterwards.

        Returns
        -------
        frame
            {columns}
        """
        from epprof_nb.analysis.idle.waits import waits

        return explained(self, "waits", waits(self))

    @with_columns("steadiness")
    def steadiness(self) -> pd.DataFrame:
        """Phase of each repeat or iteration of the code: warm-up, steady or outlier.

        Returns
        -------
        frame
            {columns}
        """
        from epprof_nb.analysis.steps.steadiness import steadiness

        return explained(self, "steadiness", steadiness(self))

    @with_columns("critical_path", "critical_path_op")
    def critical_path(
        self,
        by: Literal["step", "op"] = "step",
        *,
        attribution: Literal["launch", "capture"] = "launch",
    ) -> pd.DataFrame:
        """Longest chain of work and waits from the start of the profile to its end.

        Only what is on this path can make the profiled code faster.

        Parameters
        ----------
        by
            ``"step"`` for the steps of the path, in order; ``"op"`` for the time of each op on it,
            and what the op could save at most: the path is computed again without its time.
        attribution
            See `by_op`.

        Returns
        -------
        frame
            {columns}

            The activities of a CUDA graph's replay are on the path like others. Records do not say
            for which event a stream waited: the work of another stream that was launched before
            the wait and ended last before the next activity is taken.

        Raises
        ------
        ValueError
            If an argument is unknown.

        Examples
        --------
        >>> from epprof_nb.testing import synthetic_profile
        >>> prof = synthetic_profile(activities=100)
        >>> prof.critical_path(by="op")[["name", "line"]].iloc[1]
        name    model, optimizer = build(layers=4, width=1024)
        line                                                 1
        Name: 1, dtype: object
        """
        from epprof_nb.analysis.critical_path.chain import critical_path

        return explained(self, "critical_path", critical_path(self, by, attribution=attribution))
