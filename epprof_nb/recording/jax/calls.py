"""Ops of the calls of jitted functions."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from epprof_nb import _native
from epprof_nb.recording.frameworks.framework_ops import kind_id
from epprof_nb.recording.ranges import range_sources

if TYPE_CHECKING:
    from types import CodeType

UNNAMED = "jitted function"


def describe_call(function: Any) -> tuple[int, int]:  # noqa: ANN401 - jaxlib's PjitFunction
    """Return the native ids of the name and the kind of the calls of a jitted function."""
    name, args = name_of_function(function), {}
    code = None if is_of_jax(function) else code_of(function)
    if code is not None:
        range_sources.register(name, function)
        args = {"file": range_sources.shown_file(code.co_filename), "line": code.co_firstlineno}
    return _native.intern(name), kind_id("jit", "jax", **args)


def name_of_function(function: Any) -> str:  # noqa: ANN401 - jaxlib's PjitFunction
    """Return the name that JAX gives to a jitted function.

    Functions that JAX creates for a part of a program, such as a backward pass, have no attribute
    for it. Their name is a variable of the function that compiles them. If they are compiled ahead
    of time, that function's executable contains the name.
    """
    name = getattr(function, "__name__", None)
    if name is None:
        compiling: Any = getattr(function, "_cache_miss", None)
        variables = getattr(getattr(compiling, "__code__", None), "co_freevars", ())
        if "name" in variables:
            name = compiling.__closure__[variables.index("name")].cell_contents
        elif "self" in variables:
            executable = compiling.__closure__[variables.index("self")].cell_contents
            name = getattr(getattr(executable, "unsafe_call", None), "name", None)
    return name_without_jit(name) if isinstance(name, str) and name else UNNAMED


def name_without_jit(name: str) -> str:
    """Return the name of a function; JAX may write it as ``jit(name)``."""
    return name[4:-1] if name.startswith("jit(") and name.endswith(")") else name


def is_of_jax(function: Any) -> bool:  # noqa: ANN401 - jaxlib's PjitFunction
    """Whether a function is one of JAX's own, such as ``jax.numpy.sin``."""
    module = getattr(function, "__module__", None)
    return isinstance(module, str) and module.partition(".")[0] == "jax"


def code_of(function: Any) -> CodeType | None:  # noqa: ANN401 - any callable
    """Return the code of the jitted function, or None if it is not a Python function."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return code if inspect.iscode(code) else None
