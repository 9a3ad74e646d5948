"""Named ranges: ``with epprof_nb.op("name"):`` and ``@epprof_nb.op("name")``."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

from epprof_nb import _native
from epprof_nb.instrument import range_args, range_sources, suspension

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator

op = _native.Op


def decorate(range_op: _native.Op, function: Any) -> Any:  # noqa: ANN401
    """Make a function run inside a range each time it is called.

    Parameters
    ----------
    range_op
        Gives the name and the arguments of the range.
    function
        A function, method, coroutine function, generator function or asynchronous generator
        function, a ``staticmethod`` or ``classmethod`` object, or any other callable.

    Returns
    -------
    object
        The same kind of thing as `function`. A generator's range is open while the generator
        runs and suspended while its caller does.

    Raises
    ------
    TypeError
        If `function` is a class, a property or no callable.
    """
    if isinstance(function, staticmethod | classmethod):
        return type(function)(decorate(range_op, function.__func__))
    if inspect.isclass(function) or not callable(function):
        what = "a class" if inspect.isclass(function) else f"a {type(function).__name__}"
        raise TypeError(
            f"@op({range_op.name!r}) is put on {what}, but only functions and methods run in a "
            "range. Put it on the methods to be timed, under @property if there is one."
        )
    range_sources.remember(range_op.name, function)
    # A range of its own for each call: calls nest and overlap.
    fresh = functools.partial(op, range_op.name, **(range_op.args or {}))
    wrap: Callable[..., Callable[..., Any]]
    if inspect.isasyncgenfunction(function):
        wrap = _async_generator
    elif inspect.iscoroutinefunction(function):
        wrap = _coroutine
    elif inspect.isgeneratorfunction(function):
        wrap = _generator
    else:
        wrap = _function
    return functools.wraps(function)(wrap(fresh, function))


def _function(fresh: Callable[[], _native.Op], function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> object:
        with fresh():
            return function(*args, **kwargs)

    return call


def _coroutine(fresh: Callable[[], _native.Op], function: Callable[..., Any]) -> Callable[..., Any]:
    async def call(*args: Any, **kwargs: Any) -> object:
        with fresh():
            return await function(*args, **kwargs)

    return call


def _generator(
    fresh: Callable[[], _native.Op], function: Callable[..., Generator[Any, Any, Any]]
) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        with fresh():
            return (yield from function(*args, **kwargs))

    return call


def _async_generator(
    fresh: Callable[[], _native.Op], function: Callable[..., AsyncGenerator[Any, Any]]
) -> Callable[..., Any]:
    async def call(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        with fresh():
            inner = function(*args, **kwargs)
            step = inner.asend(None)
            while True:
                try:
                    value = await step
                except StopAsyncIteration:
                    return
                try:
                    sent = yield value
                except GeneratorExit:
                    await inner.aclose()
                    raise
                except BaseException as error:  # noqa: BLE001 - the inner one decides
                    step = inner.athrow(error)
                else:
                    step = inner.asend(sent)

    return call


_native.set_decorator(decorate)
_native.set_suspender(suspension.watch)
_native.set_args_formatter(range_args.as_json)
