"""Steps of a program: `step` marks where one ends and the next begins."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakMethod

if TYPE_CHECKING:
    from collections.abc import Callable

_listeners: list[WeakMethod[Callable[[], None]]] = []
"""Weak references, because abandoned sessions end automatically."""


def step() -> None:
    """Mark the start of the next step of what ``epprof run`` or `epprof_nb.profile` profiles.

    Step 0 lasts from the start of the script, or of the ``with`` block, to the first call, step 1
    from there to the second call, and so on. ``epprof run --steps 10:20`` records steps 10 to 19.
    ``prof.ops["repeat"]`` counts steps from the first recorded one. `epprof_nb.compare` compares
    two profiles by their steps. Elsewhere, and in ``%%gpuprofile``, the function does nothing.

    Examples
    --------
    >>> import epprof_nb
    >>> for batch in range(3):
    ...     epprof_nb.step()
    ...     loss = batch / 2  # load the batch, train
    """
    for reference in tuple(_listeners):  # a listener may remove itself
        listener = reference()
        if listener is not None:
            listener()


def on_step(listener: Callable[[], None]) -> None:
    """Call `listener`, a bound method, at each step from now on, as long as its object exists."""
    _listeners[:] = [known for known in _listeners if known() is not None]
    _listeners.append(WeakMethod(listener))


def off_step(listener: Callable[[], None]) -> None:
    """Undo `on_step`."""
    _listeners.remove(WeakMethod(listener))
