"""Pooling of images on CUDA devices, with one launch each."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb import _native
from epprof_nb.ep.kernels.cuda import types as cuda_types
from epprof_nb.ep.kernels.cuda.grids import THREADS, grid_of
from epprof_nb.ep.kernels.cuda.index_width import MOST_32_BIT
from epprof_nb.ep.kernels.cuda.rows import COMBINING

if TYPE_CHECKING:
    from epprof_nb.ep.kernel import Array, ArrayModule
    from epprof_nb.ep.kernels.shared.windows import Geometry

_CODE = """
__device__ int within(int first, int count, int step, int low, int high) {
  int found = 0;
  for (int i = 0; i < count; i++, first += step) found += first >= low && first < high;
  return found;
}

extern "C" __global__ void NAME(const T* x, T* y, int n, int h, int w, int kh, int kw, int oh,
                                int ow, int sh, int sw, int dh, int dw, int top, int left,
                                int bottom, int right) {
  int step = gridDim.x * blockDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
    int rest = i, column = rest % ow * sw - left;
    rest /= ow;
    int row = rest % oh * sh - top;
    const T* image = x + rest / oh * h * w;
    A total = FIRST;
    for (int p = 0; p < kh; p++) {
      int r = row + p * dh;
      if (r < 0 || r >= h) continue;
      for (int q = 0; q < kw; q++) {
        int c = column + q * dw;
        if (c >= 0 && c < w) total = COMBINE()(total, A(wide(image[r * w + c])));
      }
    }
    write(&y[i], A(RESULT));
  }
}
"""
_FUNCTIONS = {
    "max": ("-__int_as_float(0x7f800000)", "Max", "total"),
    "mean": (
        "0", "Sum", "total / (within(row, kh, dh, 0, h) * within(column, kw, dw, 0, w))",
    ),
    "mean with padding": (
        "0", "Sum",
        (
            "total / (within(row, kh, dh, -top, h + bottom)"
            " * within(column, kw, dw, -left, w + right))"
        ),
    ),
}  # fmt: skip
"""The first value, the functor that combines the elements, and the function of the result."""


def pool(xp: ArrayModule, function: str, x: Array, geometry: Geometry, out: Array) -> bool:
    """Write a function of each window; return False if the arrays are not supported.

    Parameters
    ----------
    xp
        CuPy.
    function
        ``"max"``; ``"mean"`` of the elements of the image; or ``"mean with padding"``.
    x
        Contiguous array, of shape (batch, channels, height, width) if it is supported.
    geometry
        The windows; each contains an element of the image.
    out
        Contiguous array for the result.
    """
    if x.ndim != 4 or x.dtype.kind != "f" or not 0 < max(x.size, out.size) < MOST_32_BIT:
        return False
    begins, ends = zip(*geometry.pads, strict=True)
    sizes = _sizes((
        out.size, *x.shape[2:], *geometry.kernel, *out.shape[2:], *geometry.strides,
        *geometry.dilations, *begins, *ends,
    ))  # fmt: skip
    grid = grid_of(out.size)
    _native.ep_launch(_kernel(xp, function, x.dtype.name), grid, (THREADS,), (x, out, *sizes))
    return True


@lru_cache(maxsize=4096)
def _sizes(numbers: tuple[int, ...]) -> tuple[np.int32, ...]:
    return tuple(map(np.int32, numbers))


@cache
def _kernel(xp: ArrayModule, function: str, dtype: str) -> Any:  # noqa: ANN401
    first, combine, result = _FUNCTIONS[function]
    name = f"ep_pool_{function.replace(' ', '_')}"
    code = _CODE
    for word, text in (("NAME", name), ("FIRST", first), ("COMBINE", combine), ("RESULT", result)):
        code = code.replace(word, text)
    return xp.RawKernel(cuda_types.preamble(dtype) + COMBINING + code, name)
