"""Handlers of signals in place of the default action, which Python code does not see."""

from __future__ import annotations

import functools
import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from epprof_nb import _native

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

_set, _get = signal.signal, signal.getsignal


class HiddenHandlers:
    """Handlers of signals for which a program finds, and sets, the default action.

    Programs keep the handler that `signal.signal` returns, and call it from their own one. They
    also ask `signal.getsignal` whether somebody handles a signal, and leave it alone then. Both
    return ``SIG_DFL`` where one of these handlers is set, and ``SIG_DFL`` sets it again.
    """

    def __init__(self) -> None:
        self._handlers: dict[int, Callable[[int, FrameType | None], None]] = {}
        self._watched = False

    def add(
        self, number: int, handler: Callable[[int, FrameType | None], None], *, watch: bool
    ) -> None:
        """Call a handler whenever the default action would follow. Only the main thread may add.

        With `watch`, `_native.next_signal` returns the signal, too.
        """
        self._watched = watch
        self._handlers[number] = handler
        if signal.signal is _set:
            self._hide()
        if _get(number) == signal.SIG_DFL:
            signal.signal(number, signal.SIG_DFL)

    def is_set(self, number: int) -> bool:
        """Whether the program has not set another handler."""
        return number in self._handlers and _get(number) is self._handlers[number]

    def remove(self, handler: Callable[[int, FrameType | None], None]) -> None:
        """Restore the default actions in place of a handler."""
        for number, known in [*self._handlers.items()]:
            if known == handler:
                del self._handlers[number]
                if _get(number) is known:
                    _set(number, signal.SIG_DFL)

    def _hide(self) -> None:
        @functools.wraps(_set)
        def set_handler(signalnum: Any, handler: Any) -> Any:  # noqa: ANN401
            hidden = self._find(signalnum)
            is_default = isinstance(handler, int) and handler == signal.SIG_DFL
            if hidden is None or not is_default:
                previous = _set(signalnum, handler)
            else:
                previous = _set(signalnum, hidden)
                if self._watched:
                    with suppress(OSError):  # no thread can be started
                        _native.watch_signal(signalnum)
            return signal.SIG_DFL if previous is hidden is not None else previous

        @functools.wraps(_get)
        def get_handler(signalnum: Any) -> Any:  # noqa: ANN401
            found, hidden = _get(signalnum), self._find(signalnum)
            return signal.SIG_DFL if found is hidden is not None else found

        signal.signal, signal.getsignal = set_handler, get_handler

    def _find(self, number: Any) -> Any:  # noqa: ANN401
        """Return the handler of a signal, whatever type of number the program uses."""
        return next((found for known, found in self._handlers.items() if known == number), None)


hidden_handlers = HiddenHandlers()


def end_by(number: int) -> None:
    """End this process by the default action of a signal."""
    _set(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
