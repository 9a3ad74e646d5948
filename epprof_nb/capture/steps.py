"""Steps of a script: `step` marks where one ends and the next begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_listeners: list[Callable[[], None]] = []


def step() -> None:
    """Mark the start of the next step of a script that ``epprof run`` profiles.

    Step 0 lasts from the start of the script to the first call, step 1 from there to the second
    call, and so on. ``epprof run --steps 10:20`` records steps 10 to 19. ``prof.ops["repeat"]``
    counts steps from the first recorded one. Without ``epprof run`` the function does nothing.

    Examples
    --------
    >>> import epprof_nb
    >>> for batch in range(3):
    ...     epprof_nb.step()
    ...     loss = batch / 2  # load the batch, train
    """
    for listener in _listeners:
        listener()


def on_step(listener: Callable[[], None]) -> None:
    """Call `listener` at each step from now on."""
    _listeners.append(listener)


def off_step(listener: Callable[[], None]) -> None:
    """Undo `on_step`."""
    _listeners.remove(listener)
