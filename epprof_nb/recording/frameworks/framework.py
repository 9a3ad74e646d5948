"""The interface of frameworks: sources of ops that are recorded while their functions run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from epprof_nb.core.options import Options


class Framework(Protocol):
    """A framework whose operations can be recorded as ops.

    This package never imports it: recording begins when other code has. Only one thread at a time
    makes calls.
    """

    name: str

    def start(self, options: Options) -> None:
        """Start recording; called once before each `stop`."""

    def extend(self, options: Options) -> None:
        """Also record what these options request, after `start`."""

    def complete(self) -> None:
        """Complete the ops recorded so far, before tables are built from them."""

    def notes(self) -> list[str]:
        """Return notes for the user on the recording since `start`."""

    def stop(self) -> None:
        """Stop recording and restore everything."""
