"""Progress of conversions and exports that take long: a line of tqdm that is gone at the end."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from epprof_nb.util.transient_display import EmptiedDisplay

if TYPE_CHECKING:
    from tqdm.std import tqdm

_DELAY_S = 1.0
"""What is done before that shows nothing."""


def steps(what: str, total: int, unit: str = " rows") -> tqdm[Any]:
    """Return a progress bar to update as work is done; use it in a ``with`` statement.

    Parameters
    ----------
    what
        What is being done, as ``"Writing run.epprof"``.
    total
        Amount of work, in units of `unit`.

    Notes
    -----
    It shows after a second, in terminals and notebooks only: a log would keep every step of it.
    In a notebook it is text in a display that is emptied: tqdm's widget would be saved, and paint
    an error over the output when the notebook is opened without its kernel.
    """
    from tqdm.std import tqdm

    class Bar(tqdm):  # type: ignore[misc]
        monitor_interval = 0  # no thread of tqdm's own stays behind

    file = _screen()
    return Bar(
        total=total,
        desc=what,
        unit=unit,
        unit_scale=True,
        delay=_DELAY_S,
        leave=False,
        dynamic_ncols=True,
        disable=file is None,
        file=file,
    )


class _NotebookLine:
    """What tqdm writes on: a display in the place of a terminal's line."""

    def __init__(self, publisher: Any) -> None:  # noqa: ANN401
        self._display = EmptiedDisplay(publisher)

    def write(self, text: str) -> None:
        """Show a line; an empty one clears the display."""
        line = text.strip()
        if line:
            self._display.show({"text/plain": line})
        elif text:
            self._display.clear()

    def flush(self) -> None:
        """Nothing is kept back."""


def _screen() -> Any:  # noqa: ANN401 - a text file, or what tqdm takes for one
    """Return what somebody looks at; None where nobody does."""
    if sys.stderr.isatty():
        return sys.stderr
    ipython = sys.modules.get("IPython")
    shell: Any = ipython.get_ipython() if ipython is not None else None
    return _NotebookLine(shell.display_pub) if getattr(shell, "kernel", None) else None
