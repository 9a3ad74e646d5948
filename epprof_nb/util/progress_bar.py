"""Progress bars for long conversions and exports, removed when they finish."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from epprof_nb.util.transient_display import TransientDisplay

if TYPE_CHECKING:
    from tqdm.std import tqdm

_DELAY_S = 1.0
"""Delay before the bar is shown."""


def progress_bar(
    what: str, total: int, unit: str = " rows", *, delay_s: float | None = None
) -> tqdm[Any]:
    """Return a tqdm progress bar to use in a ``with`` statement.

    Parameters
    ----------
    what
        Description, such as ``"Writing run.epprof"``.
    total
        Amount of work, in units of `unit`.
    unit
        Name of the unit, with a leading space.
    delay_s
        Delay before it is shown; a second by default.

    Notes
    -----
    The bar appears only in terminals and notebooks, because a log would keep every update. In a
    notebook it is text in a transient display: tqdm's widget would be saved and show an error when
    the notebook is opened without its kernel.
    """
    from tqdm.std import tqdm

    class Bar(tqdm):  # type: ignore[misc]
        monitor_interval = 0  # do not start tqdm's monitor thread

    file = _screen()
    return Bar(
        total=total,
        desc=what,
        unit=unit,
        unit_scale=True,
        delay=_DELAY_S if delay_s is None else delay_s,
        leave=False,
        dynamic_ncols=True,
        disable=file is None,
        file=file,
    )


class _NotebookLine:
    """File-like object that shows tqdm's output in a display instead of a terminal line."""

    def __init__(self, publisher: Any) -> None:  # noqa: ANN401
        self._display = TransientDisplay(publisher)

    def write(self, text: str) -> None:
        """Show a line; a blank line clears the display."""
        line = text.strip()
        if line:
            self._display.show({"text/plain": line})
        elif text:
            self._display.clear()

    def flush(self) -> None:
        """Do nothing: writes are not buffered."""


def _screen() -> Any:  # noqa: ANN401 - a text file, or an object that tqdm accepts as one
    """Return a file to write progress to; None if neither a terminal nor a notebook shows it."""
    with suppress(AttributeError, ValueError):  # a program may set stderr to None, or close it
        if sys.stderr.isatty():
            return sys.stderr
    ipython = sys.modules.get("IPython")
    shell: Any = ipython.get_ipython() if ipython is not None else None
    return _NotebookLine(shell.display_pub) if getattr(shell, "kernel", None) else None
