"""The modules, operators and steps of a training loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from epprof_nb.data.column_docs import with_columns
from epprof_nb.data.empty_tables import explained, with_note
from epprof_nb.data.profile_data import ProfileData

if TYPE_CHECKING:
    import pandas as pd


class TrainingTables(ProfileData):
    """Tables of the modules, operators and steps of PyTorch."""

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
        from epprof_nb.analysis.frameworks.by_module import by_module

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
        from epprof_nb.analysis.frameworks.by_operator import by_operator

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
        from epprof_nb.analysis.steps.by_step import by_step

        return explained(self, "by_step", by_step(self))
