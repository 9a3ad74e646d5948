"""Checks of the arguments of `epprof_nb.ep.kernel`, which report mistakes at the definition."""

from __future__ import annotations

import functools
import inspect
import operator
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from epprof_nb.core.errors import KernelError
from epprof_nb.ep import operator_schemas
from epprof_nb.util.suggestions import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from epprof_nb.ep.declaration import Declaration


Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def naming_arguments(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Wrap `kernel` so that an unknown argument raises a TypeError that lists the known ones."""
    parameters = inspect.signature(function).parameters
    accepted = [name for name, of in parameters.items() if of.kind is of.KEYWORD_ONLY]

    @functools.wraps(function)
    def checked(*args: Parameters.args, **options: Parameters.kwargs) -> Result:
        unknown = [name for name in options if name not in parameters]
        if unknown:
            question = did_you_mean(unknown[0], accepted)
            raise TypeError(
                f"ep.kernel has no argument {unknown[0]!r}{f'; {question}' if question else '.'} "
                f"It takes {', '.join(f'{name}=' for name in accepted)}; opset versions are given "
                "by since= and until=."
            )
        return function(*args, **options)

    return checked


def operator_type(op_type: object) -> str:
    """Return the type of an operator; refuse a function that is decorated without one."""
    if isinstance(op_type, str):
        return op_type
    name = getattr(op_type, "__name__", "kernel")
    raise KernelError(
        "ep.kernel takes the type of an operator, and then decorates a function: "
        f'@ep.kernel("Softplus") above `def {name}(ctx, x)`. It got {op_type!r}.'
    )


def opset(option: str, value: Any) -> int | None:  # noqa: ANN401
    """Return the number of an opset, or None."""
    try:
        return None if value is None else operator.index(value)
    except TypeError:
        raise KernelError(f"{option}={value!r} is not the number of an opset.") from None


def numbers(option: str, values: Iterable[int] | int) -> tuple[int, ...]:
    """Return numbers of inputs or outputs, counted from 0.

    Examples
    --------
    >>> numbers("host_inputs", 1)
    (1,)
    """
    try:
        found = (operator.index(values),)  # type: ignore[arg-type]
    except TypeError:
        try:
            found = tuple(map(operator.index, values))  # type: ignore[arg-type, assignment]
        except TypeError:
            found = (-1,)
    if any(number < 0 for number in found):
        raise KernelError(
            f"{option}={values!r}: it takes numbers of inputs or outputs, counted from 0, as in "
            f"{option}=[1]."
        )
    return found


def check_function(function: Callable[..., None], op_type: str) -> None:
    """Refuse objects that cannot be called as ``kernel(ctx, *inputs)`` or do not run when called.

    Raises
    ------
    KernelError
        If it is not a function, is a coroutine or a generator, or has no parameter for the context.
    """
    if not callable(function):
        raise KernelError(f"@kernel({op_type!r}) decorates a function, not {function!r}.")
    kinds = inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction
    if any(is_of(function) for is_of in kinds):
        raise KernelError(
            f"The kernel of {op_type} is a coroutine or a generator, whose body does not run when "
            "it is called. Define it with `def`, and without `yield`."
        )
    found = _inputs_of(function)
    if found is not None and found[1] < 0:
        raise KernelError(
            f"The kernel of {op_type} takes no context. It is called as kernel(ctx, *inputs)."
        )


def check_inputs(function: Callable[..., None], declaration: Declaration) -> None:
    """Refuse a function that takes more or fewer inputs than any node of its operator has.

    Raises
    ------
    KernelError
        If it does. The message lists the inputs in the schema.
    """
    found = _inputs_of(function)
    first, last = declaration.first_version, declaration.last_version
    versions = [
        [str(parameter.option).rpartition(".")[2] for parameter in version.inputs]
        for version in operator_schemas.versions(declaration.op_type, declaration.domain)
        if first <= version.since_version <= last
    ]
    if found is None or not versions:
        return
    least = min(sum(option == "Single" for option in options) for options in versions)
    most = max(
        float("inf") if "Variadic" in options else float(len(options)) for options in versions
    )
    required, possible = found
    if required <= most and possible >= least:
        return
    newest = operator_schemas.versions(declaration.op_type, declaration.domain)[-1]
    names = ", ".join(parameter.name for parameter in newest.inputs)
    raise KernelError(
        f"The kernel of {declaration.op_type} takes "
        f"{required if required > most else int(possible)} inputs after ctx, and no node has as "
        f"{'many' if required > most else 'few'}: the operator's inputs are {names or 'none'}."
    )


def _inputs_of(function: Callable[..., None]) -> tuple[int, float] | None:
    """Return the least and largest number of inputs that a kernel takes; None if unknown."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # a function in C
        return None
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    required = sum(p.default is p.empty for p in positional)
    has_more = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    return max(required - 1, 0), float("inf") if has_more else float(len(positional) - 1)
