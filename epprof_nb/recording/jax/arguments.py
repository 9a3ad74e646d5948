"""Arguments of the calls for which JAX compiles a function: shapes, dtypes and static values."""

from __future__ import annotations

import inspect
import math
import sys
from typing import TYPE_CHECKING, Any

from epprof_nb.recording.jax.calls import is_of_jax
from epprof_nb.util.user_errors import USER_ERRORS

if TYPE_CHECKING:
    from types import FrameType

_FRAMES = 80
_LEAVES = 8
"""Maximum number of arrays of a parameter that are listed; else only their number and size are."""


def arguments_of_call(function_name: str) -> dict[str, object]:
    """Return the arguments of the call for which this thread compiles a function.

    JAX does not report arguments. They are read from variables of its compiling function.

    Parameters
    ----------
    function_name
        Name of the function.

    Returns
    -------
    arguments
        Shape and dtype of each array, such as ``float32[32,4]``, and the values of static
        arguments, by parameter. Empty if they are unknown, for example if a function is compiled
        without a call.
    """
    frame = _frame_of_call()
    if frame is None:
        return {}
    variables = frame.f_locals
    function = variables.get("fun")
    if getattr(function, "__name__", None) != function_name or is_of_jax(function):
        return {}
    try:
        return _described(
            function, variables["args"], variables["kwargs"], variables.get("jit_info")
        )
    except USER_ERRORS:  # objects of the user; the compilation must continue
        return {}


def _frame_of_call() -> FrameType | None:
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001
    for _ in range(_FRAMES):
        if frame is None:
            break
        if frame.f_code.co_name == "cache_miss" and frame.f_globals["__name__"] == "jax._src.pjit":
            return frame
        frame = frame.f_back
    return None


def _described(
    function: Any,  # noqa: ANN401 - any callable
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    jit_info: Any,  # noqa: ANN401 - JAX's
) -> dict[str, object]:
    static_numbers = getattr(jit_info, "static_argnums", None) or ()
    static_names = getattr(jit_info, "static_argnames", None) or ()
    parameters = inspect.signature(function).parameters.values()
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [parameter.name for parameter in parameters if parameter.kind in positional]
    described: dict[str, object] = {}
    for number, value in enumerate(args):
        name = names[number] if number < len(names) else f"argument {number}"
        is_static = number in static_numbers or name in static_names
        described |= {name: _static(value)} if is_static else _arrays(name, value)
    for name, value in kwargs.items():
        described |= {name: _static(value)} if name in static_names else _arrays(name, value)
    return described


def _static(value: object) -> object:
    return value if value is None or isinstance(value, bool | int | float | str) else repr(value)


def _arrays(name: str, value: object) -> dict[str, object]:
    from jax import tree_util

    leaves = tree_util.tree_flatten_with_path(value)[0]
    if len(leaves) <= _LEAVES:
        return {name + tree_util.keystr(path): _array(leaf) for path, leaf in leaves}
    elements = sum(math.prod(getattr(leaf, "shape", ())) for _, leaf in leaves)
    return {name: f"{len(leaves)} arrays of {elements} elements"}


def _array(leaf: Any) -> str:  # noqa: ANN401 - an array or a number
    if not hasattr(leaf, "shape"):
        return type(leaf).__name__
    weak = " (weak type)" if getattr(leaf, "weak_type", False) else ""
    return f"{leaf.dtype}[{','.join(map(str, leaf.shape))}]{weak}"
