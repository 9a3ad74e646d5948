"""Functions of elements on CUDA devices, with one launch each.

Numbers are computed in float32, or in float64 for float64. A call of a ``RawKernel`` takes about
half as long as CuPy's own functions, which determine types, shapes and strides.
"""

from __future__ import annotations

import math
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb import _native
from epprof_nb.ep.kernels.cuda import types as cuda_types
from epprof_nb.ep.kernels.cuda.grids import THREADS, grid_of
from epprof_nb.ep.kernels.cuda.index_width import MOST_32_BIT

if TYPE_CHECKING:
    from epprof_nb.ep.kernel import Array, ArrayModule, Attributes

_SIGMOID = "A(0.5) * tanh(A(0.5) * {}) + A(0.5)"
_SOFTPLUS = "(v > 0 ? v + log1p(exp(-v)) : log1p(exp(v)))"
_UNARY = {
    **{
        name.capitalize(): ("", f"{name}(v)")
        for name in (
            "acos",
            "acosh",
            "asin",
            "asinh",
            "atan",
            "atanh",
            "ceil",
            "cos",
            "cosh",
            "exp",
            "floor",
            "log",
            "sin",
            "sinh",
            "sqrt",
            "tan",
        )
    },
    "Abs": ("", "fabs(v)"),
    "Celu": ("alpha", "v > 0 ? v : p * expm1(v / p)"),
    "Elu": ("alpha", "v > 0 ? v : p * expm1(v)"),
    "Erf": ("", "erf(v)"),
    "Gelu": ("", "A(0.5) * (erf(v * A(0.70710678118654752440)) + A(1)) * v"),
    "Gelu by tanh": (
        "",
        "A(0.5) * (tanh((v * v * A(0.044715) + A(1)) * v * A(0.79788456080286535588)) + A(1)) * v",
    ),
    "HardSigmoid": ("alpha beta", "limited(p * v + q)"),
    "HardSwish": ("", "v * limited(v / A(6) + A(0.5))"),
    "LeakyRelu": ("alpha", "v < 0 ? p * v : v"),
    "Mish": ("", f"v * tanh({_SOFTPLUS})"),
    "Neg": ("", "-v"),
    "Reciprocal": ("", "A(1) / v"),
    "Relu": ("", "v < 0 ? A(0) : v"),
    "Round": ("", "rint(v)"),
    "Selu": ("alpha gamma", "q * (v > 0 ? v : p * expm1(v))"),
    "Sigmoid": ("", _SIGMOID.format("v")),
    "Sign": ("", "v > 0 ? A(1) : v < 0 ? A(-1) : v"),
    "Softplus": ("", _SOFTPLUS),
    "Softsign": ("", "v / (A(1) + (v < 0 ? -v : v))"),
    "Swish": ("alpha", f"v * ({_SIGMOID.format('(p * v)')})"),
    "Tanh": ("", "tanh(v)"),
    "ThresholdedRelu": ("alpha", "v > p ? v : A(0)"),
}
"""Names of the attributes `p` and `q`, and the function of an element `v`."""

_BINARY = {
    "add": "a + b",
    "divide": "a / b",
    "multiply": "a * b",
    "power": "b == A(2) ? a * a : pow(a, b)",
    "subtract": "a - b",
}
"""Functions of two elements, by name in NumPy."""

_UNARY_CODE = """
__device__ A limited(A v) { return v < A(0) ? A(0) : v > A(1) ? A(1) : v; }

extern "C" __global__ void NAME(const T* x, T* y, long long n, A p, A q) {
  long long step = (long long)gridDim.x * blockDim.x;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
    A v = wide(x[i]);
    write(&y[i], FORMULA);
  }
}
"""

_BINARY_CODE = """
extern "C" __global__ void NAME(const T* x, const T* y, T* z, I n, I nx, I ny, I sx, I sy) {
  I step = (I)gridDim.x * blockDim.x;
  for (I i = (I)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
    A a = wide(x[nx == n ? i : i / sx % nx]), b = wide(y[ny == n ? i : i / sy % ny]);
    write(&z[i], FORMULA);
  }
}
"""

