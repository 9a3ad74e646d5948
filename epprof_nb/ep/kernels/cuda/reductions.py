"""Reductions along axes on CUDA devices, with one launch each.

Numbers are summed in float32, or in float64 for float64. With CuPy's functions, a mean of float16
takes four launches.
"""

from __future__ import annotations

import math
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb import _native
from epprof_nb.ep.kernels.cuda import types as cuda_types
from epprof_nb.ep.kernels.cuda.grids import THREADS, grid_of
from epprof_nb.ep.kernels.cuda.rows import COMBINING, threads

if TYPE_CHECKING:
    from collections.abc import Collection

    from epprof_nb.ep.kernel import Array, ArrayModule

_FUNCTIONS = {
    "ReduceL1": ("Sum", "fabs(v)", "total"),
    "ReduceL2": ("Sum", "v * v", "sqrt(total)"),
    "ReduceLogSum": ("Sum", "v", "log(total)"),
    "ReduceMax": ("Max", "v", "total"),
    "ReduceMean": ("Sum", "v", "total / n"),
    "ReduceMin": ("Max", "-v", "-total"),
    "ReduceSum": ("Sum", "v", "total"),
    "ReduceSumSquare": ("Sum", "v * v", "total"),
}
"""Functor that combines elements, function of an element `v`, and function of the result."""

_ROWS = """
extern "C" __global__ void NAME(const T* x, T* y, long long n, long long step) {
  long long start = blockIdx.x / step * n * step + blockIdx.x % step;
  A total = FIRST;
  for (long long i = threadIdx.x; i < n; i += blockDim.x) {
    A v = wide(x[start + i * step]);
    total = COMBINE()(total, A(ELEMENT));
  }
  total = over_block(total, COMBINE());
  if (threadIdx.x == 0) write(&y[blockIdx.x], A(RESULT));
}
"""

_COLUMNS = """
extern "C" __global__ void NAME(const T* x, T* y, long long n, long long step, long long count) {
  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  for (; i < count; i += (long long)gridDim.x * blockDim.x) {
    const T* at = x + i / step * n * step + i % step;
    A total = FIRST;
    for (long long k = 0; k < n; k++, at += step) {
      A v = wide(*at);
      total = COMBINE()(total, A(ELEMENT));
    }
    write(&y[i], A(RESULT));
  }
}
"""
_FIRST = {"Sum": "0", "Max": "-__int_as_float(0x7f800000)"}
_LEAST_STEP = 32
"""Neighbouring threads that read neighbouring elements; with fewer, a block reduces one row."""
_LEAST_COLUMNS = 1 << 12
_LONGEST_COLUMN = 1 << 12
"""One thread adds the elements in their order, and longer sums would lose digits."""
_LONG = 1 << 16


def reduce_on_device(
    xp: ArrayModule, op_type: str, x: Array, axes: Collection[int], out: Array
) -> bool:
    """Write a reduction; return False if the arrays are not supported.

    Parameters
    ----------
    xp
        CuPy.
    op_type
        An operator, such as ``"ReduceMean"``.
    x
        Contiguous array of float16, float32 or float64.
    axes
        The axes to reduce, from 0: all between the first and the last, except axes of one element.
    out
        Contiguous array of the dtype of `x` for the result, with or without the reduced axes.
    """
    if op_type not in _FUNCTIONS or x.dtype.kind != "f" or not x.size:
        return False
    if not x.flags.c_contiguous or not out.flags.c_contiguous or x.dtype != out.dtype:
        return False
    found = _split(x.shape, frozenset(axes))
    if found is None:
        return False
    n, step = found
    count = out.size
    many = count >= _LEAST_COLUMNS or n <= THREADS
    by_column = step >= _LEAST_STEP and many and n <= _LONGEST_COLUMN
    if not by_column and n > _LONG and count < _LEAST_STEP:
        return False  # CuPy uses more than one block for each element
    kernel = _kernel(xp, op_type, x.dtype.name, by_column)
    sizes = (np.int64(n), np.int64(step))
    if by_column:
        grid = grid_of(count)
        _native.ep_launch(kernel, grid, (THREADS,), (x, out, *sizes, np.int64(count)))
    else:
        _native.ep_launch(kernel, (count,), (threads(n),), (x, out, *sizes))
    return True


@lru_cache(maxsize=4096)
def _split(shape: tuple[int, ...], axes: frozenset[int]) -> tuple[int, int] | None:
    """Return the number of elements to reduce, and the places from one to the next.

    None if other axes lie between the reduced ones.
    """
    reduced = [axis for axis in sorted(axes) if shape[axis] != 1]
    if not reduced:
        return 1, 1
    first, last = reduced[0], reduced[-1] + 1
    n = math.prod(shape[axis] for axis in reduced)
    if math.prod(shape[first:last]) != n:
        return None
    return n, math.prod(shape[last:])


@cache
def _kernel(xp: ArrayModule, op_type: str, dtype: str, by_column: bool) -> Any:  # noqa: ANN401, FBT001
    combine, element, result = _FUNCTIONS[op_type]
    name = f"ep_{op_type.lower()}_{'columns' if by_column else 'rows'}"
    code = _COLUMNS if by_column else _ROWS
    for word, text in (
        ("NAME", name), ("FIRST", _FIRST[combine]), ("COMBINE", combine), ("ELEMENT", element),
        ("RESULT", result),
    ):  # fmt: skip
        code = code.replace(word, text)
    return xp.RawKernel(cuda_types.preamble(dtype) + COMBINING + code, name)
