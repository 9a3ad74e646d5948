"""Findings on a profile, and the analyses behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from epprof_nb.data.empty_tables import explained, with_note
from epprof_nb.data.profile_data import ProfileData
from epprof_nb.data.repeats import repeat_bounds, repeat_names
from epprof_nb.data.result_columns import with_columns
from epprof_nb.profiles.table_frame import table_frame

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

            Findings can save 2 % or more of the wall time. Findings that name a cause come first,
            then larger gains. If missing records leave 2 % of the wall time or more unknown, the
            table has no findings on device work. The frame displays as sentences; a selection of
            its columns or rows is a plain DataFrame.

        Examples
        --------
        >>> from epprof_nb.testing import synthetic_profile
        >>> synthetic_profile(activities=100).insights()[["rank", "kind", "line"]]
           rank      kind  line
        0     1      idle     1
        1     2  hot line    10
        """
        from epprof_nb.analysis.base.index import index_of
        from epprof_nb.analysis.findings.few_samples import few_samples
        from epprof_nb.analysis.findings.findings_frame import OWN_CELL, REPEATS, FindingsFrame
        from epprof_nb.analysis.findings.ranking import findings_table

        frame = FindingsFrame(findings_table(index_of(self)).to_frame())
        if cell := self.info.get("cell"):
            frame.attrs[OWN_CELL] = cell
        if repeat_names(self.info).unit == "repeat":
            frame.attrs[REPEATS] = len(repeat_bounds(self.info)[0])
        if not len(frame) and (reason := few_samples(index_of(self))):
            return with_note(frame, reason)
        return explained(self, "insights", frame)

    def evidence(self, insight: Mapping[str, Any] | int) -> pd.DataFrame:
        """Return the rows behind a finding.

        Parameters
        ----------
        insight
            A row of `insights`, such as ``prof.insights().iloc[0]``, or its rank.

        Returns
        -------
        frame
            Rows of `activities`, `ops` or `api_calls`, with their index; `timeline` highlights
            them. Columns without values in these rows exist but are not displayed.

        Raises
        ------
        TypeError
            If `insight` is neither a row nor a rank.
        ValueError
            If the profile has no such finding.

        Examples
        --------
        >>> from epprof_nb.testing import synthetic_profile
        >>> prof = synthetic_profile(activities=100)
        >>> prof.evidence(1)["line"].tolist()
        [1]
        >>> prof.timeline(select=prof.evidence(1))  # doctest: +SKIP
        """
        from epprof_nb.analysis.base.index import index_of
        from epprof_nb.analysis.findings.ranking import evidence_frame

        return evidence_frame(index_of(self), insight)

    @with_columns("gaps")
    def gaps(self, min_ns: int | None = None) -> pd.DataFrame:
        """Idle intervals of each device, and the op that the host ran meanwhile.

        Parameters
        ----------
        min_ns
            Shortest interval, nanoseconds; None for 1 ms, as in the summary. With 0 the intervals
            add up to the idle time.

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
        from epprof_nb.analysis.utilisation.gaps import IDLE_GAP_NS, gap_table

        return table_frame(self, "gaps", gap_table, IDLE_GAP_NS if min_ns is None else min_ns)

    @property
    @with_columns("host_samples")
    def host_samples(self) -> pd.DataFrame:
        """One row per sample of a thread that launches or runs the cell.

        {columns}

        Notes
        -----
        A thread of the native core takes them, without the GIL and without stopping the sampled
        thread. It samples only threads that are outside of recorded API calls and have made none
        for 0.5 ms.

        Examples
        --------
        >>> import epprof_nb
        >>> with epprof_nb.profile() as prof:
        ...     total = sum(i * i for i in range(1_000_000))
        >>> prof.host_samples.groupby("line")["interval_ns"].sum()  # doctest: +SKIP
        """
        from epprof_nb.analysis.utilisation.sampled_host import host_sample_table

        return table_frame(self, "host_samples", host_sample_table)

    @with_columns("overlap")
    def overlap(self) -> pd.DataFrame:
        """Time in which each device computed, copied, communicated or idled.

        Returns
        -------
        frame
            {columns}

        Notes
        -----
        Communication consists of the kernels of NCCL, RCCL, NVSHMEM and oneCCL, and copies between
        devices. A replay of a CUDA graph counts by its nodes or, without recorded ones, as compute.

        Examples
        --------
        >>> from epprof_nb.testing import synthetic_profile
        >>> row = synthetic_profile(activities=1000).overlap().iloc[0]
        >>> parts = ["compute_ns", "copy_ns", "communication_ns", "overlap_ns", "idle_ns"]
        >>> bool(row[parts].sum() == row["span_ns"])
        True
        """
        from epprof_nb.analysis.utilisation.overlap import overlap_table

        return table_frame(self, "overlap", overlap_table)

    @with_columns("launches")
    def launches(self) -> pd.DataFrame:
        """Launches of each statement: API time, delay, queue, and the saving of a graph.

        Returns
        -------
        frame
            {columns}

        Notes
        -----
        A launch is an API call that started device work, so the replay of a CUDA graph is one
        launch. Work whose API call was not recorded is left out. With a CUDA graph, the device
        would not wait for the next launch: `graph_saving_ns` is the idle time before work that was
        launched one by one, in gaps of up to 1 ms, without the gap that remains between two nodes
        of a graph. This gap is measured in the replays of the profile, else between launches that
        were queued.

        Examples
        --------
        >>> from epprof_nb.testing import synthetic_profile
        >>> int(synthetic_profile(activities=100).launches()["launches"].sum())
        100
        """
        from epprof_nb.analysis.utilisation.launches import launch_table

        return table_frame(self, "launches", launch_table)

    @with_columns("transfers")
    def transfers(self) -> pd.DataFrame:
        """Copies of each statement: bandwidth, kinds of memory, overlap with kernels.

        Returns
        -------
        frame
            {columns}

        Examples
        --------
        >>> from epprof_nb.testing import synthetic_profile
        >>> synthetic_profile(activities=1000).transfers()["copy_kind"].tolist()
        ['HtoD', 'DtoH']
        """
        from epprof_nb.analysis.utilisation.transfers import transfer_table

        return table_frame(self, "transfers", transfer_table)

    @with_columns("waits")
    def waits(self) -> pd.DataFrame:
        """Waits of the host for a device, and the idle time of the device afterwards.

        Returns
        -------
        frame
            {columns}

        Notes
        -----
        The host waits in synchronizing calls and in synchronous copies. While it waits, it cannot
        launch, so the devices idle afterwards until it has prepared the next work. Without the
        wait, this preparation would overlap with the awaited work for `avoidable_ns`.

        Examples
        --------
        >>> from epprof_nb.testing import synthetic_profile
        >>> synthetic_profile(activities=1000).waits()[["api_name", "line"]]
                   api_name  line
        0  cuCtxSynchronize    12
        """
        from epprof_nb.analysis.utilisation.waits import wait_table

        return table_frame(self, "waits", wait_table)

    @with_columns("steadiness")
    def steadiness(self) -> pd.DataFrame:
        """Phase of each repeat or iteration of the code: warm-up, steady or outlier.

        Returns
        -------
        frame
            {columns}

        Notes
        -----
        Iterations are the repeats of the code (``--repeat``), the steps of a script, or the steps
        of an optimizer of PyTorch, as in the headline; without these, the iterations of its
        longest loop, if statements were recorded and the loop has ten or more. The second half of
        the iterations shows the steady state. An iteration is an outlier if its wall time exceeds
        their median by a tenth and by five standard deviations, which are estimated from the
        median absolute deviation. Outlying iterations at the start are the warm-up,
        unless later outliers are as long.

        Examples
        --------
        >>> from epprof_nb.testing import synthetic_profile
        >>> synthetic_profile(activities=3000).steadiness()["phase"].tolist()[:3]
        ['steady', 'steady', 'steady']
        """
        from epprof_nb.analysis.steps.steadiness import steadiness_table

        return table_frame(self, "steadiness", steadiness_table)
