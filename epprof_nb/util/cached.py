"""Thread-safe caches: each value is computed once for all threads."""

from __future__ import annotations

from threading import RLock
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload
from weakref import WeakMethod

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

_T = TypeVar("_T")
_K = TypeVar("_K", bound="Hashable")


class KeyedCache(Generic[_K, _T]):
    """Cache of values by key, each computed on first access.

    A thread waits for a value that another thread is computing; accesses to other keys do not wait.

    Parameters
    ----------
    compute
        Returns the value of a key. Exceptions propagate to the caller and are not cached.

    Examples
    --------
    >>> squares = KeyedCache(lambda number: number**2)
    >>> squares[3]
    9
    """

    def __init__(self, compute: Callable[[_K], _T]) -> None:
        self._compute = compute
        self._values: dict[_K, _T] = {}
        self._locks: dict[_K, RLock] = {}

    def __getitem__(self, key: _K) -> _T:
        with self._locks.setdefault(key, RLock()):
            if key not in self._values:
                self._values[key] = self._compute(key)
        return self._values[key]


def weakly(method: Callable[[_K], _T]) -> Callable[[_K], _T]:
    """Return a function that calls a bound method as long as its object exists.

    The function does not keep the object alive: a cache of the object may refer to it.
    """
    reference = WeakMethod(method)
    name = getattr(method, "__qualname__", "a method")

    def call(key: _K) -> _T:
        found = reference()
        if found is None:
            raise ReferenceError(f"the object of {name} is gone")
        return found(key)

    return call


class cached_property(Generic[_T]):  # noqa: N801 - used as a decorator, like `property`
    """Thread-safe `functools.cached_property`.

    Since Python 3.12, `functools` computes the value in every thread that needs it.
    """

    def __init__(self, compute: Callable[[Any], _T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, _: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, _: type) -> cached_property[_T]: ...
    @overload
    def __get__(self, instance: object, _: type) -> _T: ...
    def __get__(self, instance: object | None, _: type) -> cached_property[_T] | _T:
        """Compute the value and store it in the instance, where the next access finds it."""
        if instance is None:
            return self
        values = instance.__dict__
        with values.setdefault(f"_lock_{self._name}", RLock()):
            if self._name not in values:
                values[self._name] = self._compute(instance)
        value: _T = values[self._name]
        return value
