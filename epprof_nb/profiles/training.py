"""The modules, operators and steps of a training loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from epprof_nb.data.empty_tables import with_note
from epprof_nb.data.profile_data import ProfileData
from epprof_nb.data.result_columns import with_columns
from epprof_nb.profiles.table_frame import table_frame

if TYPE_CHECKING:
    import pandas as pd


class TrainingTables(ProfileData):
    """Tables of the modules, operators and steps of PyTorch."""

    @with_columns("by_module", "by_module_memory")
    def by_module(
        self,
        *,
        attribution: Literal["launch", "capture"] = "launch",
        memory: bool = False,
    ) -> pd.DataFrame:
        """Device and host time of each module of PyTorch, forward and backward.

        Parameters
        ----------
        attribution, memory
            See `by_op`.

        Returns
        -------
        frame
            {columns}

            The index is the path. Work outside of all modules has separate rows: one for each
            method of an optimizer, one for the rest of the backward pass, and a last one
            ``(outside of modules)``; the column `type` distinguishes them. A kernel that
            ``torch.compile`` has fused from several modules has a row of type ``fused``, and counts
            for the modules that contain all of these.

        Raises
        ------
        ValueError
            If `attribution` is unknown.

        Examples
        --------
        >>> prof.by_module().loc["model.layers.0"]  # doctest: +SKIP
        """
        from epprof_nb.analysis.base.attribution import check_attribution
        from epprof_nb.analysis.frameworks.by_module import module_table
        from epprof_nb.analysis.memory.memory_by_op import memory_by_module

        check_attribution(attribution)
        if memory:
            return table_frame(self, "by_module_memory", memory_by_module)
        return table_frame(self, "by_module", module_table, attribution=attribution)

    @with_columns("by_operator")
    def by_operator(
        self,
        *,
        modules: bool = False,
        shapes: bool = False,
        attribution: Literal["launch", "capture"] = "launch",
    ) -> pd.DataFrame:
        """Device and host time of each operator of PyTorch and of its backward pass.

        Operators are recorded with ``detail="operators"``, and with their shapes with
        ``detail="shapes"``.

        Parameters
        ----------
        modules
            Whether operators of different modules have separate rows.
        shapes
            Whether operators with different input shapes have separate rows; this needs
            ``detail="shapes"``.
        attribution
            See `by_op`.

        Returns
        -------
        frame
            {columns}

            `self_device_ns` adds up to the device time of the profile. Nodes of the backward pass
            also have rows; their time is also the `backward_ns` of the operator that created them.

        Raises
        ------
        ValueError
            If `attribution` is unknown.

        Examples
        --------
        >>> frame = prof.by_operator(modules=True)  # doctest: +SKIP
        >>> frame[frame["module"] == "model.layers.0"]  # doctest: +SKIP
        """
        from epprof_nb.analysis.frameworks.by_operator import operator_table

        frame = table_frame(
            self,
            "by_operator",
            operator_table,
            modules=modules,
            shapes=shapes,
            attribution=attribution,
        )
        if shapes and not frame.attrs and frame["input_shapes"].isna().all():
            note = "No shapes of inputs were recorded: `--detail shapes` records them."
            return with_note(frame, note)
        return frame

    @with_columns("by_step")
    def by_step(self) -> pd.DataFrame:
        """Device and host time of each step of a training loop, by phase.

        A step ends when the ``step`` of the optimizer returns, or where `epprof_nb.step` marks its
        end.

        Returns
        -------
        frame
            {columns}

            There are no rows if the code calls neither the ``step`` of an optimizer nor
            `epprof_nb.step`.

        Notes
        -----
        Optimizers whose steps follow each other directly end one step together. Steps that the code
        marks with `epprof_nb.step` in ``epprof run`` take precedence. Work after the last step
        belongs to no step. The first step begins with the loop around the optimizer's steps. If the
        loop is in a function, the first step begins with the profiled code or the statement that
        calls it. If it then spent more than twice as long before its first module as any later
        step, it begins later: as long before its first module as the longest later step. Otherwise,
        code before the loop would belong to it.

        Examples
        --------
        >>> prof.by_step()["data_ns"].sum() / prof.by_step()["wall_ns"].sum()  # doctest: +SKIP
        """
        from epprof_nb.analysis.steps.by_step import step_table

        return table_frame(self, "by_step", step_table)
