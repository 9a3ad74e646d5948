"""The analyses of a profile, as methods that return DataFrames and text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from epprof_nb.data.columns import with_columns
from epprof_nb.data.empty_tables import explained, with_note
from epprof_nb.data.profile_data import ProfileData

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pandas as pd


class ProfileAnalyses(ProfileData):
    """Tables of one profiling session, with what can be computed from them.

    `epprof_nb.Profile` adds views and files.
    """

    @with_columns("joined")
    def joined(
        self,
        *,
        args: Iterable[str] | None = None,
        attribution: Literal["launch", "capture"] = "launch",
    ) -> pd.DataFrame:
        """Activities, each with its op, named range and arguments, API call and launch delay.

        Parameters
        ----------
        args
            Names of the arguments of ranges that become columns; all if None.
        attribution
            See `by_op`.

        Returns
        -------
        frame
            {columns}

        Examples
        --------
        >>> by_layer = prof.joined().groupby("arg_layer")["duration_ns"].sum()  # doctest: +SKIP
        """
        from epprof_nb.analysis.joined import joined

        return explained(self, "joined", joined(self, args=args, attribution=attribution))

    @with_columns("by_op")
    def by_op(
        self,
        *,
        args: Iterable[str] = (),
        attribution: Literal["launch", "capture"] = "launch",
    ) -> pd.DataFrame:
        """Device and host time of each op name.

        Parameters
        ----------
        args
            Names of arguments to group by as well, as in ``prof.by_op(args=["layer"])``.
        attribution
            ``"launch"`` attributes an activity to the op that launched it, so those of a CUDA
            graph to the op that replayed it; ``"capture"`` attributes the activities of a graph
            to the op that captured them.

        Returns
        -------
        frame
            {columns}

            Device times are sums over activities: they exceed the wall time where activities
            overlap.

        Raises
        ------
        ValueError
            If `attribution` is unknown, or no op has one of `args`.
        """
        from epprof_nb.analysis.by_op import by_op

        return explained(self, "by_op", by_op(self, args=args, attribution=attribution))

    @with_columns("by_kernel")
    def by_kernel(self, by: Literal["name", "short_name"] = "name") -> pd.DataFrame:
        """Launches and device time of each kernel name.

        Parameters
        ----------
        by
            ``"name"`` for one row per full name, ``"short_name"`` for one row per short name, as
            ``reduce_kernel [sum f32]``. Several full names can share a short name; the column
            ``names`` counts them.

        Returns
        -------
        frame
            {columns}
        """
        from epprof_nb.analysis.by_kernel import by_kernel

        return explained(self, "by_kernel", by_kernel(self, by))

    @with_columns("by_stream")
    def by_stream(self) -> pd.DataFrame:
        """Busy time, activities, bytes and launch delay of each stream of a device.

        Returns
        -------
        frame
            {columns}
        """
        from epprof_nb.analysis.by_stream import by_stream

        return explained(self, "by_stream", by_stream(self))

    @with_columns("by_line", "by_line_self")
    def by_line(
        self,
        *,
        inclusive: bool = True,
        attribution: Literal["launch", "capture"] = "launch",
    ) -> pd.DataFrame:
        """Device and host time of each line of the profiled cells.

        Parameters
        ----------
        inclusive
            Whether a line includes the statements nested in it. A table never has columns of both
            kinds: those of a self time or number begin with ``self_``.
        attribution
            See `by_op`.

        Returns
        -------
        frame
            {columns}
        """
        from epprof_nb.analysis.by_op import by_line

        return explained(
            self, "by_line", by_line(self, inclusive=inclusive, attribution=attribution)
        )

    @with_columns("by_repeat")
    def by_repeat(self) -> pd.DataFrame:
        """Wall, device and idle time and device work of each repeat of the code (``--repeat``).

        Returns
        -------
        frame
            {columns}

        Examples
        --------
        >>> prof.by_repeat()["wall_ns"].describe()  # doctest: +SKIP
        """
        from epprof_nb.analysis.by_repeat import by_repeat

        return explained(self, "by_repeat", by_repeat(self))

    @with_columns("by_module")
    def by_module(self, *, attribution: Literal["launch", "capture"] = "launch") -> pd.DataFrame:
        """Device and host time of each module of PyTorch, forward and backward.

        Parameters
        ----------
        attribution
            See `by_op`.

        Returns
        -------
        frame
            {columns}

        Examples
        --------
        >>> prof.by_module().loc["model.layers.0"]  # doctest: +SKIP
        """
        from epprof_nb.analysis.by_module import by_module

        return explained(self, "by_module", by_module(self, attribution=attribution))

    @with_columns("by_operator")
    def by_operator(
        self,
        *,
        modules: bool = False,
        shapes: bool = False,
        attribution: Literal["launch", "capture"] = "launch",
    ) -> pd.DataFrame:
        """Device and host time of each operator of PyTorch, with that of its backward pass.

        Operators are recorded with ``detail="operators"``, and with their shapes with
        ``detail="shapes"``.

        Parameters
        ----------
        modules
            Whether operators of different modules have rows of their own.
        shapes
            Whether operators with different shapes of their inputs have rows of their own; they
            need ``detail="shapes"``.
        attribution
            See `by_op`.

        Returns
        -------
        frame
            {columns}

        Examples
        --------
        >>> frame = prof.by_operator(modules=True)  # doctest: +SKIP
        >>> frame[frame["module"] == "model.layers.0"]  # doctest: +SKIP
        """
        from epprof_nb.analysis.by_operator import by_operator

        frame = explained(
            self,
            "by_operator",
            by_operator(self, modules=modules, shapes=shapes, attribution=attribution),
        )
        if shapes and not frame.attrs and frame["input_shapes"].isna().all():
            note = "No shapes of inputs were recorded: `--detail shapes` records them."
            return with_note(frame, note)
        return frame

    @with_columns("by_step")
    def by_step(self) -> pd.DataFrame:
        """Device and host time of each step of a training loop, by phase.

        A step ends when the ``step`` of the optimizer returns, or where `epprof_nb.step` says.

        Returns
        -------
        frame
            {columns}

        Examples
        --------
        >>> prof.by_step()["data_ns"].sum() / prof.by_step()["wall_ns"].sum()  # doctest: +SKIP
        """
        from epprof_nb.analysis.by_step import by_step

        return explained(self, "by_step", by_step(self))

    @with_columns("by_path")
    def by_path(
        self,
        *,
        by: Literal["op", "module"] = "op",
        attribution: Literal["launch", "capture"] = "launch",
    ) -> pd.DataFrame:
        """Device and host time of each path from the session through cells and ops to kernels.

        Parameters
        ----------
        by
            ``"module"`` for paths of PyTorch's modules instead: below a module are the modules
            that it calls, and rows ``forward`` and ``backward`` with the ops and kernels of its
            own work.
        attribution
            See `by_op`.

        Returns
        -------
        frame
            {columns}

        Raises
        ------
        ValueError
            If `by` or `attribution` is unknown.
        """
        from epprof_nb.analysis.by_path import by_path

        if by == "module":
            return explained(self, "by_module", by_path(self, by=by, attribution=attribution))
        return explained(self, "by_path", by_path(self, by=by, attribution=attribution))

    @with_columns("by_node")
    def by_node(self, *, attribution: Literal["launch", "capture"] = "capture") -> pd.DataFrame:
        """Host time, device time and copies of each node of the ONNX Runtime sessions.

        Parameters
        ----------
        attribution
            ``"capture"`` counts the activities of a graph at the nodes that captured them, as if
            these had run; ``"launch"`` at the op that replayed it, which is no node.

        Returns
        -------
        frame
            {columns}
        """
        from epprof_nb.analysis.by_node import by_node

        return explained(self, "by_node", by_node(self, attribution=attribution))

    @with_columns("by_op_type")
    def by_op_type(self, *, attribution: Literal["launch", "capture"] = "capture") -> pd.DataFrame:
        """Host and device time of each ONNX operator and execution provider.

        Parameters
        ----------
        attribution
            See `by_node`.

        Returns
        -------
        frame
            {columns}
        """
        from epprof_nb.analysis.by_node import by_op_type

        return explained(self, "by_op_type", by_op_type(self, attribution=attribution))

    @with_columns("by_run")
    def by_run(self, *, attribution: Literal["launch", "capture"] = "launch") -> pd.DataFrame:
        """Host and device time of each run of the ONNX Runtime sessions.

        Returns
        -------
        frame
            {columns}
        """
        from epprof_nb.analysis.by_run import by_run

        return explained(self, "by_run", by_run(self, attribution=attribution))

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
        from epprof_nb.analysis.idle import gaps

        return explained(self, "gaps", gaps(self, min_ns))

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
        from epprof_nb.analysis.insights import insights

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
        from epprof_nb.analysis.insights import evidence

        return evidence(self, insight)

    @with_columns("overlap")
    def overlap(self) -> pd.DataFrame:
        """Time in which each device computed, copied, communicated or idled.

        Returns
        -------
        frame
            {columns}
        """
        from epprof_nb.analysis.overlap import overlap

        return explained(self, "overlap", overlap(self))

    @with_columns("launches")
    def launches(self) -> pd.DataFrame:
        """Launches of each statement: API time, delay, queue, and what a graph would save.

        Returns
        -------
        frame
            {columns}
        """
        from epprof_nb.analysis.launches import launches

        return explained(self, "launches", launches(self))

    @with_columns("transfers")
    def transfers(self) -> pd.DataFrame:
        """Copies of each statement: bandwidth, kinds of memory, overlap with kernels.

        Returns
        -------
        frame
            {columns}
        """
        from epprof_nb.analysis.transfers import transfers

        return explained(self, "transfers", transfers(self))

    @with_columns("waits")
    def waits(self) -> pd.DataFrame:
        """Waits of the host for a device, and how long the device idled afterwards.

        Returns
        -------
        frame
            {columns}
        """
        from epprof_nb.analysis.waits import waits

        return explained(self, "waits", waits(self))

    @with_columns("steadiness")
    def steadiness(self) -> pd.DataFrame:
        """Phase of each repeat or iteration of the code: warm-up, steady or outlier.

        Returns
        -------
        frame
            {columns}
        """
        from epprof_nb.analysis.steadiness import steadiness

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
        from epprof_nb.analysis.critical_path import critical_path

        return explained(self, "critical_path", critical_path(self, by, attribution=attribution))

    @with_columns("roofline")
    def roofline(self, *, measure: bool = True) -> pd.DataFrame:
        """FLOPs, least bytes and least time of the ONNX nodes whose shapes are known.

        Parameters
        ----------
        measure
            Whether to measure the peaks of the profile's devices, if it does not have them yet: by
            a matrix product and a copy, which take a second or two. A CUDA device needs CuPy or
            PyTorch to be imported. Devices of other machines are not measured. The peaks are kept
            in ``info["peaks"]``, and saved.

        Returns
        -------
        frame
            {columns}

            The activities of a CUDA graph count for the nodes that captured them. `device_ns` adds
            up to the device time of the profile, so the share of the last row is that of what is
            not covered. A matrix product in cache, or of another type, can exceed the peaks.

        Examples
        --------
        >>> prof.roofline().query("roof_share < 0.3")  # doctest: +SKIP
        """
        from epprof_nb.analysis.roofline import roofline

        if measure and "peaks" not in self.info:
            from epprof_nb.recorders.peaks import measure_devices

            found = measure_devices(self.info)
            if found:
                self.info["peaks"] = {str(device): p.to_info() for device, p in found.items()}
        return explained(self, "roofline", roofline(self))

    def sql(
        self, query: str, *, time_limit_s: float = 60.0, max_bytes: int = 2 * 2**30
    ) -> pd.DataFrame:
        """Result of a SQL query over the tables, by DuckDB.

        Parameters
        ----------
        query
            One SELECT statement in DuckDB's dialect. Its tables are those of the profile (``ops``,
            ``activities``, ``api_calls``, ``graphs``, ``memory``, ``overhead``) with the same
            columns; ``info``, with a JSON ``value`` for each ``key``; and the views
            ``device_work`` (the activities that keep a device busy), ``busy`` (``device_id``,
            ``start_ns`` and ``end_ns`` of the disjoint intervals in which a device was busy) and
            ``idle`` (the intervals between them). ``insights`` has the findings and
            ``evidence_1`` the rows behind the first one. Missing ids and names are NULL.
        time_limit_s
            Maximum time of the query, seconds.
        max_bytes
            Maximum memory of the query and of its result, bytes each.

        Returns
        -------
        frame
            The rows. Integers and their sums are int64, or Int64 if a value is missing.

        Raises
        ------
        ImportError
            If DuckDB is not installed: ``pip install epprof-nb[sql]``.
        ValueError
            If the query fails or is not one SELECT statement. Queries cannot change the profile,
            read or write files, or install extensions.
        TimeoutError, MemoryError
            If a limit is exceeded. A function of DuckDB that works on one very long text or list
            cannot be stopped: it goes on in the background.

        Examples
        --------
        >>> prof.sql(
        ...     "select name, sum(duration_ns) t from activities group by all order by t desc"
        ... )  # doctest: +SKIP
        """
        from epprof_nb.analysis.sql import sql

        return sql(self, query, time_limit_s=time_limit_s, max_bytes=max_bytes)
