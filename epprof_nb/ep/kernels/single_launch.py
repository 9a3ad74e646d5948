"""Functions of elements on CUDA devices, with one launch each instead of one for each operation."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from epprof_nb.ep.kernel import Array, ArrayModule

_FORMULAS = {
    "sigmoid": "y = T(0.5) * tanh(T(0.5) * x) + T(0.5)",
    "gelu": "y = T(0.5) * (erf(x * T(0.70710678118654752440)) + T(1)) * x",
    "gelu_tanh": """
        T inner = (x * x * T(0.044715) + T(1)) * x * T(0.79788456080286535588);
        y = T(0.5) * (tanh(inner) + T(1)) * x""",
}


def is_on_device(xp: ArrayModule) -> bool:
    """Whether an array module is CuPy."""
    return bool(xp.__name__ == "cupy")


def apply_on_device(xp: ArrayModule, name: str, x: Array) -> Array:
    """Return a function of each element of a floating-point array.

    Parameters
    ----------
    xp
        CuPy.
    name
        ``"sigmoid"``, ``"gelu"`` or ``"gelu_tanh"``.
    x
        The array.
    """
    return _kernel(xp, name)(x)


@cache
def _kernel(xp: ArrayModule, name: str) -> Any:  # noqa: ANN401
    return xp.ElementwiseKernel("T x", "T y", _FORMULAS[name], f"ep_{name}")
