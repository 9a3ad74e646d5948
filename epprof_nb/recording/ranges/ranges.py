"""Named ranges: ``with epprof_nb.op("name"):``, ``@epprof_nb.op("name")``, ``@epprof_nb.op``."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

from epprof_nb import _native
from epprof_nb.recording.ranges import bounded_arguments, range_sources, suspension

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator

op = _native.Op


def wrap_function(range_op: _native.Op | None, function: Any) -> Any:  # noqa: ANN401
    """Wrap a function so that each call runs inside a range.

    Parameters
    ----------
    range_op
        Provides the name and the arguments of the range; None: the range has the qualified name of
        the function.
    function
        A function, method, coroutine function, generator function or asynchronous generator
        function, a ``staticmethod`` or ``classmethod`` object, or any other callable.

    Returns
    -------
    object
        An object of the same kind as `function`. The range of a generator is open while the
        generator runs and suspended while its caller runs.

    Raises
    ------
    TypeError
        If `function` is a class, a property or not callable.
    """
    if isinstance(function, staticmethod | classmethod):
        return type(function)(wrap_function(range_op, function.__func__))
    written = "op" if range_op is None else f"op({range_op.name!r})"
    if inspect.isclass(function) or not callable(function):
        what = "a class" if inspect.isclass(function) else f"a {type(function).__name__}"
        raise TypeError(
            f"@{written} was applied to {what}, but it supports only functions and "
            "methods. Apply it to the methods to be timed, below @property if there is one."
        )
    if range_op is None:
        range_op = op(_name_of(function))
    range_sources.register(range_op.name, function)
    # Calls can nest and overlap, so each one needs its own range.
    new_range = functools.partial(op, range_op.name, **(range_op.args or {}))
    wrap: Callable[..., Callable[..., Any]]
    if inspect.isasyncgenfunction(function):
        wrap = _async_generator
    elif inspect.iscoroutinefunction(function):
        wrap = _coroutine
    elif inspect.isgeneratorfunction(function):
        wrap = _generator
    else:
        wrap = _function
    return functools.wraps(function)(wrap(new_range, function))


def _name_of(function: Any) -> str:  # noqa: ANN401
    name = getattr(function, "__qualname__", None)
    if not isinstance(name, str):
        raise TypeError(
            f"@op was applied to a {type(function).__name__}, which has no name. Name the op: "
            '@op("name")'
        )
    return name.rpartition("<locals>.")[2]


def _function(
    new_range: Callable[[], _native.Op], function: Callable[..., Any]
) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> object:
        with new_range():
            return function(*args, **kwargs)

    return call


def _coroutine(
    new_range: Callable[[], _native.Op], function: Callable[..., Any]
) -> Callable[..., Any]:
    async def call(*args: Any, **kwargs: Any) -> object:
        with new_range():
            return await function(*args, **kwargs)

    return call


def _generator(
    new_range: Callable[[], _native.Op], function: Callable[..., Generator[Any, Any, Any]]
) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        with new_range():
            return (yield from function(*args, **kwargs))

    return call


def _async_generator(
    new_range: Callable[[], _native.Op], function: Callable[..., AsyncGenerator[Any, Any]]
) -> Callable[..., Any]:
    async def call(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        with new_range():
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
                except BaseException as error:  # noqa: BLE001 - passed to the inner generator
                    step = inner.athrow(error)
                else:
                    step = inner.asend(sent)

    return call


_native.set_decorator(wrap_function)
_native.set_suspender(suspension.track_frame)
_native.set_args_formatter(bounded_arguments.as_json)
