"""A notebook display that is updated in place and cleared at the end, so it is never saved."""

from __future__ import annotations

import uuid
from typing import Any


class TransientDisplay:
    """A display of a Jupyter kernel.

    Parameters
    ----------
    publisher
        The shell's ``display_pub``.
    """

    def __init__(self, publisher: Any) -> None:  # noqa: ANN401 - publishers have no base class
        self._publisher = publisher
        self._display_id = f"epprof-{uuid.uuid4().hex}"
        self._made = self._filled = False

    def show(self, data: dict[str, Any], metadata: dict[str, Any] | None = None) -> None:
        """Show a MIME bundle, replacing the previous one."""
        self._publish(data, metadata or {})
        self._filled = True

    def clear(self) -> None:
        """Clear the display, if it shows anything."""
        if self._filled:
            self._filled = False
            self._publish({}, {})

    def _publish(self, data: dict[str, Any], metadata: dict[str, Any]) -> None:
        # IPython's `display` would add text/plain to an empty bundle.
        self._publisher.publish(
            data, metadata, transient={"display_id": self._display_id}, update=self._made
        )
        self._made = True
