"""Shapes of the inputs bound to an ``IOBinding``, which ONNX Runtime does not report afterwards."""

from __future__ import annotations

import functools
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

METHODS = (
    "__init__", "bind_cpu_input", "bind_input", "bind_ortvalue_input", "clear_binding_inputs",
)  # fmt: skip
"""Methods of ``IOBinding`` to wrap."""
_ATTRIBUTE = "_epprof_bound_inputs"


class BoundInput(NamedTuple):
    """Shape and size in bytes of an input; the size is None if its element type is unknown."""

    shape: tuple[int, ...]
    nbytes: int | None


def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a method of ``IOBinding`` so that the binding keeps the shapes of its inputs."""
    of_arguments = _READ.get(original.__name__)

    @functools.wraps(original)
    def bind(self: Any, *args: Any, **kwargs: Any) -> object:  # noqa: ANN401
        result = original(self, *args, **kwargs)
        if of_arguments is None:  # new, or cleared
            self.__dict__[_ATTRIBUTE] = {}
        elif (bound := self.__dict__.get(_ATTRIBUTE)) is not None:
            name, value = of_arguments(*args, **kwargs)
            bound[name] = value
        return result

    return bind


def bound_inputs(binding: object) -> dict[str, Any] | None:
    """Return the inputs of a binding by name: objects with ``shape``, and a size in bytes.

    None if some of them may be unknown, because the binding was made before
    `epprof_nb.onnxruntime.install`.
    """
    bound: dict[str, Any] | None = getattr(binding, "__dict__", {}).get(_ATTRIBUTE)
    return bound


def _of_array(name: str, arr_on_cpu: Any) -> tuple[str, BoundInput]:  # noqa: ANN401
    return name, BoundInput(tuple(arr_on_cpu.shape), arr_on_cpu.nbytes)


def _of_value(name: str, ortvalue: Any) -> tuple[str, Any]:  # noqa: ANN401
    return name, ortvalue  # the binding keeps it, too


def _of_address(  # noqa: PLR0917 - as in ONNX Runtime
    name: str,
    device_type: str = "",  # noqa: ARG001
    device_id: int = 0,  # noqa: ARG001
    element_type: Any = None,  # noqa: ANN401
    shape: Any = (),  # noqa: ANN401
    buffer_ptr: int = 0,  # noqa: ARG001
) -> tuple[str, BoundInput]:
    sizes = tuple(int(size) for size in shape)
    try:
        nbytes = prod(sizes) * np.dtype(element_type).itemsize
    except TypeError:  # ONNX's number of a type that NumPy lacks
        return name, BoundInput(sizes, None)
    return name, BoundInput(sizes, nbytes)


_READ: dict[str, Callable[..., tuple[str, Any]]] = {
    "bind_cpu_input": _of_array,
    "bind_input": _of_address,
    "bind_ortvalue_input": _of_value,
}
