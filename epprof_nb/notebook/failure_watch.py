"""The watch on failed allocations of memory, for the explanation below a failed cell."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

from epprof_nb.notebook.messages import warn
from epprof_nb.recording.out_of_memory import torch_failures
from epprof_nb.util.format import format_error

if TYPE_CHECKING:
    from collections.abc import Mapping

    from epprof_nb.notebook.settings import GpuProfile


class _Before(NamedTuple):
    """State before a cell: the failed allocations of torch, and the id of the last shown error."""

    failures: int
    shown: int


class FailureWatch:
    """Watch on failed allocations while ``GpuProfile.explain_out_of_memory`` is set."""

    def __init__(self, settings: GpuProfile) -> None:
        self._settings = settings
        self._watches = False
        self._before: list[_Before] = []  # by running cell
        self._explained = 0
        """The id of the error that was explained last; an error is never kept."""

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
        self._before.append(_Before(torch_failures.failures(), id(_shown_error())))

    def end_cells(self, first: int) -> _Before:
        """Forget the running cells from the number `first` on; return what was before it."""
        before = self._before[first]
        del self._before[first:]
        return before

    def explain(
        self, error: BaseException | None, variables: Mapping[str, object], before: _Before | None
    ) -> None:
        """Show below a cell why memory ran out, if it did and the setting asks for it.

        `error` is what ended the cell; `before` was before the cell, None if that is unknown.
        Without an error, it is the one that code in the cell has shown, as ``%run`` does.
        """
        if not self._settings.explain_out_of_memory:
            return
        if error is None and before is not None:
            shown = _shown_error()
            error = None if id(shown) in (before.shown, self._explained) else shown
        if error is None:
            return
        self._explained = id(error)
        try:
            from epprof_nb.notebook.failed_cell import show_explanation

            show_explanation(error, variables, 0 if before is None else before.failures)
        except BaseException as failure:  # noqa: BLE001 - Ctrl-C, too: the error matters more
            warn(f"the out-of-memory error could not be explained ({format_error(failure)}).")


def _shown_error() -> BaseException | None:
    """Return the last error with a traceback that IPython or Python has shown."""
    return getattr(sys, "last_value", None)
