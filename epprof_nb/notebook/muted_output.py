"""Output of the repeats of an experiment, which is the same in each: only the last one shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from IPython.utils.capture import capture_output

if TYPE_CHECKING:
    from IPython.utils.capture import CapturedIO


class MutedOutput:
    """Keeps what the code prints and displays back, until `end`."""

    def __init__(self) -> None:
        self._muted: tuple[capture_output, CapturedIO] | None = None

    def begin(self) -> None:
        """Keep the output back from now on, and forget what was kept before."""
        self.end()
        capture = capture_output()
        self._muted = capture, capture.__enter__()

    def end(self, *, show: bool = False) -> None:
        """Let output through again, and show what was kept since `begin` if it is wanted."""
        muted, self._muted = self._muted, None
        if muted is None:
            return
        capture, kept = muted
        capture.__exit__(None, None, None)
        if show:
            kept.show()
