"""The device time of a profile by op, kernel, line, stream and path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from epprof_nb.data.column_docs import with_columns
from epprof_nb.data.empty_tables import explained
from epprof_nb.data.profile_data import ProfileData

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

        Examples
        --------
        >>> by_layer = prof.joined().groupby("arg_layer")["duration_ns"].sum()  # doctest: +SKIP
        """
        from epprof_nb.analysis.breakdowns.joined import joined

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
        from epprof_nb.analysis.breakdowns.by_op import by_op

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
        from epprof_nb.analysis.breakdowns.by_kernel import by_kernel

        return explained(self, "by_kernel", by_kernel(self, by))

    @with_columns("by_stream")
    def by_stream(self) -> pd.DataFrame:
        """Busy time, activities, bytes and launch delay of each stream of a device.

        Returns
        -------
        frame
            {columns}
        """
        from epprof_nb.analysis.breakdowns.by_stream import by_stream

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
        from epprof_nb.analysis.breakdowns.by_op import by_line

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
        from epprof_nb.analysis.steps.by_repeat import by_repeat

        return explained(self, "by_repeat", by_repeat(self))

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
        from epprof_nb.analysis.breakdowns.by_path import by_path

        if by == "module":
            return explained(self, "by_module", by_path(self, by=by, attribution=attribution))
        return explained(self, "by_path", by_path(self, by=by, attribution=attribution))
