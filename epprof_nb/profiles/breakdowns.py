"""The device time of a profile by op, kernel, line, stream and path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from epprof_nb.data.empty_tables import explained
from epprof_nb.data.profile_data import ProfileData
from epprof_nb.data.result_columns import with_columns
from epprof_nb.profiles.table_frame import table_frame

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd


class Breakdowns(ProfileData):
    """Tables that divide the device time of a profile."""

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

            The index is the index of `activities`. An argument is of dtype boolean, Int64, float64
            or category if all its values are bools, integers, numbers or strings, else object;
            lists and dicts become JSON text. With ``attribution="capture"``, `op_id` and the
            columns derived from it describe the op that captured a graph's activity.

        Raises
        ------
        ValueError
            If `attribution` is unknown.

        Warns
        -----
        UserWarning
            If `args` is None and the ranges have more than 50 different arguments: only the first
            ones become columns.

        Examples
        --------
        >>> from epprof_nb.testing import synthetic_profile
        >>> frame = synthetic_profile(activities=1000).joined()
        >>> frame.groupby("arg_layer")["duration_ns"].count().tolist()
        [80, 80, 80, 80]
        """
        from epprof_nb.analysis.base.index import index_of
        from epprof_nb.analysis.breakdowns.joined import joined_frame

        frame = joined_frame(index_of(self), args=args, attribution=attribution)
        return explained(self, "joined", frame)

    @with_columns("by_op", "by_op_memory")
    def by_op(
        self,
        *,
        args: Iterable[str] = (),
        attribution: Literal["launch", "capture"] = "launch",
        memory: bool = False,
    ) -> pd.DataFrame:
        """Device and host time of each op name.

        Parameters
        ----------
        args
            Names of arguments to group by as well, as in ``prof.by_op(args=["layer"])``: ops with
            the same name and different values have separate rows.
        attribution
            ``"launch"`` attributes an activity to the op that launched it. For an activity of a
            CUDA graph, this is the op that replayed the graph. ``"capture"`` attributes the
            activities of a graph to the ops that captured them, and counts replays as executions of
            these ops.
        memory
            Return the memory that was allocated and released in each op (``--detail memory``)
            instead of times; `attribution` is then ignored.

        Returns
        -------
        frame
            {columns}

            Device times are sums over activities: they can exceed the wall time if activities
            overlap. `self_device_ns` always adds up to the device time of the profile. An op below
            another op of the same row is not counted twice. If a row of `ops` has several
            executions, each counts with their mean.

        Raises
        ------
        ValueError
            If `attribution` is unknown, or no op has one of `args`.

        Examples
        --------
        >>> from epprof_nb.testing import synthetic_profile
        >>> synthetic_profile(activities=100).by_op()[["name", "kernels"]].head(2)
                           name  kernels
        0                 In[3]       97
        1  for x, y in batches:       97
        """
        from epprof_nb.analysis.base.attribution import check_attribution
        from epprof_nb.analysis.breakdowns.by_op import op_table
        from epprof_nb.analysis.memory.memory_by_op import memory_by_op

        check_attribution(attribution)
        if memory:
            return table_frame(self, "by_op_memory", memory_by_op, args=args)
        return table_frame(self, "by_op", op_table, args=args, attribution=attribution)

    @with_columns("by_kernel")
    def by_kernel(self, by: Literal["name", "short_name"] = "name") -> pd.DataFrame:
        """Launches and device time of each kernel name.

        Parameters
        ----------
        by
            ``"name"`` for one row per full name, ``"short_name"`` for one row per short name, such
            as ``reduce_kernel [sum f32]``. Several full names can share a short name; the column
            ``names`` counts them.

        Returns
        -------
        frame
            {columns}

        Raises
        ------
        ValueError
            If `by` is unknown.

        Examples
        --------
        >>> from epprof_nb.testing import synthetic_profile
        >>> int(synthetic_profile(activities=100).by_kernel()["count"].sum())
        97
        """
        from epprof_nb.analysis.breakdowns.by_kernel import kernel_table

        return table_frame(self, "by_kernel", kernel_table, by)

    @with_columns("by_stream")
    def by_stream(self) -> pd.DataFrame:
        """Busy time, activities, bytes and launch delay of each stream of a device.

        Returns
        -------
        frame
            {columns}

            `device_ns` adds up to the device time of the profile.

        Examples
        --------
        >>> from epprof_nb.testing import synthetic_profile
        >>> synthetic_profile(activities=100, streams=2).by_stream()["stream"].tolist()
        ['stream 7', 'stream 13']
        """
        from epprof_nb.analysis.breakdowns.by_stream import stream_table

        return table_frame(self, "by_stream", stream_table)

    @with_columns("by_device")
    def by_device(self) -> pd.DataFrame:
        """Work, busy and idle time of each device, and the bytes that it exchanged with others.

        Returns
        -------
        frame
            {columns}

            `device_ns` adds up to the device time of the profile. A copy between two devices is
            work of the device on whose stream it ran, so it counts once; `sent_bytes` of one
            device and `received_bytes` of the other one have its bytes.

        Examples
        --------
        >>> from epprof_nb.testing import synthetic_profile
        >>> synthetic_profile(activities=100).by_device()[["device", "kernels", "memcpys"]]
          device  kernels  memcpys
        0  GPU 0       97        2
        """
        from epprof_nb.analysis.breakdowns.by_device import device_table

        return table_frame(self, "by_device", device_table)

    @with_columns("by_line", "by_line_self", "by_line_memory")
    def by_line(
        self,
        *,
        inclusive: bool = True,
        attribution: Literal["launch", "capture"] = "launch",
        library: bool = False,
        memory: bool = False,
    ) -> pd.DataFrame:
        """Device and host time of each line that launched work, in cells and in files.

        Parameters
        ----------
        inclusive
            Whether a line includes the statements nested in it, and the functions that it calls.
            A table never has columns of both kinds: columns of self times and numbers begin with
            ``self_``.
        attribution
            See `by_op`.
        library
            Whether lines of libraries have rows, too. Otherwise their work belongs to your
            line that called them.
        memory
            Whether to return what each line allocated and released instead; the other parameters
            are then ignored.

        Returns
        -------
        frame
            {columns}

        Raises
        ------
        ValueError
            If `attribution` is unknown.

        Examples
        --------
        >>> from epprof_nb.testing import synthetic_profile
        >>> synthetic_profile(activities=100).by_line()[["line", "source"]].head(2)
           line                                          source
        0     1  model, optimizer = build(layers=4, width=1024)
        1     2          batches = load("train", batch_size=64)
        """
        from epprof_nb.analysis.base.attribution import check_attribution
        from epprof_nb.analysis.breakdowns.by_line import line_table
        from epprof_nb.analysis.memory.memory_by_op import memory_by_line

        check_attribution(attribution)
        if memory:
            return table_frame(self, "by_line_memory", memory_by_line)
        return table_frame(
            self,
            "by_line",
            line_table,
            inclusive=inclusive,
            attribution=attribution,
            library=library,
        )

    @with_columns("by_function")
    def by_function(self, *, lines: bool = False, library: bool = False) -> pd.DataFrame:
        """Host time of each function of your code between API calls, by samples.

        Parameters
        ----------
        lines
            Whether each line of a function has a row.
        library
            Whether functions of libraries have rows, too. Otherwise their time belongs to your
            function that called them.

        Returns
        -------
        frame
            {columns}

        Notes
        -----
        Times are sums over the threads that launch work or run the cell, also while they wait. They
        are estimates: ``n`` samples have a standard error of about ``sqrt(n)``. See `host_samples`.

        Examples
        --------
        >>> import epprof_nb
        >>> def squares():
        ...     return sum(i * i for i in range(1_000_000))
        >>> with epprof_nb.profile() as prof:
        ...     total = squares()
        >>> prof.by_function()[["function", "self_sampled_ns"]]  # doctest: +SKIP
                         function  self_sampled_ns
        0  squares.<locals>.<genexpr>         51230554
        """
        from epprof_nb.analysis.breakdowns.by_function import function_table

        return table_frame(self, "by_function", function_table, lines=lines, library=library)

    @with_columns("by_stack")
    def by_stack(
        self,
        *,
        library: bool = False,
        attribution: Literal["launch", "capture"] = "launch",
    ) -> pd.DataFrame:
        """Device time, launches and waits of each Python stack: a calling-context tree.

        Parameters
        ----------
        library
            Whether frames of libraries have rows. Otherwise their work belongs to your frame
            that called them.
        attribution
            ``"capture"`` has the kernels of a CUDA graph at the stack that captured them, else
            they are at the one that launched the graph.

        Returns
        -------
        frame
            {columns}

        Raises
        ------
        ValueError
            If `attribution` is unknown.

        Examples
        --------
        >>> tree = prof.by_stack()  # doctest: +SKIP
        >>> tree[tree["level"] == "frame"].nlargest(5, "self_device_ns")  # doctest: +SKIP
        """
        from epprof_nb.analysis.base.attribution import check_attribution
        from epprof_nb.analysis.stacks.by_stack import stack_tree

        check_attribution(attribution)
        return table_frame(self, "by_stack", stack_tree, library=library, attribution=attribution)

    @with_columns("by_repeat")
    def by_repeat(self) -> pd.DataFrame:
        """Wall, device and idle time and device work of each repeat of the code (``--repeat``).

        Returns
        -------
        frame
            {columns}

            There are no rows if the code ran without ``--repeat``.

        Notes
        -----
        Launches are asynchronous: the device may execute work after the end of the repeat that
        launched it. The last repeat ends when the code ends; a wait for the device after that
        is not part of it.

        The rows of a script are its steps. Row 0 precedes the first call of `epprof_nb.step`, and
        the last row follows the last call. Statistics and comparisons leave out row 0, and the last
        row if it lacks work that all earlier steps have.

        Examples
        --------
        >>> prof.by_repeat()["wall_ns"].describe()  # doctest: +SKIP
        """
        from epprof_nb.analysis.steps.by_repeat import repeat_table

        return table_frame(self, "by_repeat", repeat_table)

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
            ``"module"`` for paths of PyTorch's modules instead: below a module are the modules that
            it calls, and rows ``forward`` and ``backward`` with the ops and kernels of its own
            work. Work outside of modules is below the framework op around it, such as an optimizer,
            or below ``(outside of modules)`` and the op that launched it. The host time of a row
            includes all rows below.
        attribution
            See `by_op`. With ``"launch"``, the work of a graph is below the op that replayed it, in
            a row for the op that captured it.

        Returns
        -------
        frame
            {columns}

        Raises
        ------
        ValueError
            If `by` or `attribution` is unknown.

        Examples
        --------
        >>> from epprof_nb.testing import synthetic_profile
        >>> synthetic_profile(activities=100).by_path()["level"].head(3).tolist()
        ['session', 'cell', 'line']
        """
        from epprof_nb.analysis.breakdowns.by_path import path_table
        from epprof_nb.analysis.frameworks.module_tree import module_tree

        tables = {"op": path_table, "module": module_tree}
        if by not in tables:
            raise ValueError(f"by must be 'op' or 'module', not {by!r}")
        return table_frame(self, "by_path", tables[by], attribution=attribution)
