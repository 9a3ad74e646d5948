"""Registry of the open live views, which keep their profiles in memory.

A view is closed when its output is: when its cell runs again or is deleted. Front ends send the id
of the cell, and the ids of recently deleted cells, in the metadata of an execute request. At most
`MAX_OPEN` views stay open; this covers front ends without cell ids and closed notebooks.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_OPEN = 12
"""Older views are closed. Their static pages stay in the notebook."""


class Closable(Protocol):
    """A view that can be closed. Closing it removes it from the registry."""

    def close(self) -> None:
        """Close the view."""


@dataclass(frozen=True)
class Execution:
    """One execution of a cell.

    Attributes
    ----------
    cell
        Id of the cell in its notebook; None if the front end does not send it.
    request
        Id of the execute request.
    deleted
        Ids of the cells deleted since the previous request.
    """

    cell: str | None
    request: str | None
    deleted: frozenset[str]

    @classmethod
    def current(cls, shell: object) -> Self:
        """Return the current execution of a shell; a shell without a kernel has no requests."""
        parent: dict[str, Any] = getattr(shell, "get_parent", dict)() or {}
        metadata = parent.get("metadata") or {}
        deleted = metadata.get("deletedCells") or ()
        return cls(metadata.get("cellId"), parent.get("msg_id"), frozenset(deleted))

    def replaces(self, other: Execution) -> bool:
        """Return whether this execution removes the output of another one."""
        if other.cell is None or other.request == self.request:
            return False
        return other.cell == self.cell or other.cell in self.deleted


class WidgetRegistry:
    """The open live views of a process, oldest first."""

    def __init__(self) -> None:
        self._views: deque[tuple[Closable, Execution]] = deque()

    def __iter__(self) -> Iterator[Closable]:
        """Iterate over a copy of the views, oldest first."""
        return iter([view for view, _ in self._views])

    def add(self, view: Closable, execution: Execution) -> None:
        """Add a view shown by an execution; close the oldest views beyond `MAX_OPEN`.

        A view that is shown again belongs to its latest output.
        """
        self.remove(view)
        self._views.append((view, execution))
        while len(self._views) > MAX_OPEN:
            self._views[0][0].close()

    def remove(self, view: Closable) -> None:
        """Remove a closed view."""
        self._views = deque(entry for entry in self._views if entry[0] is not view)

    def close_replaced(self, execution: Execution) -> None:
        """Close the views whose output an execution removes."""
        for view, shown_by in list(self._views):
            if execution.replaces(shown_by):
                view.close()
