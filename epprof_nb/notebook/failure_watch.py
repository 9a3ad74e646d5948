"""The watch on failed allocations of memory, for the explanation below a failed cell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from epprof_nb.notebook.messages import warn
from epprof_nb.recording.memory import torch_failures
from epprof_nb.util.format import format_error

if TYPE_CHECKING:
    from collections.abc import Mapping

    from epprof_nb.notebook.settings import GpuProfile


class FailureWatch:
    """Watch on failed allocations while ``GpuProfile.explain_out_of_memory`` is set."""

    def __init__(self, settings: GpuProfile) -> None:
        self._settings = settings
        self._watches = False
        self._before: list[int] = []  # failed allocations of torch, by running cell

    def follow(self) -> None:
        """Follow the setting from now on."""
        self._settings.observe(self._update, "explain_out_of_memory")
        self._update()

    def end(self) -> None:
        """Stop watching, and no longer follow the setting."""
        self._settings.unobserve(self._update, "explain_out_of_memory")
        if self._watches:
            torch_failures.uninstall()

    def _update(self, _: object = None) -> None:
        wanted = self._settings.explain_out_of_memory
        if wanted and not self._watches:
            torch_failures.install()
        elif self._watches and not wanted:
            torch_failures.uninstall()
        self._watches = wanted

    def begin_cell(self) -> None:
        """Remember how many allocations had failed before a cell, which may be nested."""
        self._before.append(torch_failures.failures())

    def end_cells(self, first: int) -> int:
        """Forget the running cells from the number `first` on; return the failures before it."""
        before = self._before[first]
        del self._before[first:]
        return before

    def explain(
        self, error: BaseException, variables: Mapping[str, object], failures_before: int
    ) -> None:
        """Show below a failed cell why memory ran out, if it did and the setting asks for it."""
        if not self._settings.explain_out_of_memory:
            return
        try:
            from epprof_nb.notebook.failed_cell import show_explanation

            show_explanation(error, variables, failures_before)
        except Exception as failure:  # noqa: BLE001 - the error of the cell is what matters
            warn(f"the out-of-memory error could not be explained ({format_error(failure)}).")
