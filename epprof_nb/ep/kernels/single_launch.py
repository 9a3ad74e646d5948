"""Functions of elements on CUDA devices, with one launch each instead of one for each operation.

Numbers are computed in float32, or in float64 for float64.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from epprof_nb.ep.kernel import Array, ArrayModule, Attributes

_WIDE = """
template <typename T> struct Wide { typedef float type; };
template <> struct Wide<double> { typedef double type; };
"""

_SIGMOID = "A(0.5) * tanh(A(0.5) * {}) + A(0.5)"
_SOFTPLUS = "(v > 0 ? v + log1p(exp(-v)) : log1p(exp(v)))"
_FORMULAS = {
    "Celu": ("alpha", "v > 0 ? v : A(alpha) * expm1(v / A(alpha))"),
    "Elu": ("alpha", "v > 0 ? v : A(alpha) * expm1(v)"),
    "Gelu": ("", "A(0.5) * (erf(v * A(0.70710678118654752440)) + A(1)) * v"),
    "Gelu by tanh": (
        "",
        "A(0.5) * (tanh((v * v * A(0.044715) + A(1)) * v * A(0.79788456080286535588)) + A(1)) * v",
    ),
    "HardSigmoid": ("alpha beta", "limited(A(alpha) * v + A(beta))"),
    "HardSwish": ("", "v * limited(v / A(6) + A(0.5))"),
    "LeakyRelu": ("alpha", "v < 0 ? A(alpha) * v : v"),
    "Mish": ("", f"v * tanh({_SOFTPLUS})"),
    "Selu": ("alpha gamma", "A(gamma) * (v > 0 ? v : A(alpha) * expm1(v))"),
    "Sigmoid": ("", _SIGMOID.format("v")),
    "Softplus": ("", _SOFTPLUS),
    "Softsign": ("", "v / (A(1) + (v < 0 ? -v : v))"),
    "Swish": ("alpha", f"v * ({_SIGMOID.format('(A(alpha) * v)')})"),
    "ThresholdedRelu": ("alpha", "v > A(alpha) ? v : A(0)"),
}  # fmt: skip
"""Names of the attributes, and the function of an element `v`."""

_LIMITED = """
template <typename A> __device__ A limited(A v) { return v < A(0) ? A(0) : v > A(1) ? A(1) : v; }
"""


def apply_on_device(
    xp: ArrayModule,
    name: str,
    x: Array,
    attrs: Attributes | None = None,
    out: Array | None = None,
) -> Array:
    """Return a function of each element of a floating-point array.

    Parameters
    ----------
    xp
        CuPy.
    name
        A type of an operator, or ``"Gelu by tanh"``.
    x
        The array.
    attrs
        Attributes of the node that the function takes.
    out
        Array for the result, of the shape and dtype of `x`; a new one by default.
    """
    given = [attrs[a] for a in _FORMULAS[name][0].split()] if attrs else []
    if out is None:
        out = xp.empty(x.shape, x.dtype)
    _kernel(xp, name)(x, *given, out)
    return out


@cache
def _kernel(xp: ArrayModule, name: str) -> Any:  # noqa: ANN401
    attributes, formula = _FORMULAS[name]
    inputs = ", ".join(["T x", *(f"float64 {a}" for a in attributes.split())])
    operation = f"typedef Wide<T>::type A; A v = x; y = T({formula})"
    made_of = f"ep_{name.lower().replace(' ', '_')}"
    return xp.ElementwiseKernel(inputs, "T y", operation, made_of, preamble=_WIDE + _LIMITED)
