"""The live views that are open, each of which holds its profile, and when they are closed.

A view goes with its output: when its cell runs again, or is deleted. Front ends name the cell, and
the cells deleted of late, in what comes with a request to execute. Where they do not, and for views
whose notebook was closed, a greatest number holds.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epprof_nb.views.widget.widget import LiveView

MOST = 12
"""Older views are closed. Their pages stay, without reloading."""


@dataclass(frozen=True)
class Execution:
    """One execution of a cell.

    Attributes
    ----------
    cell
        Id of the cell in its notebook; None where the front end does not tell.
    request
        Id of the request to execute it.
    deleted
        Ids of the cells that were deleted since the request before.
    """

    cell: str | None
    request: str | None
    deleted: frozenset[str]

    @classmethod
    def current(cls, shell: object) -> Self:
        """Return what a shell executes now; a shell without a kernel has no requests."""
        parent: dict[str, Any] = getattr(shell, "get_parent", dict)() or {}
        told = parent.get("metadata") or {}
        deleted = told.get("deletedCells") or ()
        return cls(told.get("cellId"), parent.get("msg_id"), frozenset(deleted))

    def replaces(self, other: Execution) -> bool:
        """Whether the output of another execution is gone with this one."""
        if other.cell is None or other.request == self.request:
            return False
        return other.cell == self.cell or other.cell in self.deleted


class OpenViews:
    """The open live views of a process, the oldest first."""

    def __init__(self) -> None:
        self._views: deque[tuple[LiveView, Execution]] = deque()

    def __iter__(self) -> Iterator[LiveView]:
        """Go through the views, the oldest first, as they are now."""
        return iter([view for view, _ in self._views])

    def add(self, view: LiveView, execution: Execution) -> None:
        """Take in a view that an execution shows; the oldest may have to go for it.

        A view that was shown before goes with the output that it is in now.
        """
        self.remove(view)
        self._views.append((view, execution))
        while len(self._views) > MOST:
            self._views[0][0].close()

    def remove(self, view: LiveView) -> None:
        """Forget a view that is closed."""
        self._views = deque(one for one in self._views if one[0] is not view)

    def close_replaced(self, now: Execution) -> None:
        """Close the views whose output is gone now that this is executed."""
        for view, shown in list(self._views):
            if now.replaces(shown):
                view.close()
