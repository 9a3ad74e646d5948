"""A display of a kernel that changes in its place and is empty at the end: nothing is saved."""

from __future__ import annotations

import uuid
from typing import Any


class EmptiedDisplay:
    """One display of a notebook.

    Parameters
    ----------
    publisher
        The shell's ``display_pub``.
    """

    def __init__(self, publisher: Any) -> None:  # noqa: ANN401 - IPython's publishers have no base
        self._publisher = publisher
        self._display_id = f"epprof-{uuid.uuid4().hex}"
        self._made = self._filled = False

    def show(self, data: dict[str, Any], metadata: dict[str, Any] | None = None) -> None:
        """Show a MIME bundle in the place of the one before."""
        self._publish(data, metadata or {})
        self._filled = True

    def clear(self) -> None:
        """Empty the display, where there is something in it."""
        if self._filled:
            self._filled = False
            self._publish({}, {})

    def _publish(self, data: dict[str, Any], metadata: dict[str, Any]) -> None:
        # As it is: IPython's `display` would add text to an empty bundle.
        self._publisher.publish(
            data, metadata, transient={"display_id": self._display_id}, update=self._made
        )
        self._made = True