_LIMIT_CODE = """
extern "C" __global__ void NAME(const T* x, const T* low, const T* high, T* y, long long n,
                                A lowest, A highest) {
  if (low) lowest = wide(*low);
  if (high) highest = wide(*high);
  long long step = (long long)gridDim.x * blockDim.x;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
    A v = wide(x[i]);
    if (v < lowest) v = lowest;
    write(&y[i], v > highest ? highest : v);
  }
}
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
        An operator type, or ``"Gelu by tanh"``.
    x
        The array.
    attrs
        Attributes of the node that the function takes.
    out
        Contiguous array for the result, of the shape and dtype of `x`; a new one by default.
    """
    if out is None:
        out = xp.empty(x.shape, x.dtype)
    if x.size:
        wide = np.float64 if x.dtype == np.float64 else np.float32
        given = [wide(attrs[a]) for a in _UNARY[name][0].split()] if attrs else []
        p, q = (*given, wide(0), wide(0))[:2]
        contiguous = x if x.flags.c_contiguous else xp.ascontiguousarray(x)
        kernel = _unary(xp, name, x.dtype.name)
        args = (contiguous, out, np.int64(x.size), p, q)
        _native.ep_launch(kernel, grid_of(x.size), (THREADS,), args)
    return out


def combine_on_device(xp: ArrayModule, function: str, a: Array, b: Array, out: Array) -> bool:
    """Write a function of two arrays; return False if the arrays are not supported.

    Supported arrays are contiguous and have the dtype of `out`. Each is a scalar, or has the shape
    of `out` or of consecutive axes of it, like biases of linear layers and convolutions.

    Parameters
    ----------
    xp
        CuPy.
    function
        ``"add"``, ``"subtract"``, ``"multiply"``, ``"divide"`` or ``"power"``.
    a, b
        The arrays.
    out
        Gets the result. It may be `a` or `b` if the shapes are equal.
    """
    dtype, shape, n = out.dtype, out.shape, out.size
    if dtype.kind != "f" or a.dtype != dtype or b.dtype != dtype or function not in _BINARY:
        return False
    steps = _step(a.shape, shape), _step(b.shape, shape)
    if not n or None in steps:
        return False
    kind = np.uint32 if n < MOST_32_BIT else np.int64
    kernel = _binary(xp, function, dtype.name, kind is np.uint32)
    args = (a, b, out, *map(kind, (n, a.size, b.size, *steps)))
    _native.ep_launch(kernel, grid_of(n), (THREADS,), args)
    return True


def limit_on_device(  # noqa: PLR0917 - the limits are numbers, or arrays
    xp: ArrayModule,
    x: Array,
    low: Array | None, high: Array | None,
    lowest: float, highest: float,
    out: Array,
) -> None:  # fmt: skip
    """Write the elements of a floating-point array, limited to a range; a NaN limit has no effect.

    Parameters
    ----------
    xp
        CuPy.
    x
        Contiguous array with elements.
    low, high
        Arrays of one element with the limits, of the dtype of `x`; None for the numbers.
    lowest, highest
        The limits where there is no array.
    out
        Contiguous array for the result.
    """
    wide, nothing = np.float64 if x.dtype == np.float64 else np.float32, np.uint64(0)
    _native.ep_launch(
        _limiting(xp, x.dtype.name), grid_of(x.size), (THREADS,),
        (
            x, nothing if low is None else low, nothing if high is None else high, out,
            np.int64(x.size), wide(lowest), wide(highest),
        ),
    )  # fmt: skip


@lru_cache(maxsize=4096)
def _step(shape: tuple[int, ...], whole: tuple[int, ...]) -> int | None:
    """Return the number of consecutive results that use the same element of an array.

    None if the array is repeated other than along the first and the last axes.
    """
    if shape == whole or math.prod(shape) == 1:
        return 1
    last = len(shape)
    while shape[last - 1] == 1:
        last -= 1
    first = next(i for i, size in enumerate(shape) if size != 1)
    offset = len(whole) - len(shape)
    if shape[first:last] != whole[offset + first : offset + last]:
        return None
    return math.prod(whole[offset + last :])


@cache
def _unary(xp: ArrayModule, name: str, dtype: str) -> Any:  # noqa: ANN401
    return _compiled(xp, name, dtype, _UNARY_CODE, _UNARY[name][1])


@cache
def _binary(xp: ArrayModule, function: str, dtype: str, few: bool) -> Any:  # noqa: ANN401, FBT001
    index = "typedef unsigned int I;" if few else "typedef long long I;"
    return _compiled(xp, function, dtype, index + _BINARY_CODE, _BINARY[function])


@cache
def _limiting(xp: ArrayModule, dtype: str) -> Any:  # noqa: ANN401
    return _compiled(xp, "limit", dtype, _LIMIT_CODE, "")


def _compiled(xp: ArrayModule, name: str, dtype: str, code: str, formula: str) -> Any:  # noqa: ANN401
    called = f"ep_{name.lower().replace(' ', '_')}"
    whole = code.replace("NAME", called).replace("FORMULA", formula)
    return xp.RawKernel(cuda_types.preamble(dtype) + whole, called)
