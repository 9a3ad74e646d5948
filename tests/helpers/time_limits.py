"""Time limits of recordings, reached when a test wants it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from epprof_nb.recording.session import session

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest


class _Limit:
    """A `TimeLimit` that is reached by a call."""

    def __init__(self, seconds: float, function: Callable[..., object], *args: object) -> None:
        self._call: Callable[[], object] | None = lambda: function(*args)

    def start(self) -> None:
        pass

    def reach(self) -> None:
        call, self._call = self._call, None
        if call is not None:
            call()

    def cancel(self) -> None:
        self._call = None

    def join(self) -> None:
        pass


class TimeLimits:
    """The time limits of all sessions that start from now on.

    Parameters
    ----------
    monkeypatch
        Restores real time limits after the test.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._limits: list[_Limit] = []
        monkeypatch.setattr(session, "TimeLimit", self._made)

    def _made(self, seconds: float, function: Callable[..., object], *args: object) -> _Limit:
        self._limits.append(_Limit(seconds, function, *args))
        return self._limits[-1]

    def reach(self) -> None:
        """Reach the limit now."""
        for limit in self._limits:
            limit.reach()
