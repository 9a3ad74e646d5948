"""Order of events that a test needs and the system may change."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def with_longer_kernels(record: Callable[[int], T | None]) -> T:
    """Return what `record` returns, as soon as that is not None.

    The system may suspend any thread between two steps of a test. A test whose thread must act
    while a kernel runs therefore tries again with a longer one.

    Parameters
    ----------
    record
        Launches kernels of the given number of milliseconds. It returns None if they did not last
        until the step that must come before their end.
    """
    for milliseconds in (50, 500, 5_000, 20_000):
        found = record(milliseconds)
        if found is not None:
            return found
    raise AssertionError("the kernels ended too early, even the one of 20 seconds")
