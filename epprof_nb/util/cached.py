"""What is computed once, however many threads ask for it at the same time."""

from __future__ import annotations

from threading import RLock
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

_T = TypeVar("_T")
_K = TypeVar("_K", bound="Hashable")


class Kept(Generic[_K, _T]):
    """Values by key, each made when it is first asked for.

    Threads that ask for a value while it is made wait for it; for others they do not.

    Parameters
    ----------
    make
        Makes the value of a key. What it raises reaches who asks, and nothing is kept.
    """

    def __init__(self, make: Callable[[_K], _T]) -> None:
        self._make = make
        self._values: dict[_K, _T] = {}
        self._making: dict[_K, RLock] = {}

    def __getitem__(self, key: _K) -> _T:
        with self._making.setdefault(key, RLock()):
            if key not in self._values:
                self._values[key] = self._make(key)
        return self._values[key]


class once(Generic[_T]):  # noqa: N801 - used as a decorator, as `property` is
    """As `functools.cached_property`, and threads that ask meanwhile wait for the value.

    `functools` computes it in each of them since Python 3.12.
    """

    def __init__(self, compute: Callable[[Any], _T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, _: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, _: type) -> once[_T]: ...
    @overload
    def __get__(self, instance: object, _: type) -> _T: ...
    def __get__(self, instance: object | None, _: type) -> once[_T] | _T:
        """Compute the value and keep it where it is found before this next time."""
        if instance is None:
            return self
        values = instance.__dict__
        with values.setdefault(f"_making_{self._name}", RLock()):
            if self._name not in values:
                values[self._name] = self._compute(instance)
        found: _T = values[self._name]
        return found
