"""A property that is computed once, however many threads ask for it at the same time."""

from __future__ import annotations

from threading import RLock
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

if TYPE_CHECKING:
    from collections.abc import Callable

_T = TypeVar("_T")
_making = RLock()


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
        with _making:
            lock = values.setdefault(f"_making_{self._name}", RLock())
        with lock:
            if self._name not in values:
                values[self._name] = self._compute(instance)
        found: _T = values[self._name]
        return found
